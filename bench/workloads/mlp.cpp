// mlp: a training step of a multi-layer perceptron: Linear and ReLU, softmax cross-entropy, SGD with momentum.
//
// Why: the smallest training there is; where batches are small it shows what starting work costs.
#include "core/train/models.h"
#include "core/train/train_workload.h"
#include "workloads/catalog.h"

namespace dlbench {

const WorkloadDescriptor& mlp_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "mlp",
      .workload_class = "train",
      .summary = "training step of a multi-layer perceptron; SGD with momentum",
      .sweep_axis = "batch",
      .axes = {{.name = "preset",
                .kind = AxisKind::word,
                .fallback = "base",
                .words = mlp_presets(),
                .summary = "tiny 784-128-10, base 784-1024-1024-10, wide 784-4096 (4 times)-10"},
               {.name = "batch", .fallback = int64_t{64}, .summary = "samples of a step"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<TrainWorkload>(
            [config = mlp_preset(point.word("preset")), precision = point.precision()](
                int64_t batch, ImageLayout layout) { return make_mlp(config, batch, precision, layout); },
            point.integer("batch"), "samples");
      }};
  return descriptor;
}

}  // namespace dlbench
