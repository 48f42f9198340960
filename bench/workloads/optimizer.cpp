// optimizer: one update of n parameters, SGD with momentum or AdamW, with the bookkeeping of a step before it.
//
// `checked` reads the gradient once more, for its norm and overflow, as clipping and dynamic loss scaling do.
#include "core/math/optimizer.h"
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

class OptimizerWorkload final : public TrainingOpWorkload {
 public:
  explicit OptimizerWorkload(const Point& point)
      : TrainingOpWorkload(point.word("op") == "sgd" ? Op::sgd_step : Op::adamw_step, point.precision()),
        n_(point.integer("n")) {
    // The learning rate is so small, and the decay so strong, that parameters stay finite over any number of steps with
    // the same gradient: |w| goes towards |g| / weight_decay.
    sgd_ = {.precision = precision_, .n = n_, .decayed = n_, .lr = 1e-3f, .momentum = 0.9f, .weight_decay = 1e-2f};
    adamw_ = {.precision = precision_, .n = n_, .decayed = n_, .lr = 1e-4f, .weight_decay = 1e-1f};
    gradient_ = {.precision = precision_, .n = n_, .check = point.word("norm") == "checked"};
    if (gradient_.check) gradient_.max_norm = 1e6f;
    require_valid(sgd_);
    add_input("gradient", {n_});
    add_training_state();
    add_state("master", {n_}, statistics(), BufferInit::normal, 1, 1);
    if (op_ == Op::sgd_step) {
      add_state("momentum", {n_}, statistics(), BufferInit::normal, 1, 1);
    } else {
      add_state("m", {n_}, statistics(), BufferInit::normal, 1, 1);
      add_state("v", {n_}, statistics(), BufferInit::constant, 1, 1);
    }
    if (apart()) add_state("parameter", {n_}, storage(), BufferInit::normal, 1, 1);
    Cost cost = cost_of(gradient_);
    cost += op_ == Op::sgd_step ? cost_of(sgd_) : cost_of(adamw_);
    declare_work(cost, n_, "parameters");
  }
  void step(Device& device, const Binding& b) override {
    Ops& ops = device.ops();
    auto* state = static_cast<TrainingState*>(b[1]);
    ops.prepare_update(gradient_, b[0], state, workspace(b));
    if (op_ == Op::sgd_step) return ops.sgd_step(sgd_, state, b[0], b[2], b[3], apart() ? b[4] : nullptr);
    ops.adamw_step(adamw_, state, b[0], b[2], b[3], b[4], apart() ? b[5] : nullptr);
  }

 protected:
  int64_t workspace_bytes(const Ops& ops) const override { return ops.update_workspace_bytes(gradient_); }

 private:
  bool apart() const { return storage() != statistics(); }
  /// The scale and the factor start as 1, the counters as 0: 16 words of 32 bits.
  void add_training_state() {
    buffers_.push_back({.name = "training_state",
                        .role = BufferRole::state,
                        .shape = {static_cast<int64_t>(sizeof(TrainingState) / sizeof(float))},
                        .segments = {{.name = "scales", .count = 2, .init = BufferInit::constant, .scale = 1.0}}});
  }

  int64_t n_;
  SgdSpec sgd_;
  AdamWSpec adamw_;
  GradientSpec gradient_;
};

}  // namespace

const WorkloadDescriptor& optimizer_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "optimizer",
      .workload_class = "ops",
      .summary = "one update of a flat array of parameters: SGD with momentum, AdamW",
      .sweep_axis = "n",
      .axes = {{.name = "op",
                .kind = AxisKind::word,
                .fallback = "adamw",
                .words = {"sgd", "adamw"},
                .summary = "the formula"},
               {.name = "norm",
                .kind = AxisKind::word,
                .fallback = "unchecked",
                .words = {"unchecked", "checked"},
                .summary = "checked: the norm and the overflow of the gradient are computed first"},
               extent_axis("n", 1048576, "parameters")},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<OptimizerWorkload>(point);
      }};
  return descriptor;
}

}  // namespace dlbench
