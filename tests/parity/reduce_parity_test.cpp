// Reductions, dot products and matrix-vector products.
#include <cmath>
#include <limits>

#include "parity/parity.h"

namespace dlbench::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class ReduceParity : public Parity {};

TEST_P(ReduceParity, SumAndMaxOverEveryAxis) {
  struct Extents {
    int64_t outer, extent, inner;
  };
  const std::vector<Extents> all{{1, 0, 1},    {3, 0, 5},    {0, 4, 3},     {4, 3, 0},      {1, 1, 1},
                                 {1, 7, 1},    {1, 1000, 1}, {1, 70001, 1}, {5, 33, 1},     {64, 257, 1},
                                 {1000, 3, 1}, {1, 5, 7},    {1, 129, 65},  {1, 1000, 33},  {1, 3, 2050},
                                 {3, 5, 7},    {2, 130, 34}, {7, 1, 9},     {1, 4096, 128}, {300, 16, 4}};
  for (const Extents& e : all) {
    for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
      const ReduceSpec spec{
          .precision = precision(), .reduction = reduction, .outer = e.outer, .extent = e.extent, .inner = e.inner};
      const bool sum = reduction == Reduction::sum;
      OutputTolerance tolerance =
          tolerance_of(Op::reduce, precision(), e.extent, std::sqrt(static_cast<double>(e.extent)));
      if (!sum) tolerance = tolerance_of(Op::copy, precision());  // a maximum is chosen, not computed: exact
      for (const int64_t offset : {0, 1}) {
        OpCase op_case{
            name(Op::reduce, fmt::format("{} outer={} extent={} inner={} offset={}", sum ? "sum" : "max", e.outer,
                                         e.extent, e.inner, offset)),
            {input("x", type(), e.outer * e.extent * e.inner), output("y", type(), e.outer * e.inner, tolerance)},
            [&](Ops& ops, const std::vector<void*>& p) { ops.reduce(spec, p[0], p[1]); }};
        for (CaseBuffer& b : op_case.buffers) b.offset = offset;
        check(Op::reduce, op_case);
      }
    }
  }
}

TEST_P(ReduceParity, NaNAndInfinity) {
  // Rows of 40: NaN in the middle; infinity; both infinities; only -infinity; NaN last.
  std::vector<double> x;
  for (int row = 0; row < 5; ++row) {
    for (int i = 0; i < 40; ++i) {
      double value = row == 3 ? -kInfinity : 0.25 * i;
      if (row == 0 && i == 20) value = kNaN;
      if (row == 1 && i == 7) value = kInfinity;
      if (row == 2 && i == 3) value = kInfinity;
      if (row == 2 && i == 30) value = -kInfinity;
      if (row == 4 && i == 39) value = kNaN;
      x.push_back(value);
    }
  }
  for (const Reduction reduction : {Reduction::sum, Reduction::max}) {
    for (const bool columns : {false, true}) {
      const ReduceSpec spec{.precision = precision(),
                            .reduction = reduction,
                            .outer = columns ? 1 : 5,
                            .extent = columns ? 5 : 40,
                            .inner = columns ? 40 : 1};
      check(Op::reduce, {name(Op::reduce, fmt::format("special values, {}", columns ? "columns" : "rows")),
                         {input_values("x", type(), x), output("y", type(), spec.outer * spec.inner,
                                                               tolerance_of(Op::reduce, precision(), spec.extent))},
                         [&](Ops& ops, const std::vector<void*>& p) { ops.reduce(spec, p[0], p[1]); }});
    }
  }
}

TEST_P(ReduceParity, Dot) {
  const DType result = accumulate_of(precision());
  for (const int64_t n : {0, 1, 2, 5, 8, 31, 33, 257, 1000, 4097, 70001}) {
    for (const int64_t batch : {0, 1, 3}) {
      const VectorSpec spec{.precision = precision(), .n = n, .batch = batch};
      for (const int64_t offset : {0, 1}) {
        OpCase op_case{
            name(Op::dot, fmt::format("n={} batch={} offset={}", n, batch, offset)),
            {input("x", type(), n * batch), input("y", type(), n * batch),
             output("out", result, batch, tolerance_of(Op::dot, precision(), n, std::sqrt(static_cast<double>(n))))},
            [&](Ops& ops, const std::vector<void*>& p) { ops.dot(spec, p[0], p[1], p[2]); }};
        for (CaseBuffer& b : op_case.buffers) b.offset = offset;
        check(Op::dot, op_case);
      }
    }
  }
  for (const int64_t batch : {65, 1030}) {
    const VectorSpec spec{.precision = precision(), .n = 19, .batch = batch};
    check(Op::dot, {name(Op::dot, fmt::format("n=19 batch={}", batch)),
                    {input("x", type(), 19 * batch), input("y", type(), 19 * batch),
                     output("out", result, batch, tolerance_of(Op::dot, precision(), 19))},
                    [&](Ops& ops, const std::vector<void*>& p) { ops.dot(spec, p[0], p[1], p[2]); }});
  }
}

TEST_P(ReduceParity, Gemv) {
  struct Extents {
    int64_t m, n;
  };
  const std::vector<Extents> all{{0, 0}, {0, 5},   {5, 0},    {1, 1},    {1, 33},   {33, 1},
                                 {7, 9}, {64, 64}, {65, 127}, {3, 5000}, {5000, 3}, {513, 257}};
  for (const Extents& e : all) {
    for (const Transpose trans : {Transpose::no, Transpose::yes}) {
      for (const int64_t batch : {0, 1, 4}) {
        for (const bool shared : {false, true}) {
          const GemvSpec spec{
              .precision = precision(), .trans = trans, .m = e.m, .n = e.n, .batch = batch, .shared_matrix = shared};
          const bool transposed = trans == Transpose::yes;
          const int64_t length = transposed ? e.m : e.n, outputs = transposed ? e.n : e.m;
          const OutputTolerance tolerance =
              tolerance_of(Op::gemv, precision(), length, std::sqrt(static_cast<double>(length)));
          for (const int64_t offset : {0, 1}) {
            OpCase op_case{name(Op::gemv, fmt::format("m={} n={} {} batch={}{} offset={}", e.m, e.n,
                                                      transposed ? "T" : "N", batch, shared ? " shared" : "", offset)),
                           {input("a", type(), e.m * e.n * (shared ? 1 : batch)), input("x", type(), length * batch),
                            output("y", type(), outputs * batch, tolerance)},
                           [&](Ops& ops, const std::vector<void*>& p) { ops.gemv(spec, p[0], p[1], p[2]); }};
            for (CaseBuffer& b : op_case.buffers) b.offset = offset;
            check(Op::gemv, op_case);
          }
        }
      }
    }
  }
}

TEST_P(ReduceParity, GemvKeepsNaNInItsRow) {
  constexpr int64_t kM = 9, kN = 21;
  std::vector<double> a(kM * kN, 0.5);
  a[4 * kN + 3] = kNaN;
  a[6 * kN + 20] = kInfinity;
  for (const Transpose trans : {Transpose::no, Transpose::yes}) {
    const bool transposed = trans == Transpose::yes;
    const GemvSpec spec{.precision = precision(), .trans = trans, .m = kM, .n = kN};
    check(Op::gemv,
          {name(Op::gemv, transposed ? "special values T" : "special values N"),
           {input_values("a", type(), a), input("x", type(), transposed ? kM : kN),
            output("y", type(), transposed ? kN : kM, tolerance_of(Op::gemv, precision(), transposed ? kM : kN))},
           [&](Ops& ops, const std::vector<void*>& p) { ops.gemv(spec, p[0], p[1], p[2]); }});
  }
}

TEST_P(ReduceParity, NegativeExtentsAreRefused) {
  Ops& ops = device_under_test().ops();
  DeviceBuffer memory(device_under_test(), 256);
  void* p = memory.data();
  if (supported(Op::reduce)) {
    EXPECT_THROW(ops.reduce({.precision = precision(), .extent = -1}, p, p), std::invalid_argument);
  }
  if (supported(Op::gemv)) {
    EXPECT_THROW(ops.gemv({.precision = precision(), .m = -1, .n = 2}, p, p, p), std::invalid_argument);
  }
}

DLB_EVERY_PRECISION(ReduceParity);

}  // namespace
}  // namespace dlbench::test
