// conv2d: the convolutions of ResNet-50 and VGG-16 by name, and free ones; forward and the two gradients.
//
// Inputs have unit variance and the second factor is scaled by 1/sqrt(terms), so that results have unit variance in
// every precision and fp16 can't overflow.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

struct Layer {
  const char* name;
  int64_t c, size, k, filter, stride, pad;  ///< images of size x size, square filters
};

// Each shape once. ResNet-50 v1.5 at 224x224 (He et al. 2016, table 1; torchvision's names, stride in the 3x3), VGG-16
// (Simonyan & Zisserman 2015, configuration D).
constexpr Layer kLayers[] = {
    {"resnet50_conv1", 3, 224, 64, 7, 2, 3},
    {"resnet50_layer1_0_conv1", 64, 56, 64, 1, 1, 0},
    {"resnet50_layer1_0_conv2", 64, 56, 64, 3, 1, 1},
    {"resnet50_layer1_0_conv3", 64, 56, 256, 1, 1, 0},
    {"resnet50_layer1_1_conv1", 256, 56, 64, 1, 1, 0},
    {"resnet50_layer2_0_conv1", 256, 56, 128, 1, 1, 0},
    {"resnet50_layer2_0_conv2", 128, 56, 128, 3, 2, 1},
    {"resnet50_layer2_0_conv3", 128, 28, 512, 1, 1, 0},
    {"resnet50_layer2_0_downsample", 256, 56, 512, 1, 2, 0},
    {"resnet50_layer2_1_conv1", 512, 28, 128, 1, 1, 0},
    {"resnet50_layer2_1_conv2", 128, 28, 128, 3, 1, 1},
    {"resnet50_layer3_0_conv1", 512, 28, 256, 1, 1, 0},
    {"resnet50_layer3_0_conv2", 256, 28, 256, 3, 2, 1},
    {"resnet50_layer3_0_conv3", 256, 14, 1024, 1, 1, 0},
    {"resnet50_layer3_0_downsample", 512, 28, 1024, 1, 2, 0},
    {"resnet50_layer3_1_conv1", 1024, 14, 256, 1, 1, 0},
    {"resnet50_layer3_1_conv2", 256, 14, 256, 3, 1, 1},
    {"resnet50_layer4_0_conv1", 1024, 14, 512, 1, 1, 0},
    {"resnet50_layer4_0_conv2", 512, 14, 512, 3, 2, 1},
    {"resnet50_layer4_0_conv3", 512, 7, 2048, 1, 1, 0},
    {"resnet50_layer4_0_downsample", 1024, 14, 2048, 1, 2, 0},
    {"resnet50_layer4_1_conv1", 2048, 7, 512, 1, 1, 0},
    {"resnet50_layer4_1_conv2", 512, 7, 512, 3, 1, 1},
    {"vgg16_conv1_1", 3, 224, 64, 3, 1, 1},
    {"vgg16_conv1_2", 64, 224, 64, 3, 1, 1},
    {"vgg16_conv2_1", 64, 112, 128, 3, 1, 1},
    {"vgg16_conv2_2", 128, 112, 128, 3, 1, 1},
    {"vgg16_conv3_1", 128, 56, 256, 3, 1, 1},
    {"vgg16_conv3_2", 256, 56, 256, 3, 1, 1},
    {"vgg16_conv4_1", 256, 28, 512, 3, 1, 1},
    {"vgg16_conv4_2", 512, 28, 512, 3, 1, 1},
    {"vgg16_conv5_1", 512, 14, 512, 3, 1, 1},
};

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Layer& layer : kLayers) names.emplace_back(layer.name);
  names.emplace_back("custom");
  return names;
}

Conv2dSpec spec_of(const Point& point) {
  Conv2dSpec s{.precision = point.precision(), .n = point.integer("batch")};
  const std::string& name = point.word("layer");
  for (const Layer& layer : kLayers) {
    if (name != layer.name) continue;
    s.c = layer.c, s.h = s.w = layer.size, s.k = layer.k, s.r = s.s = layer.filter;
    s.stride = layer.stride, s.pad = layer.pad;
    return s;
  }
  s.c = point.integer("c"), s.h = point.integer("h"), s.w = point.integer("w"), s.k = point.integer("k");
  s.r = point.integer("r"), s.s = point.integer("s"), s.stride = point.integer("stride"), s.pad = point.integer("pad");
  return s;
}

struct Pass {
  const char* word;
  ConvPass pass;
  Op op;
};
constexpr Pass kPasses[] = {{"forward", ConvPass::forward, Op::conv2d_forward},
                            {"backward_data", ConvPass::backward_data, Op::conv2d_backward_data},
                            {"backward_weights", ConvPass::backward_weights, Op::conv2d_backward_weights}};

const Pass& pass_of(const Point& point) {
  const std::string& word = point.word("pass");
  return word == "forward" ? kPasses[0] : word == "backward_data" ? kPasses[1] : kPasses[2];
}

double inverse_root(double terms) {
  return 1 / std::sqrt(std::max(terms, 1.0));
}

class Conv2dWorkload final : public TrainingOpWorkload {
 public:
  explicit Conv2dWorkload(const Point& point)
      : TrainingOpWorkload(pass_of(point).op, point.precision()), pass_(pass_of(point).pass), spec_(spec_of(point)) {
    fixed_layout_ = fixes_layout(point, spec_.layout);
    require_valid(spec_);
    const Shape x{spec_.n, spec_.c, spec_.h, spec_.w}, w{spec_.k, spec_.c, spec_.r, spec_.s};
    const Shape y{spec_.n, spec_.k, spec_.p(), spec_.q()};
    const int64_t taps = spec_.r * spec_.s, pixels = spec_.n * spec_.p() * spec_.q();
    switch (pass_) {
      case ConvPass::forward:
        add_input("x", x);
        add_input("w", w, inverse_root(static_cast<double>(spec_.c * taps)), BufferRole::parameter);
        add_result("y", y, spec_.c * taps, 1);
        break;
      case ConvPass::backward_data:
        add_input("dy", y);
        add_input("w", w, inverse_root(static_cast<double>(spec_.k * taps)), BufferRole::parameter);
        add_result("dx", x, spec_.k * taps, 1 / static_cast<double>(spec_.stride));
        break;
      case ConvPass::backward_weights:
        add_input("x", x);
        add_input("dy", y, inverse_root(static_cast<double>(pixels)));
        add_result("dw", w, pixels, 1);
        break;
    }
    declare_work(cost_of(spec_, pass_), spec_.n, "images");
  }
  void step(Device& device, const Binding& b) override {
    Ops& ops = device.ops();
    if (pass_ == ConvPass::forward) return ops.conv2d_forward(spec_, b[0], b[1], nullptr, b[2], workspace(b));
    if (pass_ == ConvPass::backward_data) return ops.conv2d_backward_data(spec_, b[0], b[1], b[2], workspace(b));
    ops.conv2d_backward_weights(spec_, b[0], b[1], b[2], nullptr, workspace(b));
  }

 protected:
  int64_t workspace_bytes(const Ops& ops) const override { return ops.conv2d_workspace_bytes(spec_, pass_); }
  void set_layout(ImageLayout layout) override {
    if (!fixed_layout_) spec_.layout = layout;
  }

 private:
  ConvPass pass_;
  Conv2dSpec spec_;
  bool fixed_layout_ = false;
};

std::string check(const Point& point) {
  if (point.word("layer") != "custom") return "";
  const int64_t pad = point.integer("pad");
  if (point.integer("r") <= point.integer("h") + 2 * pad && point.integer("s") <= point.integer("w") + 2 * pad)
    return "";
  return "the filter (r, s) is larger than the image with its border (h + 2*pad, w + 2*pad)";
}

}  // namespace

const WorkloadDescriptor& conv2d_workload() {
  const AxisCondition custom{"layer", {"custom"}};
  static const WorkloadDescriptor descriptor{
      .name = "conv2d",
      .workload_class = "ops",
      .summary = "convolutions of ResNet-50 and VGG-16, and free ones: forward and both gradients",
      .sweep_axis = "batch",
      .axes = {{.name = "layer",
                .kind = AxisKind::word,
                .fallback = "resnet50_layer1_0_conv2",
                .words = layer_names(),
                .summary = "layer of a named model; custom takes c h w k r s stride pad"},
               extent_axis("c", 64, "channels of the images", custom),
               extent_axis("h", 56, "height of the images", custom),
               extent_axis("w", 56, "width of the images", custom),
               extent_axis("k", 64, "filters", custom),
               extent_axis("r", 3, "height of a filter", custom),
               extent_axis("s", 3, "width of a filter", custom),
               extent_axis("stride", 1, "pixels between windows", custom),
               extent_axis("pad", 1, "pixels of zeros around the image", custom, 0),
               {.name = "pass",
                .kind = AxisKind::word,
                .fallback = "forward",
                .words = {"forward", "backward_data", "backward_weights"},
                .summary = "the convolution, gradient of the images, gradient of the filters"},
               layout_axis(),
               {.name = "batch", .fallback = int64_t{8}, .summary = "images"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .check = check,
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<Conv2dWorkload>(point);
      }};
  return descriptor;
}

}  // namespace dlbench
