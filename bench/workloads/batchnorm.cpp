// batchnorm: batch normalization in training mode, forward and backward, at the sizes of ResNet-50.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

struct Layer {
  const char* name;
  int64_t c, size;
};
// Behind the first convolution and at the end of each stage, for 224x224 images (He et al. 2016, table 1).
constexpr Layer kLayers[] = {{"resnet50_bn1", 64, 112},
                             {"resnet50_layer1", 256, 56},
                             {"resnet50_layer2", 512, 28},
                             {"resnet50_layer3", 1024, 14},
                             {"resnet50_layer4", 2048, 7}};

BatchNormSpec spec_of(const Point& point) {
  BatchNormSpec s{.precision = point.precision(), .n = point.integer("batch")};
  const std::string &name = point.word("layer"), &fused = point.word("fused");
  s.residual = fused == "residual_relu";
  s.activation = fused == "none" ? Activation::none : Activation::relu;
  for (const Layer& layer : kLayers) {
    if (name != layer.name) continue;
    s.c = layer.c, s.h = s.w = layer.size;
    return s;
  }
  s.c = point.integer("c"), s.h = point.integer("h"), s.w = point.integer("w");
  return s;
}

class BatchNormWorkload final : public TrainingOpWorkload {
 public:
  BatchNormWorkload(const Point& point, bool backward)
      : TrainingOpWorkload(backward ? Op::batch_norm_backward : Op::batch_norm_forward, point.precision()),
        backward_(backward),
        spec_(spec_of(point)) {
    fixed_layout_ = fixes_layout(point, spec_.layout);
    require_valid(spec_);
    const Shape images{spec_.n, spec_.c, spec_.h, spec_.w}, channels{spec_.c}, none{0};
    const int64_t count = spec_.n * spec_.h * spec_.w;
    const double root = std::sqrt(static_cast<double>(count));
    const bool relu = spec_.activation == Activation::relu;
    if (backward_) {
      add_input("dy", images);
      add_input("x", images);
      add_input("y", relu ? images : none);
      add_input("gamma", channels, 1.0, BufferRole::parameter);
      add_statistics_input("saved_mean", channels, BufferInit::zero, 0);
      add_statistics_input("saved_rstd", channels, BufferInit::constant, 1);
      add_result("dx", images, count, 1);
      add_result("dresidual", spec_.residual ? images : none, 1, 1);
      add_result("dgamma", channels, count, root);
      add_result("dbeta", channels, count, root);
    } else {
      add_input("x", images);
      add_input("gamma", channels, 1.0, BufferRole::parameter);
      add_input("beta", channels, 1.0, BufferRole::parameter);
      add_input("residual", spec_.residual ? images : none);
      add_result("y", images, count, 1);
      add_state("running_mean", channels, statistics(), BufferInit::zero, 0, count);
      add_state("running_variance", channels, statistics(), BufferInit::constant, 1, count);
      add_statistics("saved_mean", channels, count, 1 / root);
      add_statistics("saved_rstd", channels, count, 1);
    }
    declare_work(cost_of(spec_, backward_), spec_.n, "images");
  }
  void step(Device& device, const Binding& b) override {
    const bool relu = spec_.activation == Activation::relu, residual = spec_.residual;
    if (backward_) {
      return device.ops().batch_norm_backward(spec_, b[0], b[1], relu ? b[2] : nullptr, b[3], b[4], b[5], b[6],
                                              residual ? b[7] : nullptr, b[8], b[9]);
    }
    device.ops().batch_norm_forward(spec_, b[0], b[1], b[2], residual ? b[3] : nullptr, b[4], b[5], b[6], b[7], b[8]);
  }

 protected:
  void set_layout(ImageLayout layout) override {
    if (!fixed_layout_) spec_.layout = layout;
  }

 private:
  bool backward_;
  BatchNormSpec spec_;
  bool fixed_layout_ = false;
};

std::string check(const Point& point) {
  if (point.word("layer") != "custom" || point.integer("batch") > 1 || point.integer("h") > 1 ||
      point.integer("w") > 1) {
    return "";
  }
  return "a variance needs at least 2 values per channel: batch, h or w must be larger than 1";
}

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Layer& layer : kLayers) names.emplace_back(layer.name);
  names.emplace_back("custom");
  return names;
}

}  // namespace

const WorkloadDescriptor& batchnorm_workload() {
  const AxisCondition custom{"layer", {"custom"}};
  static const WorkloadDescriptor descriptor{
      .name = "batchnorm",
      .workload_class = "ops",
      .summary = "batch normalization in training mode, with the residual and relu behind it, and its gradient",
      .sweep_axis = "batch",
      .axes = {{.name = "layer",
                .kind = AxisKind::word,
                .fallback = "resnet50_layer1",
                .words = layer_names(),
                .summary = "layer of a named model; custom takes c, h and w"},
               extent_axis("c", 256, "channels", custom),
               extent_axis("h", 56, "height of the images", custom),
               extent_axis("w", 56, "width of the images", custom),
               {.name = "fused",
                .kind = AxisKind::word,
                .fallback = "relu",
                .words = {"none", "relu", "residual_relu"},
                .summary = "what happens behind the normalization in the same pass"},
               forward_backward_axis(),
               layout_axis(),
               {.name = "batch", .fallback = int64_t{8}, .summary = "images"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .check = check,
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<BatchNormWorkload>(point, point.word("pass") == "backward");
      }};
  return descriptor;
}

}  // namespace dlbench
