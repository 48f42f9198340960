// softmax: of rows, forward and backward.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

class SoftmaxWorkload final : public TrainingOpWorkload {
 public:
  SoftmaxWorkload(const Point& point, bool backward)
      : TrainingOpWorkload(backward ? Op::softmax_backward : Op::softmax_forward, point.precision()),
        backward_(backward),
        spec_{.precision = precision_, .rows = point.integer("batch"), .columns = point.integer("features")} {
    require_valid(spec_);
    const Shape matrix{spec_.rows, spec_.columns};
    const double probability = 1 / static_cast<double>(spec_.columns);
    if (backward_) {
      add_input("dy", matrix);
      add_input("y", matrix, probability);
      add_result("dx", matrix, spec_.columns, probability);
    } else {
      add_input("x", matrix);
      add_result("y", matrix, spec_.columns, probability);
    }
    declare_work(cost_of(op_, spec_), spec_.rows, "rows");
  }
  void step(Device& device, const Binding& b) override {
    if (backward_) return device.ops().softmax_backward(spec_, b[0], b[1], b[2]);
    device.ops().softmax_forward(spec_, b[0], b[1]);
  }

 private:
  bool backward_;
  RowsSpec spec_;
};

}  // namespace

const WorkloadDescriptor& softmax_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "softmax",
      .workload_class = "ops",
      .summary = "softmax of rows and its gradient",
      .sweep_axis = "batch",
      .axes = {extent_axis("features", 1024, "columns: what adds up to 1"),
               forward_backward_axis(),
               {.name = "batch", .fallback = int64_t{1024}, .summary = "rows"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<SoftmaxWorkload>(point, point.word("pass") == "backward");
      }};
  return descriptor;
}

}  // namespace dlbench
