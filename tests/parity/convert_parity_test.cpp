// Conversions between element types: every pair, bit for bit, ties and overflow included.
#include <cmath>
#include <limits>

#include "core/math/rounding.h"
#include "parity/parity.h"

namespace dlbench::test {
namespace {

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::bf16, DType::f16};

/// The precision whose storage type it is and that isn't for matrix products only.
Precision precision_of(DType type) {
  for (const Precision p : all_precisions()) {
    if (storage_of(p) == type && !info(p).matrix_only) return p;
  }
  throw Error("no precision is stored as " + std::string(to_string(type)));
}

/// Numbers on and beside the ties of every 16-bit type, beyond its range, and the special ones.
std::vector<double> hard_values() {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> values{0.0,
                             -0.0,
                             infinity,
                             -infinity,
                             std::numeric_limits<double>::quiet_NaN(),
                             65504,
                             65519,
                             65520,
                             65536,
                             3.3e38,
                             3.4e38,
                             5.9604644775390625e-08,
                             2.98e-08,
                             3.1e-08,
                             1e-6,
                             1e300,
                             1e-300};
  for (const double base : {1.0, 3.0, 1.7, 1000.0, 6.1e-5}) {
    const double unit = std::exp2(std::floor(std::log2(base)));
    for (const int fraction_bits : {7, 10}) {  // bf16, f16
      const double tie = unit * std::exp2(-fraction_bits - 1);
      for (const int odd : {1, 3, 5}) {  // ties round to the even neighbour: up and down
        for (const double nudge : {0.0, 0x1p-23, -0x1p-23, 0x1p-40, -0x1p-40}) {
          values.push_back(unit + odd * tie + nudge * unit);
        }
      }
    }
  }
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

bool supported(DType type) {
  return device_under_test().ops().supports(Op::convert, precision_of(type)).level != SupportLevel::no;
}

void check_convert(DType from, DType to, CaseBuffer x, const std::string& what) {
  const ConvertSpec spec{.from = from, .to = to, .n = x.elements};
  CaseBuffer y = output("y", to, x.elements, tolerance_of(Op::convert, precision_of(to)));
  y.bitwise = true;
  y.offset = x.offset;
  const OpCase op_case{fmt::format("convert {} to {} {}", to_string(from), to_string(to), what),
                       {std::move(x), std::move(y)},
                       [&spec](Ops& ops, const std::vector<void*>& p) { ops.convert(spec, p[0], p[1]); }};
  if (supported(from) && supported(to)) {
    EXPECT_EQ(check_case(device_under_test(), oracle(), op_case), "");
  } else {
    EXPECT_THROW(check_case(device_under_test(), oracle(), op_case), UnsupportedError) << op_case.name;
  }
}

TEST(ConvertParity, EveryPairAtEveryLength) {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      for (const int64_t n : {0, 1, 2, 7, 8, 17, 33, 256, 1000, 70001}) {
        for (const int64_t offset : {0, 1}) {
          CaseBuffer x = input("x", from, n);
          x.offset = offset;
          check_convert(from, to, std::move(x), fmt::format("n={} offset={}", n, offset));
        }
      }
    }
  }
}

TEST(ConvertParity, TiesRangesAndSpecialValues) {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) check_convert(from, to, input_values("x", from, hard_values()), "hard values");
  }
}

TEST(ConvertParity, EveryValueOfThe16BitTypesWidensExactly) {
  for (const DType from : {DType::bf16, DType::f16}) {
    std::vector<double> values;
    for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
      const uint16_t b = static_cast<uint16_t>(bits);
      const double value = from == DType::bf16 ? to_float(bfloat16{b}) : to_float(float16{b});
      // Floats below 2^-126 may be flushed to zero (METHODS: FTZ and DAZ are on while timing).
      if (value != 0 && std::fabs(value) < 0x1p-126) continue;
      values.push_back(value);
    }
    check_convert(from, DType::f32, input_values("x", from, values), "every value");
    check_convert(from, from == DType::bf16 ? DType::f16 : DType::bf16, input_values("x", from, values), "every value");
  }
}

TEST(ConvertParity, NegativeLengthIsRefused) {
  DeviceBuffer memory(device_under_test(), 256);
  EXPECT_THROW(
      device_under_test().ops().convert({.from = DType::f32, .to = DType::f32, .n = -1}, memory.data(), memory.data()),
      std::invalid_argument);
}

}  // namespace
}  // namespace dlbench::test
