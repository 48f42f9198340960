// Layers: each adds its forward instructions to a model and leaves what its backward pass needs.
//
// Why: models are then lists of layers, as in PyTorch, and every fusion that both sides have (bias + activation,
// batch norm + residual + relu, residual + layer norm) is used in one place. Promises: a weight gradient is written
// once, by the op that computes it; no gradient is computed for a model's input; backward works in place where the
// contract of the op allows it.
#pragma once

#include <string>

#include "core/train/model.h"

namespace dlbench {

/// A batch of images in the model's layout.
struct Images {
  TensorId tensor = kNoTensor;
  int64_t n = 0, c = 0, h = 0, w = 0;
};

/// The stored shape of images and of filters in a layout; their views in PyTorch's order (NCHW, KCRS).
Shape image_shape(ImageLayout layout, int64_t n, int64_t c, int64_t h, int64_t w);
TorchView image_view(ImageLayout layout, int64_t n, int64_t c, int64_t h, int64_t w);

/// out_in: torch.nn.Linear. in_out: the Conv1D of Hugging Face's GPT-2.
enum class WeightOrder : uint8_t { out_in, in_out };

struct LinearOptions {
  Epilogue epilogue = Epilogue::bias;
  WeightOrder order = WeightOrder::out_in;
  double weight_scale = 0.02;
  /// The weight's columns are features of images in the model's layout, flattened.
  Images flattened{};
};

/// y[rows, out] = epilogue(x[rows, in] W^T + b); parameters NAME.weight, NAME.bias.
TensorId linear(ModelBuilder& b, const std::string& name, TensorId x, int64_t rows, int64_t in, int64_t out,
                const LinearOptions& options);

struct ConvOptions {
  int64_t size = 3, stride = 1, pad = 1;
  bool bias = false;
  Activation activation = Activation::none;
};
/// NAME.weight (He initialisation, by the outputs as torchvision's ResNet), NAME.bias where it has one.
Images conv2d(ModelBuilder& b, const std::string& name, const Images& x, int64_t k, const ConvOptions& options);

/// NAME.weight, NAME.bias, NAME.running_mean, NAME.running_var. @param residual added before the activation.
Images batch_norm(ModelBuilder& b, const std::string& name, const Images& x, Activation activation,
                  const Images* residual = nullptr);

Images max_pool(ModelBuilder& b, const std::string& name, const Images& x, int64_t size, int64_t stride, int64_t pad);
/// -> [n, c]
TensorId global_average_pool(ModelBuilder& b, const std::string& name, const Images& x);

/// The stream of a transformer and its normalized value.
struct Normalized {
  TensorId stream = kNoTensor;  ///< x + residual, or x
  TensorId y = kNoTensor;
};
/// NAME.weight, NAME.bias. @param residual kNoTensor: none.
Normalized layer_norm(ModelBuilder& b, const std::string& name, TensorId x, TensorId residual, int64_t rows,
                      int64_t columns);

/// Token and position table: y[batch*length, channels]; parameters TOKEN_NAME.weight and POSITION_NAME.weight.
struct EmbeddingTables {
  ModelParameter token, position;
  TensorId y = kNoTensor;
};
EmbeddingTables embedding(ModelBuilder& b, const std::string& token_name, const std::string& position_name,
                          TensorId tokens, int64_t batch, int64_t length, int64_t vocabulary, int64_t positions,
                          int64_t channels);

/// Causal: qkv[batch*length, 3*heads*head_dim] -> y[batch*length, heads*head_dim].
TensorId attention(ModelBuilder& b, const std::string& name, TensorId qkv, int64_t batch, int64_t length, int64_t heads,
                   int64_t head_dim);

/// logits[rows, stride >= vocabulary] = x[rows, channels] table^T with the token table. Its part of the table's
/// gradient is written first, the embedding's is added to it.
TensorId tied_head(ModelBuilder& b, TensorId x, const ModelParameter& table, int64_t rows, int64_t channels,
                   int64_t vocabulary, int64_t stride);

}  // namespace dlbench
