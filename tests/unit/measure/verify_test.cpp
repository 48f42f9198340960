#include "core/measure/verify.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/device/reference_device.h"
#include "support/forwarding_device.h"
#include "unit/measure/test_workload.h"

namespace dlbench {
namespace {

using test::buffer;
using test::ForwardingDevice;
using test::ForwardingOps;
using test::LambdaWorkload;
using testing::HasSubstr;

constexpr int64_t kN = 1000;
const OutputTolerance kExact{.op_class = OpClass::exact};

/// A second reference device on which `copy` does what the test says after the right copy.
class WrongCopy : public ForwardingOps {
 public:
  WrongCopy(Ops& inner, std::function<void(float* y)> damage) : ForwardingOps(inner), damage_(std::move(damage)) {}
  void copy(const VectorSpec& s, const void* x, void* y) override {
    ForwardingOps::copy(s, x, y);
    damage_(static_cast<float*>(y));
  }

 private:
  std::function<void(float*)> damage_;
};

Verification verify_with(std::function<void(float*)> damage, OutputTolerance tolerance = kExact) {
  ForwardingDevice device(make_reference_device({}));
  device.set_ops(std::make_unique<WrongCopy>(device.inner().ops(), std::move(damage)));
  LambdaWorkload workload(
      {buffer("x", BufferRole::input, kN), buffer("y", BufferRole::output, kN)},
      [](Device& d, const Binding& b) { d.ops().copy({.n = kN}, b[0], b[1]); }, tolerance);
  return verify(workload, device, 7, 0);
}

TEST(Verify, RightResultsPass) {
  const Verification v = verify_with([](float*) {});
  EXPECT_TRUE(v.ok) << v.message;
  EXPECT_EQ(v.how, "full");
  EXPECT_EQ(v.fraction, 1);
  EXPECT_EQ(v.error, 0);
}

TEST(Verify, CatchesOneWrongElement) {
  const Verification v = verify_with([](float* y) { y[617] += 0.001f; });
  EXPECT_FALSE(v.ok);
  EXPECT_THAT(v.message, HasSubstr("y [1000]: 1 of 1000 compared values are wrong; the worst, at 617"));
}

TEST(Verify, CatchesAnElementThatNobodyWrote) {
  const Verification v = verify_with([](float* y) { std::memset(y + 3, 0xFF, 4); });
  EXPECT_FALSE(v.ok);
  EXPECT_THAT(v.message, HasSubstr("never written"));
}

TEST(Verify, CatchesNaN) {
  EXPECT_FALSE(verify_with([](float* y) { y[0] = std::numeric_limits<float>::quiet_NaN(); }).ok);
}

TEST(Verify, CatchesAWriteOutsideOfABuffer) {
  EXPECT_THAT(verify_with([](float* y) { y[kN] = 1; }).message,
              HasSubstr("buffer y [1000] of f32: the guard zone behind it"));
  EXPECT_THAT(verify_with([](float* y) { y[-1] = 1; }).message, HasSubstr("the guard zone before it"));
}

TEST(Verify, CatchesAChangedInput) {
  ForwardingDevice device(make_reference_device({}));
  float* x = nullptr;
  device.set_ops(std::make_unique<WrongCopy>(device.inner().ops(), [&x](float*) { x[5] = 9; }));
  LambdaWorkload workload(
      {buffer("x", BufferRole::input, kN), buffer("y", BufferRole::output, kN)},
      [&x](Device& d, const Binding& b) {
        x = static_cast<float*>(b[0]);
        d.ops().copy({.n = kN}, b[0], b[1]);
      },
      kExact);
  EXPECT_THAT(verify(workload, device, 7, 0).message, HasSubstr("input x: the step changed it"));
}

TEST(Verify, ComparesTheSampleThatTheReferenceComputed) {
  LambdaWorkload workload({buffer("a", BufferRole::input, 64 * 64), buffer("b", BufferRole::input, 64 * 64),
                           buffer("c", BufferRole::output, 64 * 64)},
                          [](Device& d, const Binding& b) {
                            d.ops().gemm({.m = 64, .n = 64, .k = 64}, b[0], b[1], nullptr, b[2], nullptr);
                          },
                          {.op_class = OpClass::reduction, .reduction_length = 64});
  const auto device = make_reference_device({});
  const Verification v = verify(workload, *device, 7, 64.0 * 64 * 64 / 2);
  EXPECT_TRUE(v.ok) << v.message;
  EXPECT_EQ(v.how, "sampled");
  EXPECT_GT(v.fraction, 0);
  EXPECT_LT(v.fraction, 1);
}

TEST(Verify, LargeBuffersAreComparedInPieces) {
  constexpr int64_t kLarge = 10'000'000;  // 40 MB
  LambdaWorkload workload(
      {buffer("x", BufferRole::input, kLarge, DType::f32, BufferInit::zero), buffer("y", BufferRole::output, kLarge)},
      [](Device& d, const Binding& b) { d.ops().copy({.n = kLarge}, b[0], b[1]); }, kExact);
  ForwardingDevice device(make_reference_device({}));
  const Verification right = verify(workload, device, 7, 0);
  EXPECT_TRUE(right.ok) << right.message;
  EXPECT_TRUE(right.proves_little);
  EXPECT_EQ(right.how, "sampled");
  EXPECT_NEAR(right.fraction, 32.0 * 1024 * 1024 / 4e7, 1e-6);
  device.set_ops(std::make_unique<WrongCopy>(device.inner().ops(), [](float* y) { y[kLarge - 1] = 1; }));
  EXPECT_FALSE(verify(workload, device, 7, 0).ok);
}

HostTensor tensor(const std::vector<double>& values, DType type = DType::f32) {
  HostTensor t({static_cast<int64_t>(values.size())}, type);
  for (size_t i = 0; i < values.size(); ++i) t.set(static_cast<int64_t>(i), values[i]);
  return t;
}

TEST(Compare, AllowsTheToleranceAndNoMore) {
  const OutputTolerance tolerance{.op_class = OpClass::rounding};
  const double t = relative_tolerance(tolerance);
  EXPECT_DOUBLE_EQ(t, 8 * 0x1p-24);
  EXPECT_TRUE(compare_tensors("y", tensor({1 + 0.9 * t, -1}), tensor({1, -1}), nullptr, tolerance).ok);
  EXPECT_FALSE(compare_tensors("y", tensor({1 + 1.2 * t, -1}), tensor({1, -1}), nullptr, tolerance).ok);
}

TEST(Compare, ReductionsGrowWithTheAccumulatorOnly) {
  const auto of = [](Precision p, int64_t k) {
    return relative_tolerance({.op_class = OpClass::reduction, .reduction_length = k, .precision = p});
  };
  EXPECT_DOUBLE_EQ(of(Precision::fp32, 1024), 4 * 0x1p-24 * 33);
  EXPECT_DOUBLE_EQ(of(Precision::bf16, 1024), 4 * (0x1p-8 + 0x1p-24 * 32));
  EXPECT_LT(of(Precision::bf16, 1 << 20), 0.02);  // zeros must never pass
}

TEST(Compare, NaNMatchesNaNAndInfinityItsEqual) {
  const double nan = std::nan(""), inf = INFINITY;
  EXPECT_TRUE(compare_tensors("y", tensor({nan, inf, 1}), tensor({nan, inf, 1}), nullptr, kExact).ok);
  EXPECT_FALSE(compare_tensors("y", tensor({1, inf, 1}), tensor({nan, inf, 1}), nullptr, kExact).ok);
  EXPECT_FALSE(compare_tensors("y", tensor({nan, -inf, 1}), tensor({nan, inf, 1}), nullptr, {}).ok);
}

TEST(Compare, ADeclaredMagnitudeHelpsASmallSumOfLargeTerms) {
  OutputTolerance tolerance{.op_class = OpClass::reduction, .reduction_length = 100};
  EXPECT_FALSE(compare_tensors("d", tensor({1e-3 + 1e-6}), tensor({1e-3}), nullptr, tolerance).ok);
  tolerance.magnitude = 10;
  EXPECT_TRUE(compare_tensors("d", tensor({1e-3 + 1e-6}), tensor({1e-3}), nullptr, tolerance).ok);
}

TEST(Compare, SaysWhenItProvesLittle) {
  EXPECT_TRUE(compare_tensors("y", tensor({0, 0}), tensor({0, 0}), nullptr, kExact).proves_little);
  EXPECT_FALSE(compare_tensors("y", tensor({0, 1}), tensor({0, 1}), nullptr, kExact).proves_little);
}

}  // namespace
}  // namespace dlbench
