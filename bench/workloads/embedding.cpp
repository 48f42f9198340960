// embedding: looking rows of the token and position tables up, and the scatter-add of their gradients.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

class EmbeddingWorkload final : public TrainingOpWorkload {
 public:
  EmbeddingWorkload(const Point& point, bool backward)
      : TrainingOpWorkload(backward ? Op::embedding_backward : Op::embedding_forward, point.precision()),
        backward_(backward) {
    const int64_t batch = point.integer("batch"), length = point.integer("seq");
    const int64_t tokens = element_count({batch, length});
    spec_ = {.precision = precision_,
             .tokens = tokens,
             .length = length,
             .vocabulary = point.integer("vocabulary"),
             .channels = point.integer("features")};
    require_valid(spec_);
    const Shape rows{tokens, spec_.channels}, table{spec_.vocabulary, spec_.channels},
        positions{length, spec_.channels};
    add_indices("tokens", {batch, length}, DType::i32, static_cast<uint32_t>(spec_.vocabulary));
    if (backward_) {
      add_input("dy", rows);
      add_result("dtoken", table, std::max<int64_t>(1, tokens / spec_.vocabulary), 1);
      add_result("dposition", positions, batch, std::sqrt(static_cast<double>(batch)));
    } else {
      add_input("token_table", table, 1.0, BufferRole::parameter);
      add_input("position_table", positions, 1.0, BufferRole::parameter);
      add_result("y", rows, 1, 1);
    }
    declare_work(cost_of(spec_, backward_), tokens, "tokens");
  }
  void step(Device& device, const Binding& b) override {
    const auto* tokens = static_cast<const int32_t*>(b[0]);
    if (backward_) return device.ops().embedding_backward(spec_, tokens, b[1], b[2], b[3], workspace(b));
    device.ops().embedding_forward(spec_, tokens, b[1], b[2], b[3]);
  }

 protected:
  int64_t workspace_bytes(const Ops& ops) const override {
    return backward_ ? ops.embedding_workspace_bytes(spec_) : 0;
  }

 private:
  bool backward_;
  EmbeddingSpec spec_;
};

}  // namespace

const WorkloadDescriptor& embedding_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "embedding",
      .workload_class = "ops",
      .summary = "token and position embedding, and the scatter-add of its gradient",
      .sweep_axis = "batch",
      .axes = {extent_axis("vocabulary", 50257, "rows of the token table"),
               extent_axis("features", 768, "columns of the tables"),
               extent_axis("seq", 64, "tokens of a sequence"),
               forward_backward_axis(),
               {.name = "batch", .fallback = int64_t{8}, .summary = "sequences"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<EmbeddingWorkload>(point, point.word("pass") == "backward");
      }};
  return descriptor;
}

}  // namespace dlbench
