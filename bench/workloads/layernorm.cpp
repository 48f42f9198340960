// layernorm: layer normalization of rows, with or without the residual sum before it, forward and backward.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

class LayerNormWorkload final : public TrainingOpWorkload {
 public:
  LayerNormWorkload(const Point& point, bool backward)
      : TrainingOpWorkload(backward ? Op::layer_norm_backward : Op::layer_norm_forward, point.precision()),
        backward_(backward),
        spec_{.precision = precision_,
              .rows = point.integer("batch"),
              .columns = point.integer("features"),
              .residual = point.word("fused") == "residual"} {
    require_valid(spec_);
    const Shape matrix{spec_.rows, spec_.columns}, columns{spec_.columns}, rows{spec_.rows}, none{0};
    const Shape residual = spec_.residual ? matrix : none;
    if (backward_) {
      const double root = std::sqrt(static_cast<double>(spec_.rows));
      add_input("dy", matrix);
      add_input("x", matrix);
      add_input("gamma", columns, 1.0, BufferRole::parameter);
      add_statistics_input("saved_mean", rows, BufferInit::zero, 0);
      add_statistics_input("saved_rstd", rows, BufferInit::constant, 1);
      add_input("dx_add", residual);
      add_result("dx", matrix, spec_.columns, 1);
      add_result("dgamma", columns, spec_.rows, root);
      add_result("dbeta", columns, spec_.rows, root);
    } else {
      const double root = std::sqrt(static_cast<double>(spec_.columns));
      add_input("x", matrix);
      add_input("residual", residual);
      add_input("gamma", columns, 1.0, BufferRole::parameter);
      add_input("beta", columns, 1.0, BufferRole::parameter);
      add_result("sum", residual, 1, 1);
      add_result("y", matrix, spec_.columns, 1);
      if (spec_.residual) {  // of the sum as it was rounded
        add_output("saved_mean", rows, statistics());
        set_tolerance(spec_.columns, 1 / root, precision_);
        add_output("saved_rstd", rows, statistics());
        set_tolerance(spec_.columns, 1, precision_);
      } else {
        add_statistics("saved_mean", rows, spec_.columns, 1 / root);
        add_statistics("saved_rstd", rows, spec_.columns, 1);
      }
    }
    declare_work(cost_of(spec_, backward_), spec_.rows, "rows");
  }
  void step(Device& device, const Binding& b) override {
    const bool residual = spec_.residual;
    if (backward_) {
      return device.ops().layer_norm_backward(spec_, b[0], b[1], b[2], b[3], b[4], residual ? b[5] : nullptr, b[6],
                                              b[7], b[8]);
    }
    device.ops().layer_norm_forward(spec_, b[0], residual ? b[1] : nullptr, b[2], b[3], residual ? b[4] : nullptr, b[5],
                                    b[6], b[7]);
  }

 private:
  bool backward_;
  LayerNormSpec spec_;
};

}  // namespace

const WorkloadDescriptor& layernorm_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "layernorm",
      .workload_class = "ops",
      .summary = "layer normalization of rows, with the residual sum before it, and its gradient",
      .sweep_axis = "batch",
      .axes = {extent_axis("features", 768, "columns: what is normalized together"),
               {.name = "fused",
                .kind = AxisKind::word,
                .fallback = "residual",
                .words = {"none", "residual"},
                .summary = "residual: x is the sum of two inputs; backward adds the gradient of that sum"},
               forward_backward_axis(),
               {.name = "batch", .fallback = int64_t{1024}, .summary = "rows"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<LayerNormWorkload>(point, point.word("pass") == "backward");
      }};
  return descriptor;
}

}  // namespace dlbench
