// resnet: a training step of torchvision's resnet18 or resnet50 (v1.5), batch norm in training mode; SGD with momentum
// 0.9 and weight decay 1e-4.
//
// Why: the reference point of image training. image=224 has the 7x7 stem and 1000 classes (ImageNet), image=32 a 3x3
// stem without pooling and 10 classes (CIFAR-10).
#include "core/train/models.h"
#include "core/train/train_workload.h"
#include "workloads/catalog.h"

namespace dlbench {

const WorkloadDescriptor& resnet_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "resnet",
      .workload_class = "train",
      .summary = "training step of resnet18 or resnet50 (v1.5), batch norm in training mode; SGD with momentum",
      .sweep_axis = "batch",
      .axes = {{.name = "preset",
                .kind = AxisKind::word,
                .fallback = "resnet50",
                .words = resnet_presets(),
                .summary = "which network"},
               {.name = "image",
                .kind = AxisKind::word,
                .fallback = "224",
                .words = {"224", "32"},
                .summary = "height and width; 32 has a 3x3 stem without pooling and 10 classes"},
               {.name = "batch", .fallback = int64_t{8}, .summary = "images of a step"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        const int64_t image = point.word("image") == "32" ? 32 : 224;
        return std::make_unique<TrainWorkload>(
            [config = resnet_preset(point.word("preset"), image), precision = point.precision()](
                int64_t batch, ImageLayout layout) { return make_resnet(config, batch, precision, layout); },
            point.integer("batch"), "images");
      }};
  return descriptor;
}

}  // namespace dlbench
