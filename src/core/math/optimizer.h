// Per-element optimizer steps and the state of mixed-precision training, for host and device.
//
// Why: parameters are compared tensor by tensor between the two sides after ten steps; the update must be one formula.
// Promises: arithmetic in T, the statistics type; formulas as PyTorch's SGD and AdamW (training_specs.h cites them).
#pragma once

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace dlbench {

/// On the device, 64 bytes, one per training run. `loss_scale` multiplies the gradient of the loss of this step;
/// `gradient_factor` is what the optimizer multiplies gradients by (clip factor / loss scale used).
struct TrainingState {
  float loss_scale = 1.0f;
  float gradient_factor = 1.0f;
  float gradient_norm = 0.0f;  ///< L2 norm of the unscaled gradient, where it was checked
  int32_t step = 0;            ///< updates made, this one included
  int32_t skip = 0;            ///< 1: the gradient of this step overflowed
  int32_t good_steps = 0;      ///< since the loss scale last changed
  int32_t skipped = 0;         ///< steps that overflowed since the start
  int32_t reserved[9] = {};
};
static_assert(sizeof(TrainingState) == 64);

/// w, v in place. `first`: no momentum has been gathered yet.
template <typename T>
DLB_HD void sgd_update(T& w, T& v, T g, T lr, T momentum, T weight_decay, bool first) {
  g += weight_decay * w;
  v = first ? g : momentum * v + g;
  w -= lr * v;
}

/// correction1 = 1/(1-beta1^t), correction2 = 1/sqrt(1-beta2^t).
template <typename T>
DLB_HD void adamw_update(T& w, T& m, T& v, T g, T lr, T beta1, T beta2, T epsilon, T weight_decay, T correction1,
                         T correction2) {
  w -= lr * weight_decay * w;
  m = beta1 * m + (T(1) - beta1) * g;
  v = beta2 * v + (T(1) - beta2) * g * g;
  w -= lr * (m * correction1) / (std::sqrt(v) * correction2 + epsilon);
}

/// The state after a gradient was looked at (GradientSpec): the norm of the *scaled* gradient and whether it is finite.
DLB_HD void update_training_state(TrainingState& state, float scaled_norm, bool finite, float max_norm,
                                  bool dynamic_scaling, int32_t growth_interval) {
  const float inverse = 1.0f / state.loss_scale;
  state.gradient_norm = scaled_norm * inverse;
  state.skip = dynamic_scaling && !finite ? 1 : 0;
  float factor = inverse;
  if (max_norm > 0.0f) {
    const float clip = max_norm / (state.gradient_norm + 1e-6f);
    if (clip < 1.0f) factor *= clip;
  }
  state.gradient_factor = factor;
  if (state.skip) {
    state.skipped += 1;
    state.good_steps = 0;
    state.loss_scale = state.loss_scale * 0.5f < 1.0f ? 1.0f : state.loss_scale * 0.5f;
    return;
  }
  state.step += 1;
  if (dynamic_scaling && ++state.good_steps >= growth_interval) {
    state.good_steps = 0;
    state.loss_scale = state.loss_scale * 2.0f > 16777216.0f ? 16777216.0f : state.loss_scale * 2.0f;
  }
}

}  // namespace dlbench
