// The update of the reference: gradient norm and loss scale, SGD, AdamW. The formulas are core/math/optimizer.h's, in
// double whatever the types in memory.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/device/reference_elements.h"
#include "core/device/reference_ops.h"
#include "core/math/optimizer.h"

namespace dlbench {

namespace {

/// Calls body(first, count, decayed) for pieces of [0, n) whose elements are all decayed, or none of them.
template <typename Body>
void for_pieces(int64_t n, int64_t decayed, Body body) {
  constexpr int64_t kPiece = 4096;
  for (int64_t first = 0; first < n;) {
    const int64_t end = std::min(first < decayed ? decayed : n, first + kPiece);
    body(Run{first, end - first, 1}, first < decayed);
    first = end;
  }
}

void store_weights(Precision precision, const Run& run, const std::vector<double>& weights, void* master,
                   void* parameter) {
  store_run(accumulate_of(precision), master, run, weights);
  if (!parameter) return;
  // The parameter is a copy of the master weight as stored, as a device that keeps both has it.
  store_run(storage_of(precision), parameter, run, load_run(accumulate_of(precision), master, run));
}

}  // namespace

void ReferenceOps::prepare_update(const GradientSpec& s, const void* gradient, TrainingState* state, void*) {
  require_valid(s);
  double squares = 0;
  bool finite = true;
  if (s.check) {
    for_pieces(s.n, 0, [&](const Run& run, bool) {
      for (const double value : load_run(storage_of(s.precision), gradient, run)) {
        squares += value * value;
        finite = finite && std::isfinite(value);
      }
    });
  }
  update_training_state(*state, static_cast<float>(std::sqrt(squares)), finite, s.max_norm, s.dynamic_scaling,
                        s.growth_interval);
}

void ReferenceOps::sgd_step(const SgdSpec& s, const TrainingState* state, const void* gradient, void* master,
                            void* momentum, void* parameter) {
  require_valid(s);
  if (state->skip) return;
  const DType statistics = accumulate_of(s.precision);
  const double factor = state->gradient_factor;
  for_pieces(s.n, s.decayed, [&](const Run& run, bool decayed) {
    const std::vector<double> g = load_run(storage_of(s.precision), gradient, run);
    std::vector<double> w = load_run(statistics, master, run), v = load_run(statistics, momentum, run);
    for (size_t i = 0; i < g.size(); ++i) {
      sgd_update<double>(w[i], v[i], factor * g[i], s.lr, s.momentum, decayed ? s.weight_decay : 0.0f,
                         state->step <= 1);
    }
    store_run(statistics, momentum, run, v);
    store_weights(s.precision, run, w, master, parameter);
  });
}

void ReferenceOps::adamw_step(const AdamWSpec& s, const TrainingState* state, const void* gradient, void* master,
                              void* m, void* v, void* parameter) {
  require_valid(s);
  if (state->skip) return;
  const DType statistics = accumulate_of(s.precision);
  const double factor = state->gradient_factor, t = state->step;
  const double correction1 = 1 / (1 - std::pow(static_cast<double>(s.beta1), t));
  const double correction2 = 1 / std::sqrt(1 - std::pow(static_cast<double>(s.beta2), t));
  for_pieces(s.n, s.decayed, [&](const Run& run, bool decayed) {
    const std::vector<double> g = load_run(storage_of(s.precision), gradient, run);
    std::vector<double> w = load_run(statistics, master, run);
    std::vector<double> mean = load_run(statistics, m, run), square = load_run(statistics, v, run);
    for (size_t i = 0; i < g.size(); ++i) {
      adamw_update<double>(w[i], mean[i], square[i], factor * g[i], s.lr, s.beta1, s.beta2, s.epsilon,
                           decayed ? s.weight_decay : 0.0f, correction1, correction2);
    }
    store_run(statistics, m, run, mean);
    store_run(statistics, v, run, square);
    store_weights(s.precision, run, w, master, parameter);
  });
}

}  // namespace dlbench
