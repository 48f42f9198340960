#include "core/device/meta_noise.h"

#include <cmath>
#include <numbers>
#include <stdexcept>

#include "core/base/random.h"

namespace dlbench {

namespace {

constexpr uint64_t kTimingStream = 1, kSpikeStream = 2, kOpStreamBit = uint64_t{1} << 63;

/// Uniform in (0, 1).
double unit(uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) / 4294967296.0;
}

/// Two independent normal values (Box & Muller 1958).
struct NormalPair {
  double first, second;
};
NormalPair normal_pair(uint32_t a, uint32_t b) {
  const double radius = std::sqrt(-2 * std::log(unit(a))), angle = 2 * std::numbers::pi * unit(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// FNV-1a, 64 bits.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xCBF29CE484222325ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return hash;
}

}  // namespace

double noise_value(NoiseShape shape, uint64_t seed, uint64_t stream, uint64_t index) {
  const Philox4x32 r = philox4x32(seed, index, stream);
  const NormalPair z = normal_pair(r.word[0], r.word[1]);
  switch (shape) {
    case NoiseShape::normal:
    case NoiseShape::heteroscedastic:
      return z.first;
    case NoiseShape::t3: {
      const NormalPair y = normal_pair(r.word[2], r.word[3]);
      const double chi_square = z.second * z.second + y.first * y.first + y.second * y.second;
      return z.first / std::sqrt(chi_square);  // t3 = z / sqrt(chi^2 / 3) has variance 3
    }
    case NoiseShape::bimodal: {
      constexpr double kSpread = 0.3;  // of each mode; the modes stand where the variance becomes 1
      const double mode = std::sqrt(1 - kSpread * kSpread);
      return (r.word[2] & 1u ? mode : -mode) + kSpread * z.first;
    }
  }
  throw std::invalid_argument("not a noise shape");
}

double MetaNoise::factor(std::string_view op, double now_seconds) {
  double log_factor = 0, sd_scale = 1;
  const uint64_t op_stream = hash_of(op) | kOpStreamBit;
  if (options_.shape == NoiseShape::heteroscedastic) {
    sd_scale = std::exp2(4 * unit(philox4x32(0, 0, op_stream).word[0]) - 2);  // of the op, whatever the seed
  }
  if (options_.process_sd > 0) {
    log_factor += sd_scale * options_.process_sd * noise_value(options_.shape, options_.seed, op_stream, 0);
  }
  if (options_.noise_sd > 0) {
    log_factor += sd_scale * options_.noise_sd * noise_value(options_.shape, options_.seed, kTimingStream, timing_);
  }
  double factor = (1 + options_.drift_per_second * now_seconds) * std::exp(log_factor);
  if (options_.spike_probability > 0 &&
      unit(philox4x32(options_.seed, calls_++, kSpikeStream).word[0]) < options_.spike_probability) {
    factor *= 10;
  }
  return factor;
}

}  // namespace dlbench
