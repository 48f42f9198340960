#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "core/base/error.h"
#include "core/train/layers.h"
#include "core/train/models.h"

namespace dlbench {

std::vector<std::string> gpt2_presets() {
  return {"nano", "mini", "small"};
}

Gpt2Config gpt2_preset(std::string_view name) {
  if (name == "nano") return {};
  if (name == "mini") return {.layers = 6, .heads = 6, .channels = 384};
  if (name == "small") return {.layers = 12, .heads = 12, .channels = 768, .vocabulary = 50257};
  throw UsageError(fmt::format("gpt2 has no preset \"{}\"; known: {}", name, fmt::join(gpt2_presets(), ", ")));
}

namespace {

/// Rows of logits start at multiples of this many elements, so that their gradient is an aligned factor of products.
constexpr int64_t kLogitsAlignment = 64;

struct Block {
  TensorId stream, branch;  ///< the next layer norm adds them
};

Block block(ModelBuilder& b, const Gpt2Config& config, int64_t layer, Block in, int64_t batch, int64_t length) {
  const int64_t rows = batch * length, d = config.channels;
  const std::string name = fmt::format("h.{}", layer);
  // Branches into the stream start smaller, so that it doesn't grow with the depth (Radford et al. 2019).
  const double branch_scale = 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers));
  const auto project = [&](const std::string& part, TensorId x, int64_t from, int64_t to, Epilogue epilogue,
                           double scale) {
    return linear(b, name + part, x, rows, from, to,
                  {.epilogue = epilogue, .order = WeightOrder::in_out, .weight_scale = scale});
  };
  Normalized n = layer_norm(b, name + ".ln_1", in.stream, in.branch, rows, d);
  const TensorId qkv = project(".attn.c_attn", n.y, d, 3 * d, Epilogue::bias, 0.02);
  const TensorId mixed = attention(b, name + ".attn", qkv, batch, length, config.heads, d / config.heads);
  const TensorId projected = project(".attn.c_proj", mixed, d, d, Epilogue::bias, branch_scale);
  n = layer_norm(b, name + ".ln_2", n.stream, projected, rows, d);
  const TensorId hidden = project(".mlp.c_fc", n.y, d, 4 * d, Epilogue::bias_gelu, 0.02);
  return {n.stream, project(".mlp.c_proj", hidden, 4 * d, d, Epilogue::bias, branch_scale)};
}

}  // namespace

TrainingModel make_gpt2(const Gpt2Config& config, int64_t batch, int64_t length, Precision precision) {
  if (length > config.positions) {
    throw UsageError(fmt::format("seq={} is longer than the position table of this model; must be at most {}", length,
                                 config.positions));
  }
  if (config.channels % config.heads != 0) throw Error("gpt2: the channels aren't a multiple of the heads");
  ModelBuilder b(precision, ImageLayout::nchw, config.optimizer);
  const int64_t rows = element_count({batch, length}), d = config.channels;
  b.fact("layers", config.layers);
  b.fact("heads", config.heads);
  b.fact("channels", config.channels);
  b.fact("vocabulary", config.vocabulary);
  b.fact("positions", config.positions);
  const auto vocabulary = static_cast<uint32_t>(config.vocabulary);
  const TensorId tokens = b.input("tokens", {batch, length}, DType::i32, vocabulary);
  const TensorId targets = b.input("targets", {batch, length}, DType::i32, vocabulary);
  const EmbeddingTables tables =
      embedding(b, "wte", "wpe", tokens, batch, length, config.vocabulary, config.positions, d);
  Block stream{tables.y, kNoTensor};
  for (int64_t layer = 0; layer < config.layers; ++layer) stream = block(b, config, layer, stream, batch, length);
  const Normalized last = layer_norm(b, "ln_f", stream.stream, stream.branch, rows, d);
  const int64_t stride = (config.vocabulary + kLogitsAlignment - 1) / kLogitsAlignment * kLogitsAlignment;
  const TensorId logits = tied_head(b, last.y, tables.token, rows, d, config.vocabulary, stride);
  b.cross_entropy_loss(logits, targets, rows, config.vocabulary, stride, {batch, length, config.vocabulary});
  return b.finish();
}

}  // namespace dlbench
