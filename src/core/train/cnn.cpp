#include <cmath>

#include "core/train/layers.h"
#include "core/train/models.h"

namespace dlbench {

TrainingModel make_cnn(const CnnConfig& config, int64_t batch, Precision precision, ImageLayout layout) {
  ModelBuilder b(precision, layout, config.optimizer);
  const int64_t size = config.image, channels = config.channels;
  Images x{.tensor = kNoTensor, .n = batch, .c = channels, .h = size, .w = size};
  x.tensor = b.input("x", image_shape(layout, batch, channels, size, size), b.storage(), 0,
                     image_view(layout, batch, channels, size, size));
  const TensorId y = b.input("y", {batch}, DType::i32, static_cast<uint32_t>(config.classes));
  b.fact("image", size);
  b.fact("classes", config.classes);
  const ConvOptions conv{.bias = true, .activation = Activation::relu};
  x = conv2d(b, "0", x, config.filters1, conv);
  x = max_pool(b, "2", x, 2, 2, 0);
  x = conv2d(b, "3", x, config.filters2, conv);
  x = max_pool(b, "5", x, 2, 2, 0);
  const int64_t features = x.c * x.h * x.w;
  const auto he = [](int64_t in) { return std::sqrt(2.0 / static_cast<double>(in)); };
  const TensorId hidden = linear(b, "7", x.tensor, batch, features, config.hidden,
                                 {.epilogue = Epilogue::bias_relu, .weight_scale = he(features), .flattened = x});
  const TensorId logits =
      linear(b, "9", hidden, batch, config.hidden, config.classes, {.weight_scale = 0.1 * he(config.hidden)});
  b.cross_entropy_loss(logits, y, batch, config.classes, config.classes, {batch, config.classes});
  return b.finish();
}

}  // namespace dlbench
