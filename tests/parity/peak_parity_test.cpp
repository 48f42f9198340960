// fma_peak: every chain of every unit counts exactly, so that not one round can be skipped.
#include <functional>

#include "parity/parity.h"

namespace dlbench::test {
namespace {

constexpr FmaUnit kUnits[] = {FmaUnit::vector_auto, FmaUnit::scalar,      FmaUnit::sse2,     FmaUnit::avx2,
                              FmaUnit::avx512,      FmaUnit::dot_product, FmaUnit::cuda_core};

class PeakParity : public Parity {
 protected:
  static std::vector<double> run(const FmaPeakSpec& spec) {
    Device& device = device_under_test();
    const int64_t outputs = device.ops().fma_peak_outputs(spec);
    EXPECT_GT(outputs, 0);
    const size_t bytes = static_cast<size_t>(outputs) * sizeof(float);
    DeviceBuffer memory(device, bytes + 512);
    device.set_bytes(memory.data(), 0xA7, bytes + 512);
    auto* out = static_cast<std::byte*>(memory.data()) + 256;
    device.set_bytes(out, 0xFF, bytes);
    device.ops().fma_peak(spec, out);
    HostTensor host({outputs}, DType::f32);
    std::vector<std::byte> around(bytes + 512);
    device.copy_to_host(host.data(), out, bytes);
    device.copy_to_host(around.data(), memory.data(), bytes + 512);
    device.synchronize();
    for (size_t i = 0; i < 256; ++i) {
      EXPECT_EQ(around[i], std::byte{0xA7});
      EXPECT_EQ(around[256 + bytes + i], std::byte{0xA7});
    }
    std::vector<double> values;
    for (int64_t i = 0; i < outputs; ++i) values.push_back(host.at(i));
    return values;
  }
};

/// What ops.h allows a chain to have counted after n rounds; which of them is the device's business, but one of them it
/// must be, for every n and in every chain.
std::vector<std::function<int64_t(int64_t n)>> counting_rules(FmaUnit unit, Precision precision) {
  const bool sixteen_bits = size_of(storage_of(precision)) == 2;
  std::vector<std::function<int64_t(int64_t)>> rules;
  if (unit != FmaUnit::dot_product) rules.emplace_back([](int64_t n) { return n; });
  // Dot products of pairs; the widest unit of a 16-bit type may be one.
  if (unit == FmaUnit::dot_product || (unit == FmaUnit::vector_auto && sixteen_bits)) {
    rules.emplace_back([](int64_t n) { return 2 * n; });
  }
  // With a 16-bit accumulator.
  if (unit != FmaUnit::dot_product && sixteen_bits) rules.emplace_back([](int64_t n) { return n % 2048; });
  return rules;
}

TEST_P(PeakParity, EveryChainCountsExactly) {
  Ops& ops = device_under_test().ops();
  for (const FmaUnit unit : kUnits) {
    const Support support = ops.supports_fma_unit(unit, precision());
    if (support.level != SupportLevel::native) {
      EXPECT_FALSE(support.reason.empty()) << to_string(unit);
    }
    if (support.level == SupportLevel::no) {
      DeviceBuffer memory(device_under_test(), 1 << 20);
      EXPECT_THROW(ops.fma_peak({.precision = precision(), .unit = unit, .iterations = 1}, memory.data()),
                   UnsupportedError);
      continue;
    }
    auto rules = counting_rules(unit, precision());
    std::string counted;
    for (const int64_t n : {0, 1, 7, 255, 256, 257, 1000, 2047, 2048, 2049, 5000}) {
      const FmaPeakSpec spec{.precision = precision(), .unit = unit, .iterations = n};
      const std::vector<double> values = run(spec);
      for (const double value : values) ASSERT_EQ(value, values.front()) << to_string(unit) << ", " << n << " rounds";
      EXPECT_EQ(run(spec), values);
      std::erase_if(rules, [&](const auto& rule) { return static_cast<double>(rule(n)) != values.front(); });
      counted += fmt::format(" {} in {} rounds;", values.front(), n);
    }
    EXPECT_FALSE(rules.empty()) << to_string(unit) << " counted" << counted;
  }
}

TEST_P(PeakParity, DeclaredWorkIsProportionalToRounds) {
  Ops& ops = device_under_test().ops();
  for (const FmaUnit unit : kUnits) {
    if (ops.supports_fma_unit(unit, precision()).level == SupportLevel::no) continue;
    const double one = ops.fma_peak_flops({.precision = precision(), .unit = unit, .iterations = 1});
    const int64_t outputs = ops.fma_peak_outputs({.precision = precision(), .unit = unit, .iterations = 1});
    EXPECT_GE(one, 2.0 * static_cast<double>(outputs))
        << to_string(unit);  // 2 FLOPs per multiply-add, at least one per output
    EXPECT_EQ(ops.fma_peak_flops({.precision = precision(), .unit = unit, .iterations = 1000}), 1000 * one)
        << to_string(unit);
  }
}

TEST_P(PeakParity, TooManyRoundsAreRefused) {
  if (device_under_test().ops().supports_fma_unit(FmaUnit::vector_auto, precision()).level == SupportLevel::no) return;
  DeviceBuffer memory(device_under_test(), 1 << 20);
  for (const int64_t iterations : {int64_t{-1}, (int64_t{1} << 24) + 1}) {
    EXPECT_THROW(
        device_under_test().ops().fma_peak({.precision = precision(), .iterations = iterations}, memory.data()),
        std::invalid_argument);
  }
}

DLB_EVERY_PRECISION(PeakParity);

}  // namespace
}  // namespace dlbench::test
