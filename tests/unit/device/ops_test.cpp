// Specs: defaults filled in, contradictions refused; names of every enumerator.
#include "core/device/ops.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <stdexcept>

namespace dlbench {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max() / 2;

TEST(GemmSpec, ResolvesToDense) {
  const GemmSpec s = GemmSpec{.m = 2, .n = 3, .k = 4, .batch = 5}.resolved();
  EXPECT_EQ(s.lda, 4);
  EXPECT_EQ(s.ldb, 3);
  EXPECT_EQ(s.ldc, 3);
  EXPECT_EQ(s.stride_a, 8);
  EXPECT_EQ(s.stride_b, 12);
  EXPECT_EQ(s.stride_c, 6);
  const GemmSpec t = GemmSpec{.trans_a = Transpose::yes, .trans_b = Transpose::yes, .m = 2, .n = 3, .k = 4}.resolved();
  EXPECT_EQ(t.lda, 2);
  EXPECT_EQ(t.ldb, 4);
  EXPECT_EQ(t.stride_a, 8);
  EXPECT_EQ(t.resolved(), t);
}

TEST(GemmSpec, KeepsWhatWasGiven) {
  const GemmSpec s = GemmSpec{.m = 2, .n = 3, .k = 4, .batch = 2, .lda = 7, .stride_a = 0, .stride_c = 100}.resolved();
  EXPECT_EQ(s.lda, 7);
  EXPECT_EQ(s.stride_a, 0);
  EXPECT_EQ(s.stride_c, 100);
}

TEST(GemmSpec, EmptyExtentsAreFine) {
  EXPECT_EQ((GemmSpec{.m = 0, .n = 0, .k = 0}.resolved().ldc), 1);
  EXPECT_NO_THROW((GemmSpec{.m = 0, .n = 3, .k = 4, .batch = 3, .stride_c = 0}.resolved()));
}

TEST(GemmSpec, RefusesContradictions) {
  for (const GemmSpec& s :
       {GemmSpec{.m = -1, .n = 1, .k = 1}, GemmSpec{.m = 1, .n = -1, .k = 1}, GemmSpec{.m = 1, .n = 1, .k = -1},
        GemmSpec{.m = 1, .n = 1, .k = 1, .batch = -1}, GemmSpec{.m = 4, .n = 4, .k = 4, .lda = 3},
        GemmSpec{.m = 4, .n = 4, .k = 4, .ldb = 3}, GemmSpec{.m = 4, .n = 4, .k = 4, .ldc = 3},
        GemmSpec{.m = 4, .n = 4, .k = 4, .lda = -4}, GemmSpec{.m = 4, .n = 4, .k = 4, .batch = 2, .stride_c = 15},
        GemmSpec{.m = 4, .n = 4, .k = 4, .batch = 2, .stride_c = 0},
        GemmSpec{.m = 4, .n = 4, .k = 4, .beta = 1, .epilogue = Epilogue::bias}, GemmSpec{.m = kHuge, .n = 4, .k = 1},
        GemmSpec{.m = 4, .n = 4, .k = 4, .batch = kHuge}, GemmSpec{.m = 4, .n = 4, .k = 4, .lda = kHuge}}) {
    EXPECT_THROW(s.resolved(), std::invalid_argument) << s.m << ' ' << s.n << ' ' << s.k << ' ' << s.batch << ' '
                                                      << s.lda << ' ' << s.ldb << ' ' << s.ldc << ' ' << s.stride_c;
  }
  // The last row of one matrix may end where the next begins.
  EXPECT_NO_THROW((GemmSpec{.m = 4, .n = 4, .k = 4, .batch = 2, .ldc = 10, .stride_c = 34}.resolved()));
  EXPECT_THROW((GemmSpec{.m = 4, .n = 4, .k = 4, .batch = 2, .ldc = 10, .stride_c = 33}.resolved()),
               std::invalid_argument);
}

TEST(RequireValid, RefusesNegativeExtentsAndOverflow) {
  EXPECT_NO_THROW(require_valid(VectorSpec{.n = 0, .batch = 0}));
  EXPECT_THROW(require_valid(VectorSpec{.n = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(VectorSpec{.n = 1, .batch = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(VectorSpec{.n = kHuge, .batch = 3}), std::invalid_argument);
  EXPECT_THROW(require_valid(MatrixSpec{.rows = -1, .columns = 0}), std::invalid_argument);
  EXPECT_THROW(require_valid(ReduceSpec{.extent = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(GemvSpec{.m = 1, .n = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(ConvertSpec{.n = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(FillSpec{.n = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(FillSpec{.n = 1, .scale = std::numeric_limits<double>::infinity()}),
               std::invalid_argument);
  EXPECT_THROW(require_valid(FmaPeakSpec{.iterations = -1}), std::invalid_argument);
  EXPECT_THROW(require_valid(FmaPeakSpec{.iterations = (1 << 24) + 1}), std::invalid_argument);
  EXPECT_NO_THROW(require_valid(FmaPeakSpec{.iterations = 1 << 24}));
}

TEST(Names, AreDistinct) {
  std::set<std::string_view> names;
  for (int op = 0; op <= static_cast<int>(Op::fma_peak); ++op) names.insert(to_string(static_cast<Op>(op)));
  EXPECT_EQ(names.size(), static_cast<size_t>(Op::fma_peak) + 1);
  EXPECT_EQ(to_string(Op::gelu_backward), "gelu_backward");
  EXPECT_EQ(class_of(Op::gemm), OpClass::reduction);
  EXPECT_EQ(class_of(Op::copy), OpClass::exact);
  EXPECT_EQ(to_string(FmaUnit::dot_product), "dot_product");
  EXPECT_EQ(to_string(Epilogue::bias_gelu), "bias_gelu");
  EXPECT_EQ(to_string(SupportLevel::emulated), "emulated");
}

}  // namespace
}  // namespace dlbench
