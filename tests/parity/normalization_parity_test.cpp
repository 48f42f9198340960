// Batch and layer normalization: layouts, residuals, activations, in place, extents of 1 and 0.
#include "parity/training_parity.h"

namespace dlbench::test {
namespace {

class BatchNormParity : public TrainingParity {
 protected:
  static std::string describe(const BatchNormSpec& s) {
    return fmt::format("{} N={} C={} H={} W={}{}{}", name_of(s.layout), s.n, s.c, s.h, s.w,
                       s.residual ? " residual" : "", s.activation == Activation::relu ? " relu" : "");
  }
  static int64_t values(const BatchNormSpec& s) { return s.n * s.c * s.h * s.w; }
  static int64_t per_channel(const BatchNormSpec& s) { return s.n * s.h * s.w; }
  static double root(const BatchNormSpec& s) { return std::sqrt(static_cast<double>(per_channel(s))); }

  static OpCase forward_case(const BatchNormSpec& s, bool same = false) {
    constexpr Op op = Op::batch_norm_forward;
    const int64_t k = per_channel(s);
    // y is the sum of up to three terms: gamma * xhat, beta, residual, of unit variance each.
    const OutputTolerance y = tolerance(op, k, std::sqrt(s.residual ? 3.0 : 2.0));
    return {name(op, describe(s)) + (same ? " in place" : ""),
            {same ? in_place("x", type(), values(s), y) : input("x", type(), values(s)), input("gamma", type(), s.c),
             input("beta", type(), s.c), input("residual", type(), s.residual ? values(s) : 0),
             output("y", type(), same ? 0 : values(s), y),
             in_place("running_mean", statistics_type(), s.c, exact_input_tolerance(op, k, 1)),
             in_place("running_variance", statistics_type(), s.c, exact_input_tolerance(op, k, 1)),
             output("saved_mean", statistics_type(), s.c, exact_input_tolerance(op, k, 1 / root(s))),
             output("saved_rstd", statistics_type(), s.c, exact_input_tolerance(op, k, 1))},
            [s, same](Ops& ops, const std::vector<void*>& p) {
              ops.batch_norm_forward(s, p[0], p[1], p[2], or_null(s.residual, p[3]), same ? p[0] : p[4], p[5], p[6],
                                     p[7], p[8]);
            }};
  }
  static OpCase backward_case(const BatchNormSpec& s, bool same = false) {
    constexpr Op op = Op::batch_norm_backward;
    const bool relu = s.activation == Activation::relu;
    const OutputTolerance dx = tolerance(op, per_channel(s), 1), sums = tolerance(op, per_channel(s), root(s));
    CaseBuffer dresidual = output("dresidual", type(), s.residual ? values(s) : 0, {});
    dresidual.bitwise = true;
    return {name(op, describe(s)) + (same ? " in place" : ""),
            {same ? in_place("dy", type(), values(s), dx) : input("dy", type(), values(s)),
             input("x", type(), values(s)), input("y", type(), relu ? values(s) : 0), input("gamma", type(), s.c),
             input("mean", statistics_type(), s.c, 0.1), positive("rstd", statistics_type(), s.c),
             output("dx", type(), same ? 0 : values(s), dx), dresidual, output("dgamma", type(), s.c, sums),
             output("dbeta", type(), s.c, sums)},
            [s, same, relu](Ops& ops, const std::vector<void*>& p) {
              ops.batch_norm_backward(s, p[0], p[1], or_null(relu, p[2]), p[3], p[4], p[5], same ? p[0] : p[6],
                                      or_null(s.residual, p[7]), p[8], p[9]);
            }};
  }
  static void check_batch_norm(BatchNormSpec s) {
    s.precision = precision();
    for (const ImageLayout layout : kLayouts) {
      s.layout = layout;
      check(Op::batch_norm_forward, forward_case(s));
      check(Op::batch_norm_backward, backward_case(s));
    }
  }
};

TEST_P(BatchNormParity, Shapes) {
  check_batch_norm({.n = 3, .c = 5, .h = 4, .w = 7});
  check_batch_norm({.n = 2, .c = 64, .h = 7, .w = 7});
  check_batch_norm({.n = 5, .c = 33, .h = 1, .w = 9});
  check_batch_norm({.n = 1, .c = 17, .h = 13, .w = 11});
  check_batch_norm({.n = 37, .c = 130, .h = 1, .w = 1});
  check_batch_norm({.n = 4, .c = 3, .h = 56, .w = 55});
  check_batch_norm({.n = 9, .c = 1, .h = 30, .w = 31});
}

TEST_P(BatchNormParity, ResidualAndActivation) {
  for (const bool residual : {false, true}) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      BatchNormSpec s{.n = 3, .c = 19, .h = 5, .w = 6, .residual = residual, .activation = activation};
      check_batch_norm(s);
      s.precision = precision();
      for (const ImageLayout layout : kLayouts) {
        s.layout = layout;
        check(Op::batch_norm_forward, forward_case(s, true));
        check(Op::batch_norm_backward, backward_case(s, true));
      }
    }
  }
}

TEST_P(BatchNormParity, FewValues) {
  check_batch_norm({.n = 2, .c = 3, .h = 1, .w = 1});
  check_batch_norm({.n = 1, .c = 1, .h = 1, .w = 3});
  check_batch_norm({.n = 2, .c = 0, .h = 3, .w = 3});
  check_batch_norm({.n = 0, .c = 0, .h = 3, .w = 3});
}

/// A mean a hundred times the deviation: the variance must not be a difference of large sums.
TEST_P(BatchNormParity, LargeMean) {
  if (type() == DType::bf16 || type() == DType::f16) return;  // can't hold such values: covered by the wider types
  BatchNormSpec s{.precision = precision(), .n = 4, .c = 6, .h = 8, .w = 8};
  for (const ImageLayout layout : kLayouts) {
    s.layout = layout;
    OpCase op_case = forward_case(s);
    CaseBuffer& x = op_case.buffers[0];
    x.start = Start::values;
    for (size_t i = 0; i < static_cast<size_t>(x.elements); ++i) x.values.push_back(100 + normal("x", i));
    // Each value is off by u * 100 before anything is computed with it.
    for (size_t b : {size_t{4}, size_t{5}, size_t{6}, size_t{7}, size_t{8}})
      op_case.buffers[b].tolerance.magnitude = 100;
    op_case.name += " large mean";
    check(Op::batch_norm_forward, op_case);
  }
}

TEST_P(BatchNormParity, ContradictionsAreRefused) {
  if (!supported(Op::batch_norm_forward)) return;
  const auto refused = [](BatchNormSpec s) {
    s.precision = precision();
    expect_refused(Op::batch_norm_forward, describe(s),
                   [&](Ops& ops, void* p) { ops.batch_norm_forward(s, p, p, p, p, p, p, p, p, p); });
    expect_refused(Op::batch_norm_backward, describe(s),
                   [&](Ops& ops, void* p) { ops.batch_norm_backward(s, p, p, p, p, p, p, p, p, p, p); });
  };
  refused({.n = 1, .c = 3, .h = 1, .w = 1});
  refused({.n = 0, .c = 3, .h = 4, .w = 4});
  refused({.n = -2, .c = 3, .h = 4, .w = 4});
}

DLB_EVERY_PRECISION(BatchNormParity);

class LayerNormParity : public TrainingParity {
 protected:
  static std::string describe(const LayerNormSpec& s) {
    return fmt::format("rows={} columns={}{}", s.rows, s.columns, s.residual ? " residual" : "");
  }
  /// same: the sum is written over x.
  static OpCase forward_case(const LayerNormSpec& s, bool same = false) {
    constexpr Op op = Op::layer_norm_forward;
    const int64_t n = s.rows * s.columns, k = s.columns;
    const double root = std::sqrt(static_cast<double>(k));
    const OutputTolerance sum = tolerance(op, 1);
    return {
        name(op, describe(s)) + (same ? " in place" : ""),
        {same ? in_place("x", type(), n, sum) : input("x", type(), n), input("residual", type(), s.residual ? n : 0),
         input("gamma", type(), k), input("beta", type(), k), output("sum", type(), s.residual && !same ? n : 0, sum),
         output("y", type(), n, tolerance(op, k, std::sqrt(2.0))),
         output("saved_mean", statistics_type(), s.rows,
                s.residual ? tolerance(op, k, 1 / root) : exact_input_tolerance(op, k, 1 / root)),
         output("saved_rstd", statistics_type(), s.rows,
                s.residual ? tolerance(op, k, 1) : exact_input_tolerance(op, k, 1))},
        [s, same](Ops& ops, const std::vector<void*>& p) {
          ops.layer_norm_forward(s, p[0], or_null(s.residual, p[1]), p[2], p[3],
                                 or_null(s.residual, same ? p[0] : p[4]), p[5], p[6], p[7]);
        }};
  }
  enum class Add { nothing, apart, into_itself };
  static OpCase backward_case(const LayerNormSpec& s, Add add) {
    constexpr Op op = Op::layer_norm_backward;
    const int64_t n = s.rows * s.columns;
    const OutputTolerance dx = tolerance(op, s.columns, 1);
    const OutputTolerance sums = tolerance(op, s.rows, std::sqrt(static_cast<double>(s.rows)));
    const bool same = add == Add::into_itself;
    const char* how = add == Add::nothing ? "" : same ? " dx_add in place" : " dx_add";
    return {name(op, describe(s)) + how,
            {input("dy", type(), n), input("x", type(), n), input("gamma", type(), s.columns),
             input("mean", statistics_type(), s.rows, 0.1), positive("rstd", statistics_type(), s.rows),
             input("dx_add", type(), add == Add::apart ? n : 0),
             same ? in_place("dx", type(), n, dx) : output("dx", type(), n, dx),
             output("dgamma", type(), s.columns, sums), output("dbeta", type(), s.columns, sums)},
            [s, add, same](Ops& ops, const std::vector<void*>& p) {
              ops.layer_norm_backward(s, p[0], p[1], p[2], p[3], p[4], or_null(add != Add::nothing, same ? p[6] : p[5]),
                                      p[6], p[7], p[8]);
            }};
  }
  static void check_layer_norm(LayerNormSpec s) {
    s.precision = precision();
    for (const bool residual : {false, true}) {
      s.residual = residual;
      check(Op::layer_norm_forward, forward_case(s));
    }
    check(Op::layer_norm_forward, forward_case(s, true));
    for (const Add add : {Add::nothing, Add::apart, Add::into_itself}) {
      check(Op::layer_norm_backward, backward_case(s, add));
    }
  }
};

TEST_P(LayerNormParity, Shapes) {
  check_layer_norm({.rows = 7, .columns = 33});
  check_layer_norm({.rows = 5, .columns = 128});
  check_layer_norm({.rows = 65, .columns = 65});
  check_layer_norm({.rows = 3, .columns = 769});
  check_layer_norm({.rows = 300, .columns = 40});
  check_layer_norm({.rows = 2, .columns = 4099});
}

TEST_P(LayerNormParity, OnesAndEmptyExtents) {
  check_layer_norm({.rows = 1, .columns = 5});
  check_layer_norm({.rows = 4, .columns = 1});
  check_layer_norm({.rows = 1, .columns = 1});
  check_layer_norm({.rows = 0, .columns = 8});
}

TEST_P(LayerNormParity, ContradictionsAreRefused) {
  if (!supported(Op::layer_norm_forward)) return;
  for (LayerNormSpec s : {LayerNormSpec{.rows = 3, .columns = 0}, LayerNormSpec{.rows = -1, .columns = 4}}) {
    s.precision = precision();
    expect_refused(Op::layer_norm_forward, describe(s),
                   [&](Ops& ops, void* p) { ops.layer_norm_forward(s, p, p, p, p, p, p, p, p); });
    expect_refused(Op::layer_norm_backward, describe(s),
                   [&](Ops& ops, void* p) { ops.layer_norm_backward(s, p, p, p, p, p, p, p, p, p); });
  }
}

DLB_EVERY_PRECISION(LayerNormParity);

}  // namespace
}  // namespace dlbench::test
