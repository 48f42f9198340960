// gemm: transposes, leading dimensions, strides, batches, alpha and beta, epilogues, tile limits, NaN, refused specs.
#include <cmath>
#include <limits>

#include "parity/parity.h"

namespace dlbench::test {
namespace {

constexpr Transpose kTransposes[] = {Transpose::no, Transpose::yes};

int64_t matrix_elements(int64_t rows, int64_t leading, int64_t columns) {
  return rows == 0 || columns == 0 ? 0 : (rows - 1) * leading + columns;
}
int64_t batch_elements(int64_t batch, int64_t stride, int64_t matrix) {
  return batch == 0 || matrix == 0 ? 0 : (batch - 1) * stride + matrix;
}

class GemmParity : public Parity {
 protected:
  static std::string describe(const GemmSpec& s) {
    std::string text = fmt::format("m={} n={} k={} {}{}", s.m, s.n, s.k, s.trans_a == Transpose::no ? 'N' : 'T',
                                   s.trans_b == Transpose::no ? 'N' : 'T');
    if (s.batch != 1) text += fmt::format(" batch={}", s.batch);
    if (s.lda || s.ldb || s.ldc) text += fmt::format(" lda={} ldb={} ldc={}", s.lda, s.ldb, s.ldc);
    if (s.stride_a >= 0 || s.stride_b >= 0 || s.stride_c >= 0)
      text += fmt::format(" strides={},{},{}", s.stride_a, s.stride_b, s.stride_c);
    if (s.alpha != 1 || s.beta != 0) text += fmt::format(" alpha={} beta={}", s.alpha, s.beta);
    if (s.epilogue != Epilogue::none) text += fmt::format(" {}", to_string(s.epilogue));
    return text;
  }

  /// Typical size of an exact value of C: k products of two N(0,1) values, C and the bias being N(0,1) as well.
  static OutputTolerance tolerance(const GemmSpec& s) {
    const double sum =
        s.alpha * s.alpha * static_cast<double>(s.k) + s.beta * s.beta + (s.epilogue == Epilogue::none ? 0 : 1);
    return tolerance_of(Op::gemm, precision(), s.k, std::sqrt(sum));
  }

  static OpCase gemm_case(GemmSpec s, bool with_pre_activation = false, int64_t offset = 0) {
    s.precision = precision();
    const GemmSpec r = s.resolved();
    const int64_t a_rows = r.trans_a == Transpose::no ? r.m : r.k, a_columns = r.trans_a == Transpose::no ? r.k : r.m;
    const int64_t b_rows = r.trans_b == Transpose::no ? r.k : r.n, b_columns = r.trans_b == Transpose::no ? r.n : r.k;
    const int64_t c_elements = batch_elements(r.batch, r.stride_c, matrix_elements(r.m, r.ldc, r.n));
    const bool has_bias = r.epilogue != Epilogue::none;
    OpCase op_case;
    op_case.name =
        name(Op::gemm, describe(s)) + (with_pre_activation ? " pre_activation" : "") + (offset ? " offset" : "");
    op_case.buffers = {
        input("a", type(), batch_elements(r.batch, r.stride_a, matrix_elements(a_rows, r.lda, a_columns))),
        input("b", type(), batch_elements(r.batch, r.stride_b, matrix_elements(b_rows, r.ldb, b_columns))),
        input("bias", type(), has_bias ? r.n : 0),
        r.beta == 0 ? output("c", type(), c_elements, tolerance(s)) : in_place("c", type(), c_elements, tolerance(s)),
        output("pre_activation", type(), with_pre_activation ? c_elements : 0, tolerance(s))};
    for (CaseBuffer& b : op_case.buffers) b.offset = offset;
    op_case.call = [s, has_bias, with_pre_activation](Ops& ops, const std::vector<void*>& p) {
      ops.gemm(s, p[0], p[1], has_bias ? p[2] : nullptr, p[3], with_pre_activation ? p[4] : nullptr);
    };
    return op_case;
  }
  static void check_gemm(const GemmSpec& s, bool with_pre_activation = false, int64_t offset = 0) {
    check(Op::gemm, gemm_case(s, with_pre_activation, offset));
  }
};

TEST_P(GemmParity, OddShapesAllTransposes) {
  struct Shape3 {
    int64_t m, n, k;
  };
  const std::vector<Shape3> shapes{{1, 1, 1},     {1, 7, 13},   {7, 1, 13},    {7, 13, 1},   {2, 3, 4},
                                   {5, 17, 33},   {16, 16, 16}, {31, 33, 29},  {64, 64, 64}, {65, 63, 127},
                                   {8, 130, 257}, {129, 9, 65}, {1, 300, 200}, {300, 1, 200}};
  for (const Shape3& shape : shapes) {
    for (const Transpose a : kTransposes) {
      for (const Transpose b : kTransposes)
        check_gemm({.trans_a = a, .trans_b = b, .m = shape.m, .n = shape.n, .k = shape.k});
    }
  }
}

TEST_P(GemmParity, EmptyExtents) {
  for (const Transpose a : kTransposes) {
    for (const Transpose b : kTransposes) {
      check_gemm({.trans_a = a, .trans_b = b, .m = 0, .n = 5, .k = 3});
      check_gemm({.trans_a = a, .trans_b = b, .m = 5, .n = 0, .k = 3});
      check_gemm({.trans_a = a, .trans_b = b, .m = 5, .n = 3, .k = 0});
      check_gemm({.trans_a = a, .trans_b = b, .m = 5, .n = 3, .k = 0, .beta = 0.5f});
      check_gemm({.trans_a = a, .trans_b = b, .m = 5, .n = 3, .k = 0, .epilogue = Epilogue::bias_relu});
      check_gemm({.trans_a = a, .trans_b = b, .m = 5, .n = 3, .k = 4, .batch = 0});
    }
  }
}

TEST_P(GemmParity, BeyondTileLimits) {
  check_gemm({.m = 257, .n = 193, .k = 129});
  check_gemm({.trans_b = Transpose::yes, .m = 300, .n = 260, .k = 140});
  check_gemm({.trans_a = Transpose::yes, .m = 140, .n = 300, .k = 260});
  check_gemm({.trans_a = Transpose::yes, .trans_b = Transpose::yes, .m = 130, .n = 140, .k = 150});
  check_gemm({.m = 8, .n = 1030, .k = 1025});  // skinny, long sums
  check_gemm({.m = 1030, .n = 8, .k = 1025});
  check_gemm({.trans_b = Transpose::yes, .m = 1, .n = 1030, .k = 1025});
  check_gemm({.trans_a = Transpose::yes, .m = 1030, .n = 515, .k = 3});  // an update from a batch of 3
  check_gemm({.m = 5, .n = 6, .k = 20011});
}

TEST_P(GemmParity, LeadingDimensionsLargerThanDense) {
  for (const Transpose a : kTransposes) {
    for (const Transpose b : kTransposes) {
      check_gemm({.trans_a = a, .trans_b = b, .m = 13, .n = 21, .k = 34, .lda = 41, .ldb = 43, .ldc = 29});
      check_gemm({.trans_a = a,
                  .trans_b = b,
                  .m = 13,
                  .n = 21,
                  .k = 34,
                  .lda = 64,
                  .ldb = 64,
                  .ldc = 64,
                  .alpha = 0.5f,
                  .beta = 2.0f});
      check_gemm({.trans_a = a, .trans_b = b, .m = 1, .n = 21, .k = 34, .lda = 41, .ldb = 43, .ldc = 29});
      check_gemm({.trans_a = a, .trans_b = b, .m = 13, .n = 1, .k = 34, .lda = 41, .ldb = 43, .ldc = 29});
    }
  }
}

TEST_P(GemmParity, AlphaAndBeta) {
  for (const float alpha : {1.0f, -0.5f, 0.0f}) {
    for (const float beta : {0.0f, 1.0f, 0.25f}) {
      for (const Transpose b : kTransposes) {
        check_gemm({.trans_b = b, .m = 33, .n = 18, .k = 65, .alpha = alpha, .beta = beta});
        check_gemm({.trans_b = b, .m = 1, .n = 70, .k = 65, .alpha = alpha, .beta = beta});
      }
    }
  }
}

TEST_P(GemmParity, Batches) {
  for (const Transpose a : kTransposes) {
    for (const Transpose b : kTransposes) {
      for (const int64_t batch : {2, 5, 33}) {
        check_gemm({.trans_a = a, .trans_b = b, .m = 9, .n = 12, .k = 16, .batch = batch});
        check_gemm({.trans_a = a, .trans_b = b, .m = 1, .n = 12, .k = 16, .batch = batch});
        // One A, or one B, for all matrices.
        check_gemm({.trans_a = a, .trans_b = b, .m = 9, .n = 12, .k = 16, .batch = batch, .stride_a = 0});
        check_gemm({.trans_a = a, .trans_b = b, .m = 9, .n = 12, .k = 16, .batch = batch, .stride_b = 0});
        // Gaps between rows and between matrices stay as they were.
        check_gemm({.trans_a = a,
                    .trans_b = b,
                    .m = 9,
                    .n = 12,
                    .k = 16,
                    .batch = batch,
                    .lda = 18,
                    .ldb = 20,
                    .ldc = 15,
                    .stride_a = 400,
                    .stride_b = 410,
                    .stride_c = 201,
                    .alpha = 2.0f,
                    .beta = -1.0f});
      }
    }
  }
  check_gemm({.trans_b = Transpose::yes, .m = 64, .n = 64, .k = 32, .batch = 12});  // attention: scores
  check_gemm({.m = 64, .n = 32, .k = 64, .batch = 12});                             // attention: values
}

TEST_P(GemmParity, InterleavedInputs) {
  // Rows of the matrices of A and B alternate, as heads do in [B, T, NH, C/NH].
  check_gemm({.trans_b = Transpose::yes,
              .m = 10,
              .n = 11,
              .k = 6,
              .batch = 3,
              .lda = 18,
              .ldb = 18,
              .stride_a = 6,
              .stride_b = 6});
}

TEST_P(GemmParity, Epilogues) {
  for (const Epilogue epilogue : {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu}) {
    for (const bool pre_activation : {false, true}) {
      if (pre_activation && epilogue == Epilogue::bias) continue;
      for (const Transpose b : kTransposes) {
        check_gemm({.trans_b = b, .m = 33, .n = 50, .k = 20, .epilogue = epilogue}, pre_activation);
        check_gemm({.trans_b = b, .m = 1, .n = 50, .k = 20, .epilogue = epilogue}, pre_activation);
        check_gemm({.trans_b = b, .m = 33, .n = 1, .k = 20, .epilogue = epilogue}, pre_activation);
        check_gemm({.trans_b = b, .m = 128, .n = 256, .k = 64, .alpha = 0.125f, .epilogue = epilogue}, pre_activation);
        check_gemm({.trans_b = b, .m = 33, .n = 50, .k = 20, .lda = 24, .ldb = 56, .ldc = 64, .epilogue = epilogue},
                   pre_activation);
        check_gemm({.trans_b = b, .m = 9, .n = 24, .k = 20, .batch = 3, .epilogue = epilogue}, pre_activation);
      }
    }
  }
}

TEST_P(GemmParity, UnalignedAddresses) {
  for (const Transpose a : kTransposes) {
    for (const Transpose b : kTransposes) {
      check_gemm({.trans_a = a, .trans_b = b, .m = 32, .n = 48, .k = 64}, false, 1);
      check_gemm({.trans_a = a, .trans_b = b, .m = 32, .n = 48, .k = 64, .epilogue = Epilogue::bias_gelu}, true, 1);
      check_gemm({.trans_a = a, .trans_b = b, .m = 1, .n = 48, .k = 64, .alpha = 2.0f, .beta = 1.0f}, false, 1);
    }
  }
}

TEST_P(GemmParity, NaNStaysInItsRowAndColumn) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const Transpose a : kTransposes) {
    for (const Transpose b : kTransposes) {
      OpCase op_case = gemm_case({.trans_a = a, .trans_b = b, .m = 20, .n = 24, .k = 36});
      const auto plant = [](CaseBuffer& buffer, int64_t at, double value) {
        buffer.start = Start::values;
        buffer.values.assign(static_cast<size_t>(buffer.elements), 0.5);
        buffer.values[static_cast<size_t>(at)] = value;
      };
      plant(op_case.buffers[0], a == Transpose::no ? 7 * 36 + 35 : 35 * 20 + 7, nan);
      plant(op_case.buffers[1], b == Transpose::no ? 3 * 24 + 11 : 11 * 36 + 3, infinity);
      op_case.name += " special values";
      check(Op::gemm, op_case);
    }
  }
}

TEST_P(GemmParity, ContradictionsAreRefused) {
  if (!supported(Op::gemm)) return;
  Ops& ops = device_under_test().ops();
  DeviceBuffer memory(device_under_test(), 1 << 16);
  void* p = memory.data();
  const auto refused = [&](GemmSpec s) {
    s.precision = precision();
    EXPECT_THROW(ops.gemm(s, p, p, p, p, nullptr), std::invalid_argument) << describe(s);
  };
  refused({.m = -1, .n = 2, .k = 2});
  refused({.m = 2, .n = 2, .k = 2, .batch = -1});
  refused({.m = 4, .n = 4, .k = 4, .lda = 3});
  refused({.m = 4, .n = 4, .k = 4, .ldb = 3});
  refused({.m = 4, .n = 4, .k = 4, .ldc = 3});
  refused({.trans_a = Transpose::yes, .m = 4, .n = 2, .k = 2, .lda = 3});
  refused({.m = 4, .n = 4, .k = 4, .batch = 2, .stride_c = 15});
  refused({.m = 4, .n = 4, .k = 4, .beta = 1.0f, .epilogue = Epilogue::bias});
  refused({.m = int64_t{1} << 40, .n = int64_t{1} << 40, .k = 1});
}

DLB_EVERY_PRECISION(GemmParity);

}  // namespace
}  // namespace dlbench::test
