// attention: multi-head scaled dot-product attention as GPT-2 packs it, forward and backward.
//
// Backward gets a log-sum-exp near that of random scores, so that probabilities add up to about 1, as in training.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

class AttentionWorkload final : public TrainingOpWorkload {
 public:
  AttentionWorkload(const Point& point, bool backward)
      : TrainingOpWorkload(backward ? Op::attention_backward : Op::attention_forward, point.precision()),
        backward_(backward),
        spec_{.precision = precision_,
              .batch = point.integer("batch"),
              .length = point.integer("seq"),
              .heads = point.integer("heads"),
              .head_dim = point.integer("head_dim"),
              .causal = point.word("mask") == "causal"} {
    require_valid(spec_);
    const Shape packed{spec_.batch, spec_.length, 3, spec_.heads, spec_.head_dim};
    const Shape output{spec_.batch, spec_.length, spec_.heads, spec_.head_dim};
    const Shape rows{spec_.batch, spec_.heads, spec_.length};
    const double length = static_cast<double>(spec_.length), head_dim = static_cast<double>(spec_.head_dim);
    // Errors of sums that feed one another add up: the scores (and the gradients of the probabilities, backward), of
    // head_dim products each, then the sum over the tokens.
    const double chain = (backward_ ? 2 : 1) * std::sqrt(head_dim) + std::sqrt(length);
    const auto terms = static_cast<int64_t>(chain * chain);
    add_input("qkv", packed);
    if (backward_) {
      add_input("y", output, 1 / std::sqrt(length));
      add_input("dy", output);
      // E[e^s] of a normal s is e^0.5.
      add_statistics_input("log_sum_exp", rows, BufferInit::constant, std::log(length) + 0.5);
      add_result("dqkv", packed, terms);
    } else {
      add_result("y", output, terms);
      add_output("log_sum_exp", rows, statistics());
      set_tolerance(terms, 1, precision_);  // the scores are products in the compute type
    }
    declare_work(cost_of(spec_, backward_), spec_.batch, "sequences");
  }
  void step(Device& device, const Binding& b) override {
    if (backward_) return device.ops().attention_backward(spec_, b[0], b[1], b[2], b[3], b[4], workspace(b));
    device.ops().attention_forward(spec_, b[0], b[1], b[2], workspace(b));
  }

 protected:
  int64_t workspace_bytes(const Ops& ops) const override { return ops.attention_workspace_bytes(spec_, backward_); }

 private:
  bool backward_;
  AttentionSpec spec_;
};

}  // namespace

const WorkloadDescriptor& attention_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "attention",
      .workload_class = "ops",
      .summary = "multi-head attention of packed q, k and v, and its gradient",
      .sweep_axis = "batch",
      .axes = {extent_axis("seq", 256, "tokens of a sequence"),
               extent_axis("heads", 12, "heads"),
               extent_axis("head_dim", 64, "width of a head"),
               {.name = "mask",
                .kind = AxisKind::word,
                .fallback = "causal",
                .words = {"causal", "full"},
                .summary = "which tokens a token sees: those before it, or all"},
               forward_backward_axis(),
               {.name = "batch", .fallback = int64_t{8}, .summary = "sequences"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<AttentionWorkload>(point, point.word("pass") == "backward");
      }};
  return descriptor;
}

}  // namespace dlbench
