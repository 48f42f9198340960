// cross_entropy: softmax and cross-entropy of rows of logits in one pass, with the gradient of the logits.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

class CrossEntropyWorkload final : public TrainingOpWorkload {
 public:
  explicit CrossEntropyWorkload(const Point& point)
      : TrainingOpWorkload(Op::cross_entropy, point.precision()),
        spec_{.precision = precision_, .rows = point.integer("batch"), .columns = point.integer("classes")} {
    require_valid(spec_);
    const double rows = static_cast<double>(spec_.rows), columns = static_cast<double>(spec_.columns);
    add_input("logits", {spec_.rows, spec_.columns});
    add_indices("targets", {spec_.rows}, DType::i32, static_cast<uint32_t>(spec_.columns));
    add_statistics("losses", {spec_.rows}, spec_.columns, std::log(columns + 1));
    add_result("dlogits", {spec_.rows, spec_.columns}, spec_.columns, 1 / rows / std::sqrt(columns));
    declare_work(cost_of(op_, spec_), spec_.rows, "rows");
  }
  void step(Device& device, const Binding& b) override {
    device.ops().cross_entropy(spec_, b[0], static_cast<const int32_t*>(b[1]), nullptr, b[2], b[3]);
  }

 private:
  RowsSpec spec_;
};

}  // namespace

const WorkloadDescriptor& cross_entropy_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "cross_entropy",
      .workload_class = "ops",
      .summary = "softmax cross-entropy of rows of logits with its gradient, in one pass",
      .sweep_axis = "batch",
      .axes = {extent_axis("classes", 1000, "columns of the logits"),
               {.name = "batch", .fallback = int64_t{256}, .summary = "rows"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<CrossEntropyWorkload>(point);
      }};
  return descriptor;
}

}  // namespace dlbench
