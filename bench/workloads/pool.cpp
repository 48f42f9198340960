// pool: the poolings of ResNet-50, VGG-16 and the small cnn by name, and free ones; forward and backward.
#include "workloads/catalog.h"
#include "workloads/training_op_workload.h"

namespace dlbench {

namespace {

struct Layer {
  const char* name;
  Pooling pooling;
  int64_t c, size, window, stride, pad;
};
// ResNet-50: behind the first convolution, and the global one before the classifier (He et al. 2016). VGG-16: the first
// of its five (Simonyan & Zisserman 2015). cnn: 32x32 images behind 32 filters.
constexpr Layer kLayers[] = {{"resnet50_maxpool", Pooling::max, 64, 112, 3, 2, 1},
                             {"resnet50_avgpool", Pooling::average, 2048, 7, 7, 1, 0},
                             {"vgg16_pool1", Pooling::max, 64, 224, 2, 2, 0},
                             {"cnn_pool1", Pooling::max, 32, 32, 2, 2, 0}};

PoolSpec spec_of(const Point& point) {
  PoolSpec s{.precision = point.precision(), .n = point.integer("batch")};
  const std::string& name = point.word("layer");
  for (const Layer& layer : kLayers) {
    if (name != layer.name) continue;
    s.pooling = layer.pooling, s.c = layer.c, s.h = s.w = layer.size, s.r = s.s = layer.window;
    s.stride = layer.stride, s.pad = layer.pad;
    return s;
  }
  s.pooling = name == "custom_max" ? Pooling::max : Pooling::average;
  s.c = point.integer("c"), s.h = point.integer("h"), s.w = point.integer("w");
  s.r = point.integer("r"), s.s = point.integer("s"), s.stride = point.integer("stride");
  return s;
}

class PoolWorkload final : public TrainingOpWorkload {
 public:
  PoolWorkload(const Point& point, bool backward)
      : TrainingOpWorkload(backward ? Op::pool_backward : Op::pool_forward, point.precision()),
        backward_(backward),
        spec_(spec_of(point)) {
    fixed_layout_ = fixes_layout(point, spec_.layout);
    require_valid(spec_);
    const bool max = spec_.pooling == Pooling::max;
    const Shape x{spec_.n, spec_.c, spec_.h, spec_.w}, y{spec_.n, spec_.c, spec_.p(), spec_.q()};
    const Shape index = max ? y : Shape{0};
    const double places = static_cast<double>(spec_.r * spec_.s);
    if (backward_) {
      add_input("dy", y);
      add_winners(index);
      add_result("dx", x, spec_.r * spec_.s, max ? 1 : 1 / places);
    } else {
      add_input("x", x);
      add_result("y", y, spec_.r * spec_.s, 1 / std::sqrt(places));
      add_output("index", index, DType::u8);
    }
    declare_work(cost_of(spec_, backward_), spec_.n, "images");
  }
  void step(Device& device, const Binding& b) override {
    const bool max = spec_.pooling == Pooling::max;
    if (backward_) {
      return device.ops().pool_backward(spec_, b[0], static_cast<const uint8_t*>(max ? b[1] : nullptr), b[2]);
    }
    device.ops().pool_forward(spec_, b[0], b[1], static_cast<uint8_t*>(max ? b[2] : nullptr));
  }

 protected:
  void set_layout(ImageLayout layout) override {
    if (!fixed_layout_) spec_.layout = layout;
  }

 private:
  /// Where each window's largest value was: anywhere. A window at the border of a padded image has places outside of
  /// the image, which can't have won; there it is the place in the middle, which never is outside.
  void add_winners(Shape shape) {
    if (spec_.pad == 0)
      return add_indices("index", std::move(shape), DType::u8, static_cast<uint32_t>(spec_.r * spec_.s));
    buffers_.push_back({.name = "index",
                        .shape = std::move(shape),
                        .dtype = DType::u8,
                        .init = BufferInit::constant,
                        .scale = static_cast<double>(spec_.r / 2 * spec_.s + spec_.s / 2)});
  }

  bool backward_;
  PoolSpec spec_;
  bool fixed_layout_ = false;
};

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Layer& layer : kLayers) names.emplace_back(layer.name);
  names.emplace_back("custom_max");
  names.emplace_back("custom_average");
  return names;
}

std::string check(const Point& point) {
  const std::string& name = point.word("layer");
  if (name != "custom_max" && name != "custom_average") return "";
  const int64_t r = point.integer("r"), s = point.integer("s");
  if (r > point.integer("h") || s > point.integer("w")) return "the window (r, s) is larger than the image (h, w)";
  // A winner's place is one byte.
  if (name == "custom_max" && (r > 256 || s > 256 || r * s > 256)) return "a max window has at most 256 places (r*s)";
  return "";
}

}  // namespace

const WorkloadDescriptor& pool_workload() {
  const AxisCondition custom{"layer", {"custom_max", "custom_average"}};
  static const WorkloadDescriptor descriptor{
      .name = "pool",
      .workload_class = "ops",
      .summary = "max, average and global pooling and their gradients",
      .sweep_axis = "batch",
      .axes = {{.name = "layer",
                .kind = AxisKind::word,
                .fallback = "resnet50_maxpool",
                .words = layer_names(),
                .summary = "layer of a named model; custom takes c h w r s stride"},
               extent_axis("c", 64, "channels", custom),
               extent_axis("h", 56, "height of the images", custom),
               extent_axis("w", 56, "width of the images", custom),
               extent_axis("r", 2, "height of a window", custom),
               extent_axis("s", 2, "width of a window", custom),
               extent_axis("stride", 2, "pixels between windows", custom),
               forward_backward_axis(),
               layout_axis(),
               {.name = "batch", .fallback = int64_t{8}, .summary = "images"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .check = check,
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<PoolWorkload>(point, point.word("pass") == "backward");
      }};
  return descriptor;
}

}  // namespace dlbench
