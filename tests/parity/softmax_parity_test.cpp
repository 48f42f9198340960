// Softmax and cross-entropy: lengths, strides, large values, targets that are no class, the loss scale.
#include <limits>

#include "parity/training_parity.h"

namespace dlbench::test {
namespace {

struct RowShape {
  int64_t rows, columns;
};
const RowShape kShapes[] = {{1, 1},  {3, 1}, {1, 7},  {5, 10},   {33, 17},  {4, 128},
                            {9, 65}, {2, 0}, {0, 12}, {3, 1025}, {2, 5003}, {130, 31}};

class SoftmaxParity : public TrainingParity {
 protected:
  static std::string describe(const RowsSpec& s) {
    return fmt::format("rows={} columns={} row_stride={}", s.rows, s.columns, s.row_stride);
  }
  static int64_t elements(const RowsSpec& s) { return s.rows * (s.row_stride != 0 ? s.row_stride : s.columns); }
  /// Probabilities of random rows, as the oracle has them; 0 between the rows.
  static std::vector<double> probabilities(const RowsSpec& s) {
    const HostTensor x = initial_values(input("x", type(), elements(s)));
    HostTensor y({elements(s)}, type());
    oracle().ops().softmax_forward(s, x.data(), y.data());
    std::vector<double> result;
    for (int64_t i = 0; i < y.size(); ++i) result.push_back(y.at(i));
    return result;
  }
  static double typical(const RowsSpec& s) { return 1 / static_cast<double>(std::max<int64_t>(s.columns, 1)); }

  static OpCase forward_case(const RowsSpec& s, bool same) {
    const OutputTolerance allowed = tolerance(Op::softmax_forward, s.columns, typical(s));
    return {name(Op::softmax_forward, describe(s)) + (same ? " in place" : ""),
            {same ? in_place("x", type(), elements(s), allowed) : input("x", type(), elements(s)),
             output("y", type(), same ? 0 : elements(s), allowed)},
            [s, same](Ops& ops, const std::vector<void*>& p) { ops.softmax_forward(s, p[0], same ? p[0] : p[1]); }};
  }
  static OpCase backward_case(const RowsSpec& s, bool same) {
    const OutputTolerance allowed = tolerance(Op::softmax_backward, s.columns, typical(s));
    return {
        name(Op::softmax_backward, describe(s)) + (same ? " in place" : ""),
        {same ? in_place("dy", type(), elements(s), allowed) : input("dy", type(), elements(s)),
         input_values("y", type(), probabilities(s)), output("dx", type(), same ? 0 : elements(s), allowed)},
        [s, same](Ops& ops, const std::vector<void*>& p) { ops.softmax_backward(s, p[0], p[1], same ? p[0] : p[2]); }};
  }
};

TEST_P(SoftmaxParity, Shapes) {
  for (const RowShape& shape : kShapes) {
    for (const int64_t gap : {0, 3}) {
      const RowsSpec s{precision(), shape.rows, shape.columns, gap == 0 ? 0 : shape.columns + gap};
      for (const bool same : {false, true}) {
        check(Op::softmax_forward, forward_case(s, same));
        check(Op::softmax_backward, backward_case(s, same));
      }
    }
  }
}

TEST_P(SoftmaxParity, LargeAndSpecialValues) {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  OpCase op_case = forward_case({precision(), 5, 8, 0}, false);
  op_case.buffers[0] = input_values(
      "x", type(), {1000, 1000, -1000, 999, 0,   1,   2,   1000,  // the exponentials of these overflow
                    -50,  -50,  -50,   -50, -50, -50, -50, -50,  0,  0,   0, 0,  -infinity, -infinity, 0,   0,
                    1,    nan,  2,     3,   4,   5,   6,   7,    88, -88, 0, 44, -44,       20,        -20, 5});
  op_case.name += " special values";
  check(Op::softmax_forward, op_case);
}

TEST_P(SoftmaxParity, ContradictionsAreRefused) {
  if (!supported(Op::softmax_forward)) return;
  for (const RowsSpec& s : {RowsSpec{precision(), 2, -1, 0}, RowsSpec{precision(), 2, 8, 7}}) {
    expect_refused(Op::softmax_forward, describe(s), [&](Ops& ops, void* p) { ops.softmax_forward(s, p, p); });
    expect_refused(Op::softmax_backward, describe(s), [&](Ops& ops, void* p) { ops.softmax_backward(s, p, p, p); });
    expect_refused(Op::cross_entropy, describe(s),
                   [&](Ops& ops, void* p) { ops.cross_entropy(s, p, static_cast<int32_t*>(p), nullptr, p, p); });
  }
}

DLB_EVERY_PRECISION(SoftmaxParity);

class CrossEntropyParity : public SoftmaxParity {
 protected:
  enum class Gradient { none, apart, in_place };
  static OpCase loss_case(const RowsSpec& s, Gradient wanted, float loss_scale) {
    constexpr Op op = Op::cross_entropy;
    std::vector<double> targets;
    for (int64_t r = 0; r < s.rows; ++r) {
      // Every class may come; -100 (PyTorch's ignore_index), `columns` and beyond are no classes.
      targets.push_back(r % 5 == 3 ? (r % 2 ? -100.0 : static_cast<double>(s.columns + r % 3))
                                   : static_cast<double>(s.columns > 0 ? r * 7919 % s.columns : 0));
    }
    const bool with_state = loss_scale != 1, same = wanted == Gradient::in_place;
    TrainingState state;
    state.loss_scale = loss_scale;
    const double rows = static_cast<double>(std::max<int64_t>(s.rows, 1)), columns = static_cast<double>(s.columns);
    const OutputTolerance gradient = tolerance(op, s.columns, loss_scale / rows / std::sqrt(std::max(columns, 1.0)));
    const OutputTolerance losses = exact_input_tolerance(op, s.columns, std::log(columns + 2));
    const char* how = wanted == Gradient::none ? " no gradient" : same ? " in place" : "";
    return {name(op, describe(s)) + how + (with_state ? fmt::format(" scale={}", loss_scale) : ""),
            {same ? in_place("logits", type(), elements(s), gradient) : input("logits", type(), elements(s)),
             input_values("targets", DType::i32, targets), state_input(state),
             output("losses", statistics_type(), s.rows, losses),
             output("dlogits", type(), wanted == Gradient::apart ? elements(s) : 0, gradient)},
            [s, wanted, with_state, same](Ops& ops, const std::vector<void*>& p) {
              ops.cross_entropy(s, p[0], static_cast<const int32_t*>(p[1]),
                                static_cast<const TrainingState*>(or_null(with_state, p[2])), p[3],
                                or_null(wanted != Gradient::none, same ? p[0] : p[4]));
            }};
  }
};

TEST_P(CrossEntropyParity, Shapes) {
  for (const RowShape& shape : kShapes) {
    for (const int64_t gap : {0, 5}) {
      const RowsSpec s{precision(), shape.rows, shape.columns, gap == 0 ? 0 : shape.columns + gap};
      for (const Gradient wanted : {Gradient::none, Gradient::apart, Gradient::in_place}) {
        check(Op::cross_entropy, loss_case(s, wanted, 1));
      }
    }
  }
}

TEST_P(CrossEntropyParity, LossScale) {
  check(Op::cross_entropy, loss_case({precision(), 12, 37, 0}, Gradient::apart, 1024));
  check(Op::cross_entropy, loss_case({precision(), 12, 37, 40}, Gradient::in_place, 16));
}

TEST_P(CrossEntropyParity, LargeLogits) {
  OpCase op_case = loss_case({precision(), 2, 3, 0}, Gradient::apart, 1);
  op_case.buffers[0] = input_values("logits", type(), {1000, 1000, 900, -1000, -1000, -1010});
  op_case.name += " large";
  check(Op::cross_entropy, op_case);
}

DLB_EVERY_PRECISION(CrossEntropyParity);

}  // namespace
}  // namespace dlbench::test
