// cnn: a training step of a small convolutional network on images of 3x32x32; SGD with momentum.
//
// Why: convolutions so small that a network in a CPU's cache isn't worth a GPU, until the batch grows.
#include "core/train/models.h"
#include "core/train/train_workload.h"
#include "workloads/catalog.h"

namespace dlbench {

const WorkloadDescriptor& cnn_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "cnn",
      .workload_class = "train",
      .summary = "training step of a small convolutional network on 3x32x32 images; SGD with momentum",
      .sweep_axis = "batch",
      .axes = {{.name = "batch", .fallback = int64_t{64}, .summary = "images of a step"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<TrainWorkload>(
            [precision = point.precision()](int64_t batch, ImageLayout layout) {
              return make_cnn({}, batch, precision, layout);
            },
            point.integer("batch"), "images");
      }};
  return descriptor;
}

}  // namespace dlbench
