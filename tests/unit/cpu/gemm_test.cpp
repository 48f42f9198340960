// Every plan of the matrix product computes the same product, on odd shapes, with every epilogue.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/math/activation.h"
#include "core/tensor/tensor.h"
#include "cpu/device.h"

namespace dlbench::cpu {
namespace {

HostTensor random_tensor(int64_t n, DType type, uint64_t stream) {
  HostTensor t({n}, type);
  for (int64_t i = 0; i < n; ++i)
    t.set(i,
          static_cast<double>(normal_value(1, stream, static_cast<uint64_t>(i), static_cast<float>(kIrwinHallScale))));
  return t;
}

struct Problem {
  GemmSpec spec;
  HostTensor a, b, c, bias, pre;
  explicit Problem(const GemmSpec& s) : spec(s.resolved()) {
    const DType type = storage_of(s.precision);
    const auto extent = [&](Transpose t, int64_t rows, int64_t columns, int64_t leading, int64_t stride) {
      return (s.batch - 1) * stride + ((t == Transpose::no ? rows : columns) - 1) * leading +
             (t == Transpose::no ? columns : rows) + 8;
    };
    a = random_tensor(std::max<int64_t>(8, extent(s.trans_a, s.m, s.k, spec.lda, spec.stride_a)), type, 1);
    b = random_tensor(std::max<int64_t>(8, extent(s.trans_b, s.k, s.n, spec.ldb, spec.stride_b)), type, 2);
    c = random_tensor(std::max<int64_t>(8, extent(Transpose::no, s.m, s.n, spec.ldc, spec.stride_c)), type, 3);
    bias = random_tensor(s.n + 8, type, 4);
    pre = random_tensor(c.size(), type, 5);
  }

  double expected(int64_t matrix, int64_t i, int64_t j, double* before) const {
    double sum = 0;
    for (int64_t p = 0; p < spec.k; ++p) {
      const int64_t ia = matrix * spec.stride_a + (spec.trans_a == Transpose::no ? i * spec.lda + p : p * spec.lda + i);
      const int64_t ib = matrix * spec.stride_b + (spec.trans_b == Transpose::no ? p * spec.ldb + j : j * spec.ldb + p);
      sum += a.at(ia) * b.at(ib);
    }
    double value = static_cast<double>(spec.alpha) * sum;
    if (spec.beta != 0.0f) value += static_cast<double>(spec.beta) * c.at(matrix * spec.stride_c + i * spec.ldc + j);
    if (spec.epilogue != Epilogue::none) value += bias.at(j);
    *before = value;
    if (spec.epilogue == Epilogue::bias_relu) return ReluForward{}(value);
    if (spec.epilogue == Epilogue::bias_gelu) return GeluForward{}(value);
    return value;
  }
};

/// Runs the spec and compares every element of C and of the values before activation; what lies outside C must not
/// change.
void check(CpuDevice& device, const GemmSpec& spec, const std::string& what) {
  Problem p(spec);
  HostTensor c = p.c, pre = p.pre;
  auto& ops = static_cast<CpuOps&>(device.ops());
  const bool activated = spec.epilogue != Epilogue::none;
  ops.gemm(spec, p.a.data(), p.b.data(), activated ? p.bias.data() : nullptr, c.data(),
           activated ? pre.data() : nullptr);
  const double tolerance = 20 * info(spec.precision).unit_roundoff *
                           std::sqrt(static_cast<double>(std::max<int64_t>(1, spec.k))) *
                           std::sqrt(static_cast<double>(std::max<int64_t>(1, spec.k)));
  std::vector<bool> inside(static_cast<size_t>(c.size()));
  int wrong = 0;
  for (int64_t matrix = 0; matrix < spec.batch; ++matrix) {
    for (int64_t i = 0; i < spec.m; ++i) {
      for (int64_t j = 0; j < spec.n; ++j) {
        double before = 0;
        const int64_t at = matrix * p.spec.stride_c + i * p.spec.ldc + j;
        const double expected = p.expected(matrix, i, j, &before);
        inside[static_cast<size_t>(at)] = true;
        if (!(std::fabs(c.at(at) - expected) <= tolerance) && wrong++ < 3) {
          ADD_FAILURE() << what << ": C[" << matrix << "," << i << "," << j << "] is " << c.at(at) << ", not "
                        << expected;
        }
        if (activated && !(std::fabs(pre.at(at) - before) <= tolerance) && wrong++ < 3) {
          ADD_FAILURE() << what << ": before activation [" << i << "," << j << "] wrong";
        }
      }
    }
  }
  for (int64_t i = 0; i < c.size(); ++i) {
    if (inside[static_cast<size_t>(i)]) continue;
    ASSERT_EQ(c.at(i), p.c.at(i)) << what << ": wrote outside C at " << i;
  }
}

class GemmTest : public testing::TestWithParam<Precision> {
 protected:
  CpuDevice device_{DeviceOptions{}};
};

std::string name_of(const GemmSpec& s) {
  return std::string(s.trans_a == Transpose::no ? "N" : "T") + (s.trans_b == Transpose::no ? "N" : "T") + " " +
         std::to_string(s.m) + "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + " batch " +
         std::to_string(s.batch) + " " + std::string(to_string(s.epilogue));
}

TEST_P(GemmTest, EveryPlanOnOddShapes) {
  const GemmKernels& kernels = gemm_kernels();
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {1, 70, 33}, {3, 257, 65}, {8, 130, 300}, {15, 33, 17}, {37, 95, 301}, {70, 40, 8}}) {
    for (const Transpose ta : {Transpose::no, Transpose::yes}) {
      for (const Transpose tb : {Transpose::no, Transpose::yes}) {
        for (const Epilogue epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu}) {
          GemmSpec s{
              .precision = GetParam(), .trans_a = ta, .trans_b = tb, .m = m, .n = n, .k = k, .epilogue = epilogue};
          if (epilogue == Epilogue::none) s.alpha = 0.5f, s.beta = -1.5f;
          for (const GemmPlan& plan : gemm_candidates(s.resolved(), 2, kernels.tile_rows, kernels.tile_columns)) {
            static_cast<CpuOps&>(device_.ops()).set_gemm_plan(s, plan);
            check(device_, s, name_of(s) + " " + to_string(plan));
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(GemmTest, EveryNumberOfRows) {
  for (int64_t m = 1; m <= 30; ++m) {
    for (const Transpose tb : {Transpose::no, Transpose::yes}) {
      const GemmSpec s{.precision = GetParam(), .trans_b = tb, .m = m, .n = 150, .k = 19};
      for (const GemmPlan& plan :
           gemm_candidates(s.resolved(), 1, gemm_kernels().tile_rows, gemm_kernels().tile_columns)) {
        static_cast<CpuOps&>(device_.ops()).set_gemm_plan(s, plan);
        check(device_, s, name_of(s) + " " + to_string(plan));
      }
    }
  }
}

TEST_P(GemmTest, LeadingDimensionsStridesAndSharedMatrices) {
  GemmSpec s{
      .precision = GetParam(), .m = 9, .n = 40, .k = 21, .batch = 3, .lda = 30, .ldb = 50, .ldc = 45, .stride_b = 0};
  check(device_, s, "shared B");
  s.stride_b = -1, s.stride_a = 0, s.trans_b = Transpose::yes, s.stride_c = 9 * 45 + 7;
  check(device_, s, "shared A");
}

TEST_P(GemmTest, EmptyExtents) {
  check(device_, {.precision = GetParam(), .m = 4, .n = 5, .k = 0, .beta = 2.0f}, "k = 0 scales C");
  check(device_, {.precision = GetParam(), .m = 4, .n = 5, .k = 0, .epilogue = Epilogue::bias_gelu},
        "k = 0 leaves the bias");
  check(device_, {.precision = GetParam(), .m = 0, .n = 5, .k = 3}, "m = 0");
  check(device_, {.precision = GetParam(), .m = 5, .n = 0, .k = 3}, "n = 0");
  check(device_, {.precision = GetParam(), .m = 5, .n = 3, .k = 3, .batch = 0}, "batch = 0");
}

TEST_P(GemmTest, SecondCallAllocatesNothing) {
  const GemmSpec s{.precision = GetParam(), .m = 33, .n = 65, .k = 300};
  check(device_, s, "first");
  const int64_t before = device_.allocation_count();
  check(device_, s, "second");
  EXPECT_EQ(device_.allocation_count(), before);
}

INSTANTIATE_TEST_SUITE_P(Precisions, GemmTest,
                         testing::Values(Precision::fp32, Precision::fp64, Precision::bf16, Precision::fp16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(GemmUnits, CoverEveryElementOnce) {
  for (const auto& [m, n, batch] :
       std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {7, 100, 2}, {100, 7, 1}, {65, 33, 3}}) {
    const GemmSpec s = GemmSpec{.m = m, .n = n, .k = 5, .batch = batch}.resolved();
    for (const int64_t rows : {1, 14, 64, 200}) {
      for (const int64_t columns : {1, 32, 99}) {
        const GemmPlan plan{GemmLoops::packed, rows, columns, 256};
        std::vector<int> hits(static_cast<size_t>(m * n * batch));
        for (int64_t u = 0; u < gemm_unit_count(s, plan); ++u) {
          const GemmUnit unit = gemm_unit(s, plan, u);
          for (int64_t i = 0; i < unit.rows; ++i) {
            for (int64_t j = 0; j < unit.columns; ++j)
              hits[static_cast<size_t>((unit.matrix * m + unit.row + i) * n + unit.column + j)]++;
          }
        }
        for (const int h : hits) ASSERT_EQ(h, 1);
      }
    }
  }
}

TEST(Gemm, Tf32IsRefusedWithAReason) {
  CpuDevice device{DeviceOptions{}};
  EXPECT_EQ(device.ops().supports(Op::gemm, Precision::tf32).level, SupportLevel::no);
  float x = 0;
  EXPECT_THROW(device.ops().gemm({.precision = Precision::tf32, .m = 1, .n = 1, .k = 1}, &x, &x, nullptr, &x, nullptr),
               UnsupportedError);
}

}  // namespace
}  // namespace dlbench::cpu
