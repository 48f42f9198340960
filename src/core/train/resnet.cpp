#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/base/error.h"
#include "core/train/layers.h"
#include "core/train/models.h"

namespace dlbench {

std::vector<std::string> resnet_presets() {
  return {"resnet18", "resnet50"};
}

ResnetConfig resnet_preset(std::string_view name, int64_t image) {
  ResnetConfig config;
  if (name == "resnet50") {
    config.bottleneck = true;
    config.blocks = {3, 4, 6, 3};
  } else if (name != "resnet18") {
    throw UsageError(fmt::format("resnet has no preset \"{}\"; known: {}", name, fmt::join(resnet_presets(), ", ")));
  }
  config.image = image;
  config.large_stem = image >= 64;
  config.classes = config.large_stem ? 1000 : 10;  // ImageNet, CIFAR-10
  return config;
}

namespace {

/// A 1x1 convolution and batch norm where the block changes the shape, else the input itself.
Images shortcut(ModelBuilder& b, const std::string& name, const Images& x, int64_t out, int64_t stride) {
  if (stride == 1 && x.c == out) return x;
  const Images y = conv2d(b, name + ".downsample.0", x, out, {.size = 1, .stride = stride, .pad = 0});
  return batch_norm(b, name + ".downsample.1", y, Activation::none);
}

Images basic_block(ModelBuilder& b, const std::string& name, const Images& x, int64_t width, int64_t stride) {
  Images y = conv2d(b, name + ".conv1", x, width, {.stride = stride});
  y = batch_norm(b, name + ".bn1", y, Activation::relu);
  y = conv2d(b, name + ".conv2", y, width, {});
  const Images added = shortcut(b, name, x, width, stride);
  return batch_norm(b, name + ".bn2", y, Activation::relu, &added);
}

Images bottleneck_block(ModelBuilder& b, const std::string& name, const Images& x, int64_t width, int64_t stride) {
  const int64_t out = 4 * width;
  Images y = conv2d(b, name + ".conv1", x, width, {.size = 1, .pad = 0});
  y = batch_norm(b, name + ".bn1", y, Activation::relu);
  y = conv2d(b, name + ".conv2", y, width, {.stride = stride});
  y = batch_norm(b, name + ".bn2", y, Activation::relu);
  y = conv2d(b, name + ".conv3", y, out, {.size = 1, .pad = 0});
  const Images added = shortcut(b, name, x, out, stride);
  return batch_norm(b, name + ".bn3", y, Activation::relu, &added);
}

Images stem(ModelBuilder& b, const ResnetConfig& config, const Images& x) {
  if (!config.large_stem) {
    return batch_norm(b, "bn1", conv2d(b, "conv1", x, config.width, {}), Activation::relu);
  }
  Images y = conv2d(b, "conv1", x, config.width, {.size = 7, .stride = 2, .pad = 3});
  y = batch_norm(b, "bn1", y, Activation::relu);
  return max_pool(b, "maxpool", y, 3, 2, 1);
}

}  // namespace

TrainingModel make_resnet(const ResnetConfig& config, int64_t batch, Precision precision, ImageLayout layout) {
  ModelBuilder b(precision, layout, config.optimizer);
  const int64_t size = config.image;
  Images x{.tensor = kNoTensor, .n = batch, .c = 3, .h = size, .w = size};
  x.tensor =
      b.input("x", image_shape(layout, batch, 3, size, size), b.storage(), 0, image_view(layout, batch, 3, size, size));
  const TensorId y = b.input("y", {batch}, DType::i32, static_cast<uint32_t>(config.classes));
  b.fact("image", size);
  b.fact("width", config.width);
  b.fact("bottleneck", config.bottleneck ? 1 : 0);
  b.fact("classes", config.classes);
  for (size_t stage = 0; stage < config.blocks.size(); ++stage) {
    b.fact(fmt::format("blocks{}", stage + 1), config.blocks[stage]);
  }
  x = stem(b, config, x);
  for (size_t stage = 0; stage < config.blocks.size(); ++stage) {
    const int64_t width = config.width << stage;
    for (int64_t block = 0; block < config.blocks[stage]; ++block) {
      const std::string name = fmt::format("layer{}.{}", stage + 1, block);
      const int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = config.bottleneck ? bottleneck_block(b, name, x, width, stride) : basic_block(b, name, x, width, stride);
    }
  }
  const TensorId features = global_average_pool(b, "avgpool", x);
  const TensorId logits = linear(b, "fc", features, batch, x.c, config.classes,
                                 {.weight_scale = 1 / std::sqrt(3.0 * static_cast<double>(x.c))});
  b.cross_entropy_loss(logits, y, batch, config.classes, config.classes, {batch, config.classes});
  return b.finish();
}

}  // namespace dlbench
