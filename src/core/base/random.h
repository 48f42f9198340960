// Counter-based random numbers: the same bits on host and device, for any order and any number of threads.
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11) gives 128 bits per counter. A
// normal value is the scaled sum of four of its 16-bit words (Irwin-Hall, n = 4: mean 0, variance 1, excess kurtosis
// -0.3, range +-3.46). Why not Box-Muller: log and cos round differently on host and device; an integer sum and one
// multiplication can't. Timing data needs the scale and the entropy of real data, not its tails.
#pragma once

#include <cstdint>

#include "core/base/host_device.h"

namespace dlbench {

struct Philox4x32 {
  uint32_t word[4];
};

namespace detail {
DLB_HD void philox_round(uint32_t (&c)[4], uint32_t k0, uint32_t k1) {
  const uint64_t p0 = static_cast<uint64_t>(0xD2511F53u) * c[0];
  const uint64_t p1 = static_cast<uint64_t>(0xCD9E8D57u) * c[2];
  const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0;
  const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1;
  c[1] = static_cast<uint32_t>(p1);
  c[3] = static_cast<uint32_t>(p0);
  c[0] = n0;
  c[2] = n2;
}
}  // namespace detail

/// The block of 128 random bits that belongs to (key, counter); matches Random123's philox4x32-10 known answers.
DLB_HD Philox4x32 philox4x32(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t c[4] = {static_cast<uint32_t>(counter_low), static_cast<uint32_t>(counter_low >> 32),
                   static_cast<uint32_t>(counter_high), static_cast<uint32_t>(counter_high >> 32)};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    detail::philox_round(c, k0, k1);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c[0], c[1], c[2], c[3]}};
}

/// 1 / standard deviation of a sum of four uniform 16-bit words: sqrt(3 / (2^32 - 1)).
inline constexpr double kIrwinHallScale = 2.6428997921303018e-05;

namespace detail {
DLB_HD int32_t irwin_hall(uint32_t a, uint32_t b) {
  return static_cast<int32_t>((a & 0xFFFFu) + (a >> 16) + (b & 0xFFFFu) + (b >> 16)) - 131070;
}
}  // namespace detail

/// Value `index` of the normal sequence (seed, stream), times `scale`. `factor` is static_cast<float>(scale *
/// kIrwinHallScale), computed on the host once, so that one multiplication is the only rounding.
DLB_HD float normal_value(uint64_t seed, uint64_t stream, uint64_t index, float factor) {
  const Philox4x32 r = philox4x32(seed, index >> 1, stream);
  const int32_t sum = (index & 1) ? detail::irwin_hall(r.word[2], r.word[3]) : detail::irwin_hall(r.word[0], r.word[1]);
  return static_cast<float>(sum) * factor;
}

/// Uniform whole number in [0, bound), bound <= 2^32; bias below 2^-32 * bound.
DLB_HD uint32_t uniform_index(uint64_t seed, uint64_t stream, uint64_t index, uint32_t bound) {
  const Philox4x32 r = philox4x32(seed, index, stream ^ 0x8000000000000000ull);
  return static_cast<uint32_t>((static_cast<uint64_t>(r.word[0]) * bound) >> 32);
}

}  // namespace dlbench
