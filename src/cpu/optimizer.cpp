// Optimizer steps and what precedes them. Twin: src/gpu/optimizer.cu.
#include "core/math/optimizer.h"

#include <algorithm>
#include <cmath>

#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {
/// Pieces of the gradient: whole numbers of this many elements, at most kMaxPieces of them; both follow from n alone.
constexpr int64_t kPieceElements = 16384, kMaxPieces = 256;

char* at(void* p, int64_t byte) {
  return p == nullptr ? nullptr : static_cast<char*>(p) + byte;
}
const char* at(const void* p, int64_t byte) {
  return static_cast<const char*>(p) + byte;
}
}  // namespace

int64_t CpuOps::update_workspace_bytes(const GradientSpec& spec) const {
  return spec.check ? kMaxPieces * static_cast<int64_t>(sizeof(double)) : 0;
}

void CpuOps::prepare_update(const GradientSpec& s, const void* gradient, TrainingState* state, void* workspace) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::prepare_update, s.precision);
  double total = 0;
  if (s.check) {
    const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision)));
    const int64_t piece = std::max(kPieceElements, ((s.n + kMaxPieces - 1) / kMaxPieces + 63) / 64 * 64);
    const int64_t pieces = (s.n + piece - 1) / piece;
    double* parts = static_cast<double*>(workspace);
    team_.parallel_for(pieces, 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        parts[p] = k.square_sum(at(gradient, p * piece * e), std::min(piece, s.n - p * piece));
      }
    });
    for (int64_t p = 0; p < pieces; ++p) total += parts[p];
  }
  // Squares of floats can't overflow in double: the sum is finite exactly when every element is.
  update_training_state(*state, static_cast<float>(std::sqrt(total)), std::isfinite(total), s.max_norm,
                        s.dynamic_scaling, s.growth_interval);
}

void CpuOps::update_range(void (*kernel)(const UpdateArgs&), const UpdateArgs& all, Precision precision, int64_t n,
                          int64_t decayed) {
  const int64_t e = static_cast<int64_t>(size_of(storage_of(precision)));
  const int64_t wide = static_cast<int64_t>(size_of(accumulate_of(precision)));
  const auto part = [&](int64_t begin, int64_t end, float weight_decay) {
    if (begin >= end) return;
    UpdateArgs a = all;
    a.gradient = at(all.gradient, begin * e);
    a.w = at(all.w, begin * wide);
    a.m = at(all.m, begin * wide);
    a.v = at(all.v, begin * wide);
    a.parameter = at(all.parameter, begin * e);
    a.n = end - begin;
    a.weight_decay = weight_decay;
    kernel(a);
  };
  team_.parallel_for(n, grain(e + 6 * wide), 64, [&](int64_t begin, int64_t end) {
    const int64_t middle = std::clamp(decayed, begin, end);
    part(begin, middle, all.weight_decay);
    part(middle, end, 0.0f);
  });
}

void CpuOps::sgd_step(const SgdSpec& s, const TrainingState* state, const void* gradient, void* master, void* momentum,
                      void* parameter) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::sgd_step, s.precision);
  if (state->skip) return;
  UpdateArgs a{.gradient = gradient, .w = master, .m = momentum, .parameter = parameter};
  a.gradient_factor = state->gradient_factor;
  a.lr = s.lr;
  a.beta1 = s.momentum;
  a.weight_decay = s.weight_decay;
  a.first = state->step <= 1;
  update_range(k.sgd, a, s.precision, s.n, s.decayed);
}

void CpuOps::adamw_step(const AdamWSpec& s, const TrainingState* state, const void* gradient, void* master, void* m,
                        void* v, void* parameter) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::adamw_step, s.precision);
  if (state->skip) return;
  const double t = static_cast<double>(std::max(state->step, 1));
  UpdateArgs a{.gradient = gradient, .w = master, .m = m, .v = v, .parameter = parameter};
  a.gradient_factor = state->gradient_factor;
  a.lr = s.lr;
  a.beta1 = s.beta1;
  a.beta2 = s.beta2;
  a.epsilon = s.epsilon;
  a.weight_decay = s.weight_decay;
  a.correction1 = 1.0 / (1.0 - std::pow(static_cast<double>(s.beta1), t));
  a.correction2 = 1.0 / std::sqrt(1.0 - std::pow(static_cast<double>(s.beta2), t));
  update_range(k.adamw, a, s.precision, s.n, s.decayed);
}

}  // namespace dlbench::cpu
