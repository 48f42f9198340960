#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/base/error.h"
#include "core/train/layers.h"
#include "core/train/models.h"

namespace dlbench {

std::vector<std::string> mlp_presets() {
  return {"tiny", "base", "wide"};
}

MlpConfig mlp_preset(std::string_view name) {
  if (name == "tiny") return {.widths = {784, 128, 10}};
  if (name == "base") return {.widths = {784, 1024, 1024, 10}};
  if (name == "wide") return {.widths = {784, 4096, 4096, 4096, 4096, 10}};
  throw UsageError(fmt::format("mlp has no preset \"{}\"; known: {}", name, fmt::join(mlp_presets(), ", ")));
}

TrainingModel make_mlp(const MlpConfig& config, int64_t batch, Precision precision, ImageLayout layout) {
  ModelBuilder b(precision, layout, config.optimizer);
  const size_t layers = config.widths.size() - 1;
  const int64_t classes = config.widths.back();
  TensorId x = b.input("x", {batch, config.widths.front()}, b.storage(), 0);
  const TensorId y = b.input("y", {batch}, DType::i32, static_cast<uint32_t>(classes));
  b.fact("layers", static_cast<int64_t>(layers));
  b.fact("classes", classes);
  for (size_t i = 0; i < layers; ++i) {
    const int64_t in = config.widths[i], out = config.widths[i + 1];
    const bool last = i + 1 == layers;
    // He initialisation; the last layer starts small, so that the first loss is that of a guess, ln(classes).
    const double scale = std::sqrt((last ? 0.02 : 2.0) / static_cast<double>(in));
    x = linear(b, std::to_string(2 * i), x, batch, in, out,
               {.epilogue = last ? Epilogue::bias : Epilogue::bias_relu, .weight_scale = scale});
  }
  b.cross_entropy_loss(x, y, batch, classes, classes, {batch, classes});
  return b.finish();
}

}  // namespace dlbench
