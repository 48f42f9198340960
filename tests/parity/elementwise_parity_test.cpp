// Element-wise ops: lengths around vector widths and block sizes, batches, odd addresses, in place, NaN and infinity.
#include <cmath>
#include <limits>

#include "parity/parity.h"

namespace dlbench::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Length {
  int64_t n, batch;
};
const std::vector<Length>& lengths() {
  static const std::vector<Length> all{{0, 1},   {1, 1},    {2, 1},    {3, 3},     {7, 1},  {8, 2},
                                       {15, 1},  {16, 1},   {31, 1},   {33, 5},    {64, 1}, {255, 1},
                                       {256, 3}, {1000, 1}, {4097, 1}, {70001, 1}, {5, 0}};
  return all;
}

class ElementwiseParity : public Parity {
 protected:
  using Call1 = std::function<void(Ops&, const VectorSpec&, const void* x, void* y)>;
  using Call2 = std::function<void(Ops&, const VectorSpec&, const void* x, const void* y, void* z)>;

  static std::string size_name(Op op, const Length& l, int64_t offset, const char* how = "") {
    return name(op, fmt::format("n={} batch={} offset={}{}", l.n, l.batch, offset, how));
  }

  /// y = f(x) out of place and in place, at every length, aligned and not.
  static void check_1(Op op, bool may_be_in_place, const Call1& f) {
    for (const Length& l : lengths()) {
      const VectorSpec spec{.precision = precision(), .n = l.n, .batch = l.batch};
      const int64_t count = l.n * l.batch;
      for (const int64_t offset : {0, 1, 3}) {
        OpCase apart{size_name(op, l, offset),
                     {input("x", type(), count), output("y", type(), count, tolerance_of(op, precision()))},
                     [&](Ops& ops, const std::vector<void*>& p) { f(ops, spec, p[0], p[1]); }};
        apart.buffers[0].offset = offset;
        apart.buffers[1].offset = offset == 3 ? 2 : offset;  // 3: the two addresses differ in alignment
        check(op, apart);
        if (!may_be_in_place) continue;
        OpCase same{size_name(op, l, offset, " in place"),
                    {in_place("x", type(), count, tolerance_of(op, precision()))},
                    [&](Ops& ops, const std::vector<void*>& p) { f(ops, spec, p[0], p[0]); }};
        same.buffers[0].offset = offset;
        check(op, same);
      }
    }
  }

  /// z = f(x, y); in place: z is x.
  static void check_2(Op op, bool may_be_in_place, const Call2& f) {
    for (const Length& l : lengths()) {
      const VectorSpec spec{.precision = precision(), .n = l.n, .batch = l.batch};
      const int64_t count = l.n * l.batch;
      for (const int64_t offset : {0, 1, 3}) {
        OpCase apart{size_name(op, l, offset),
                     {input("x", type(), count), input("y", type(), count),
                      output("z", type(), count, tolerance_of(op, precision()))},
                     [&](Ops& ops, const std::vector<void*>& p) { f(ops, spec, p[0], p[1], p[2]); }};
        apart.buffers[0].offset = offset;
        apart.buffers[1].offset = offset == 3 ? 0 : offset;
        apart.buffers[2].offset = offset == 3 ? 2 : offset;
        check(op, apart);
        if (!may_be_in_place) continue;
        OpCase same{size_name(op, l, offset, " in place"),
                    {in_place("x", type(), count, tolerance_of(op, precision())), input("y", type(), count)},
                    [&](Ops& ops, const std::vector<void*>& p) { f(ops, spec, p[0], p[1], p[0]); }};
        same.buffers[0].offset = offset;
        check(op, same);
      }
    }
  }

  /// Special values, one op call over all of them (several times, so that vector loops and their tails both see them).
  static std::vector<double> repeated(const std::vector<double>& values) {
    std::vector<double> all;
    for (int i = 0; i < 13; ++i) all.insert(all.end(), values.begin(), values.end());
    return all;
  }
};

TEST_P(ElementwiseParity, Copy) {
  check_1(Op::copy, false, [](Ops& ops, const VectorSpec& s, const void* x, void* y) { ops.copy(s, x, y); });
}

TEST_P(ElementwiseParity, Triad) {
  check_2(Op::triad, false,
          [](Ops& ops, const VectorSpec& s, const void* x, const void* y, void* z) { ops.triad(s, 1.7f, x, y, z); });
}

TEST_P(ElementwiseParity, Axpy) {
  for (const Length& l : lengths()) {
    const VectorSpec spec{.precision = precision(), .n = l.n, .batch = l.batch};
    for (const int64_t offset : {0, 1, 3}) {
      OpCase op_case{size_name(Op::axpy, l, offset),
                     {input("x", type(), l.n * l.batch),
                      in_place("y", type(), l.n * l.batch, tolerance_of(Op::axpy, precision()))},
                     [&](Ops& ops, const std::vector<void*>& p) { ops.axpy(spec, -0.37f, p[0], p[1]); }};
      op_case.buffers[0].offset = offset;
      op_case.buffers[1].offset = offset == 3 ? 2 : offset;
      check(Op::axpy, op_case);
    }
  }
}

TEST_P(ElementwiseParity, ReluForward) {
  check_1(Op::relu_forward, true,
          [](Ops& ops, const VectorSpec& s, const void* x, void* y) { ops.relu_forward(s, x, y); });
}

TEST_P(ElementwiseParity, ReluBackward) {
  check_2(Op::relu_backward, true, [](Ops& ops, const VectorSpec& s, const void* dy, const void* y, void* dx) {
    ops.relu_backward(s, dy, y, dx);
  });
}

TEST_P(ElementwiseParity, GeluForward) {
  check_1(Op::gelu_forward, true,
          [](Ops& ops, const VectorSpec& s, const void* x, void* y) { ops.gelu_forward(s, x, y); });
}

TEST_P(ElementwiseParity, GeluBackward) {
  check_2(Op::gelu_backward, true, [](Ops& ops, const VectorSpec& s, const void* dy, const void* x, void* dx) {
    ops.gelu_backward(s, dy, x, dx);
  });
}

TEST_P(ElementwiseParity, Bias) {
  for (const int64_t rows : {0, 1, 3, 17, 130}) {
    for (const int64_t columns : {0, 1, 5, 8, 64, 333, 1030}) {
      const MatrixSpec spec{.precision = precision(), .rows = rows, .columns = columns};
      const OutputTolerance tolerance = tolerance_of(Op::bias, precision());
      for (const int64_t offset : {0, 1}) {
        OpCase apart{name(Op::bias, fmt::format("{}x{} offset={}", rows, columns, offset)),
                     {input("x", type(), rows * columns), input("bias", type(), columns),
                      output("y", type(), rows * columns, tolerance)},
                     [&](Ops& ops, const std::vector<void*>& p) { ops.bias(spec, p[0], p[1], p[2]); }};
        for (CaseBuffer& b : apart.buffers) b.offset = offset;
        check(Op::bias, apart);
        OpCase same{name(Op::bias, fmt::format("{}x{} offset={} in place", rows, columns, offset)),
                    {in_place("x", type(), rows * columns, tolerance), input("bias", type(), columns)},
                    [&](Ops& ops, const std::vector<void*>& p) { ops.bias(spec, p[0], p[1], p[0]); }};
        same.buffers[0].offset = offset;
        check(Op::bias, same);
      }
    }
  }
}

TEST_P(ElementwiseParity, ReluKeepsNaNAndInfinity) {
  const std::vector<double> x = repeated({kNaN, kInfinity, -kInfinity, 0.0, -0.0, -1.0, 2.0});
  const int64_t n = static_cast<int64_t>(x.size());
  const VectorSpec spec{.precision = precision(), .n = n};
  check(Op::relu_forward,
        {name(Op::relu_forward, "special values"),
         {input_values("x", type(), x), output("y", type(), n, tolerance_of(Op::relu_forward, precision()))},
         [&](Ops& ops, const std::vector<void*>& p) { ops.relu_forward(spec, p[0], p[1]); }});
  // dx = y > 0 ? dy : 0 : a NaN gradient passes only where the unit was on; a NaN output counts as off.
  const std::vector<double> dy = repeated({kNaN, kNaN, kInfinity, kInfinity, 1.0, 1.0, -kInfinity});
  const std::vector<double> y = repeated({1.0, 0.0, 2.0, 0.0, kNaN, kInfinity, 3.0});
  check(Op::relu_backward, {name(Op::relu_backward, "special values"),
                            {input_values("dy", type(), dy), input_values("y", type(), y),
                             output("dx", type(), n, tolerance_of(Op::relu_backward, precision()))},
                            [&](Ops& ops, const std::vector<void*>& p) { ops.relu_backward(spec, p[0], p[1], p[2]); }});
}

TEST_P(ElementwiseParity, GeluLimits) {
  const std::vector<double> x = repeated({kNaN, kInfinity, -kInfinity, 0.0, 30.0, -30.0, 60000.0, -60000.0, 1e-3});
  const int64_t n = static_cast<int64_t>(x.size());
  const VectorSpec spec{.precision = precision(), .n = n};
  check(Op::gelu_forward,
        {name(Op::gelu_forward, "special values"),
         {input_values("x", type(), x), output("y", type(), n, tolerance_of(Op::gelu_forward, precision()))},
         [&](Ops& ops, const std::vector<void*>& p) { ops.gelu_forward(spec, p[0], p[1]); }});
  check(Op::gelu_backward, {name(Op::gelu_backward, "special values"),
                            {input("dy", type(), n), input_values("x", type(), x),
                             output("dx", type(), n, tolerance_of(Op::gelu_backward, precision()))},
                            [&](Ops& ops, const std::vector<void*>& p) { ops.gelu_backward(spec, p[0], p[1], p[2]); }});
}

TEST_P(ElementwiseParity, TriadAndAxpyPassNaNAndInfinityOn) {
  const std::vector<double> x = repeated({kNaN, 1.0, kInfinity, 1.0, kInfinity}),
                            y = repeated({1.0, kNaN, 1.0, -kInfinity, -kInfinity});
  const int64_t n = static_cast<int64_t>(x.size());
  const VectorSpec spec{.precision = precision(), .n = n};
  check(Op::triad, {name(Op::triad, "special values"),
                    {input_values("x", type(), x), input_values("y", type(), y),
                     output("z", type(), n, tolerance_of(Op::triad, precision()))},
                    [&](Ops& ops, const std::vector<void*>& p) { ops.triad(spec, 2.0f, p[0], p[1], p[2]); }});
  OpCase axpy{name(Op::axpy, "special values"),
              {input_values("x", type(), x), input_values("y", type(), y)},
              [&](Ops& ops, const std::vector<void*>& p) { ops.axpy(spec, 2.0f, p[0], p[1]); }};
  axpy.buffers[1].output = true;
  axpy.buffers[1].tolerance = tolerance_of(Op::axpy, precision());
  check(Op::axpy, axpy);
}

TEST_P(ElementwiseParity, FillNormalHasTheSameBitsEverywhere) {
  for (const int64_t n : {0, 1, 2, 3, 17, 1000, 70001}) {
    for (const int64_t offset : {0, 1}) {
      for (const double scale : {1.0, 0.02}) {
        const FillSpec spec{.type = type(), .n = n, .seed = 42, .stream = 0x123456789ABCDEFull, .scale = scale};
        OpCase op_case{name(Op::fill_normal, fmt::format("n={} offset={} scale={}", n, offset, scale)),
                       {output("x", type(), n, tolerance_of(Op::fill_normal, precision()))},
                       [&](Ops& ops, const std::vector<void*>& p) { ops.fill_normal(spec, p[0]); }};
        op_case.buffers[0].bitwise = true;
        op_case.buffers[0].offset = offset;
        EXPECT_EQ(check_case(device_under_test(), oracle(), op_case), "");  // every storage type can be filled
      }
    }
  }
}

TEST_P(ElementwiseParity, NegativeExtentsAreRefused) {
  Ops& ops = device_under_test().ops();
  DeviceBuffer memory(device_under_test(), 256);
  void* p = memory.data();
  const VectorSpec vector{.precision = precision(), .n = -1};
  const auto refused = [](Op op, const auto& call) {
    if (supported(op)) {
      EXPECT_THROW(call(), std::invalid_argument) << to_string(op);
    }
  };
  refused(Op::copy, [&] { ops.copy(vector, p, p); });
  refused(Op::triad, [&] { ops.triad(vector, 1, p, p, p); });
  refused(Op::axpy, [&] { ops.axpy(vector, 1, p, p); });
  refused(Op::relu_forward, [&] { ops.relu_forward(vector, p, p); });
  refused(Op::relu_backward, [&] { ops.relu_backward(vector, p, p, p); });
  refused(Op::gelu_forward, [&] { ops.gelu_forward(vector, p, p); });
  refused(Op::gelu_backward, [&] { ops.gelu_backward(vector, p, p, p); });
  refused(Op::dot, [&] { ops.dot(vector, p, p, p); });
  refused(Op::bias, [&] { ops.bias({.precision = precision(), .rows = 1, .columns = -1}, p, p, p); });
}

DLB_EVERY_PRECISION(ElementwiseParity);

}  // namespace
}  // namespace dlbench::test
