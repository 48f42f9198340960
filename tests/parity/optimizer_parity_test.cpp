// The update: norm, clipping and loss scale, SGD and AdamW, first and later steps, skipped steps, master weights.
#include <cmath>
#include <limits>

#include "parity/training_parity.h"

namespace dlbench::test {
namespace {

constexpr int64_t kLengths[] = {0, 1, 7, 64, 1000, 10007};

class OptimizerParity : public TrainingParity {
 protected:
  static bool master_apart() { return type() != statistics_type(); }

  static TrainingState after(const HostTensor& words) {
    TrainingState state;
    std::memcpy(&state, words.data(), sizeof state);
    return state;
  }
  static bool near(float got, float expected, int64_t n) {
    if (got == expected || (std::isnan(got) && std::isnan(expected))) return true;
    // The norm is a float whatever the precision; its sum of squares is held in fp32 at least.
    const double allowed = relative_tolerance(tolerance_of(Op::prepare_update, Precision::fp32, n));
    return std::fabs(got - expected) <= allowed * std::fabs(expected);
  }
  static std::string compare_states(const HostTensor& got_words, const HostTensor& expected_words, int64_t n) {
    const TrainingState got = after(got_words), expected = after(expected_words);
    const bool same = got.loss_scale == expected.loss_scale && got.step == expected.step && got.skip == expected.skip &&
                      got.good_steps == expected.good_steps && got.skipped == expected.skipped &&
                      near(got.gradient_factor, expected.gradient_factor, n) &&
                      near(got.gradient_norm, expected.gradient_norm, n) &&
                      std::memcmp(got.reserved, expected.reserved, sizeof got.reserved) == 0;
    if (same) return "";
    const auto text = [](const TrainingState& s) {
      return fmt::format("scale {} factor {} norm {} step {} skip {} good {} skipped {}", s.loss_scale,
                         s.gradient_factor, s.gradient_norm, s.step, s.skip, s.good_steps, s.skipped);
    };
    return "the state is " + text(got) + " where reference has " + text(expected);
  }

  static OpCase prepare_case(GradientSpec s, const TrainingState& state, std::vector<double> gradient = {}) {
    s.precision = precision();
    CaseBuffer words_buffer = in_place("state", DType::i32, 16, {});
    words_buffer.start = Start::values;
    words_buffer.values = words(state);
    words_buffer.compare = [n = s.n](const HostTensor& got, const HostTensor& expected) {
      return compare_states(got, expected, n);
    };
    const CaseBuffer space = workspace_for([&](const Ops& ops) { return ops.update_workspace_bytes(s); });
    const bool work = space.elements > 0;
    return {name(Op::prepare_update, fmt::format("n={}{}{} max_norm={} scale={}", s.n, s.check ? " check" : "",
                                                 s.dynamic_scaling ? " dynamic" : "", s.max_norm, state.loss_scale)),
            {gradient.empty() ? input("gradient", type(), s.n) : input_values("gradient", type(), gradient),
             words_buffer, space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.prepare_update(s, p[0], static_cast<TrainingState*>(p[1]), or_null(work, p[2]));
            }};
  }
  static TrainingState state_at(int32_t step, float factor = 1, int32_t skip = 0) {
    TrainingState state;
    state.step = step;
    state.gradient_factor = factor;
    state.skip = skip;
    return state;
  }
  static CaseBuffer statistics_in_place(Op op, const std::string& buffer, int64_t n) {
    return in_place(buffer, statistics_type(), n, exact_input_tolerance(op, 1));
  }
  /// Written from the master weights where they are apart; not at all in a skipped step.
  static CaseBuffer parameter(Op op, int64_t n) {
    return in_place("parameter", type(), master_apart() ? n : 0, tolerance(op, 1));
  }

  static OpCase sgd_case(SgdSpec s, const TrainingState& state) {
    s.precision = precision();
    constexpr Op op = Op::sgd_step;
    const bool apart = master_apart();
    return {name(op, fmt::format("n={} decayed={} momentum={} step={} factor={} skip={}", s.n, s.decayed, s.momentum,
                                 state.step, state.gradient_factor, state.skip)),
            {state_input(state), input("gradient", type(), s.n), statistics_in_place(op, "master", s.n),
             statistics_in_place(op, "momentum", s.n), parameter(op, s.n)},
            [s, apart](Ops& ops, const std::vector<void*>& p) {
              ops.sgd_step(s, static_cast<const TrainingState*>(p[0]), p[1], p[2], p[3], or_null(apart, p[4]));
            }};
  }
  static OpCase adamw_case(AdamWSpec s, const TrainingState& state) {
    s.precision = precision();
    constexpr Op op = Op::adamw_step;
    const bool apart = master_apart();
    CaseBuffer squares = positive("v", statistics_type(), s.n, 0.5, 0.3);
    squares.output = true;
    squares.tolerance = exact_input_tolerance(op, 1);
    return {name(op, fmt::format("n={} decayed={} step={} factor={} skip={}", s.n, s.decayed, state.step,
                                 state.gradient_factor, state.skip)),
            {state_input(state), input("gradient", type(), s.n), statistics_in_place(op, "master", s.n),
             statistics_in_place(op, "m", s.n), squares, parameter(op, s.n)},
            [s, apart](Ops& ops, const std::vector<void*>& p) {
              ops.adamw_step(s, static_cast<const TrainingState*>(p[0]), p[1], p[2], p[3], p[4], or_null(apart, p[5]));
            }};
  }
};

TEST_P(OptimizerParity, NormAndClipping) {
  for (const int64_t n : kLengths) {
    TrainingState state;
    state.loss_scale = 8;
    check(Op::prepare_update, prepare_case({.n = n}, state));
    check(Op::prepare_update, prepare_case({.n = n, .check = true}, state));
    check(Op::prepare_update, prepare_case({.n = n, .check = true, .max_norm = 0.5f}, state));
    check(Op::prepare_update, prepare_case({.n = n, .check = true, .max_norm = 1e6f}, state));
  }
}

TEST_P(OptimizerParity, DynamicLossScale) {
  const GradientSpec s{.n = 300, .check = true, .dynamic_scaling = true, .growth_interval = 3};
  for (const double bad : {0.0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()}) {
    for (const size_t where : {size_t{0}, size_t{131}, size_t{299}}) {
      std::vector<double> gradient(300, 0.25);
      if (bad != 0.0) gradient[where] = bad;
      TrainingState state;
      state.loss_scale = 65536;
      state.good_steps = 2;  // a good one more, and the scale doubles
      state.step = 41;
      state.skipped = 5;
      check(Op::prepare_update, prepare_case(s, state, gradient));
      state.good_steps = 0;
      state.loss_scale = 1;  // the smallest
      check(Op::prepare_update, prepare_case(s, state, gradient));
    }
  }
}

TEST_P(OptimizerParity, Sgd) {
  for (const int64_t n : kLengths) {
    for (const int32_t step : {1, 2}) {
      check(Op::sgd_step, sgd_case({.n = n, .decayed = n / 2, .weight_decay = 0.125f}, state_at(step, 0.5f)));
      check(Op::sgd_step, sgd_case({.n = n, .decayed = n, .momentum = 0.0f, .weight_decay = 1e-4f}, state_at(step)));
      check(Op::sgd_step, sgd_case({.n = n, .decayed = 0, .lr = 0.25f, .weight_decay = 0.5f}, state_at(step)));
    }
    check(Op::sgd_step, sgd_case({.n = n, .decayed = n, .weight_decay = 0.125f}, state_at(3, 1, 1)));
  }
}

TEST_P(OptimizerParity, AdamW) {
  for (const int64_t n : kLengths) {
    for (const int32_t step : {1, 2, 1000, 1000000}) {
      check(Op::adamw_step, adamw_case({.n = n, .decayed = n / 3, .weight_decay = 0.1f}, state_at(step, 0.25f)));
    }
    check(Op::adamw_step, adamw_case({.n = n, .decayed = n, .lr = 0.1f, .epsilon = 1e-3f}, state_at(2)));
    check(Op::adamw_step, adamw_case({.n = n, .decayed = n}, state_at(3, 1, 1)));
  }
}

TEST_P(OptimizerParity, ContradictionsAreRefused) {
  if (!supported(Op::sgd_step)) return;
  const auto state = [](void* p) { return static_cast<TrainingState*>(p); };
  const SgdSpec sgd{.precision = precision(), .n = 4, .decayed = 5};
  expect_refused(Op::sgd_step, "decayed > n", [&](Ops& ops, void* p) { ops.sgd_step(sgd, state(p), p, p, p, p); });
  const AdamWSpec adamw{.precision = precision(), .n = 4, .beta2 = 1.0f};
  expect_refused(Op::adamw_step, "beta2 = 1",
                 [&](Ops& ops, void* p) { ops.adamw_step(adamw, state(p), p, p, p, p, p); });
  const GradientSpec gradient{.precision = precision(), .n = 4, .max_norm = 1};
  expect_refused(Op::prepare_update, "clipping without a check",
                 [&](Ops& ops, void* p) { ops.prepare_update(gradient, p, state(p), p); });
}

DLB_EVERY_PRECISION(OptimizerParity);

}  // namespace
}  // namespace dlbench::test
