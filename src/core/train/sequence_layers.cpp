// Layers over sequences: layer norm with residual, embedding, attention.
#include "core/train/layers.h"

namespace dlbench {

Normalized layer_norm(ModelBuilder& b, const std::string& name, TensorId x, TensorId residual, int64_t rows,
                      int64_t columns) {
  const bool has_residual = residual != kNoTensor;
  const LayerNormSpec spec{.precision = b.precision(), .rows = rows, .columns = columns, .residual = has_residual};
  require_valid(spec);
  const ModelParameter gamma = b.parameter(name + ".weight", {columns}, {.init = BufferInit::constant, .scale = 1});
  const ModelParameter beta = b.parameter(name + ".bias", {columns}, {});
  const TensorId sum = has_residual ? b.activation(name + " sum", {rows, columns}) : kNoTensor;
  const TensorId y = b.activation(name, {rows, columns});
  const TensorId mean = b.activation(name + " mean", {rows}, b.statistics());
  const TensorId rstd = b.activation(name + " rstd", {rows}, b.statistics());
  const TensorId stream = has_residual ? sum : x;
  const OutputTolerance tolerance = b.tolerance(Op::layer_norm_forward, columns);
  const OutputTolerance wide = b.statistics_tolerance(Op::layer_norm_forward, columns);
  b.emit({.op = Op::layer_norm_forward,
          .name = name,
          .operands = {reads(x), reads(residual), reads(gamma.storage), reads(beta.storage), writes(sum, tolerance),
                       writes(y, tolerance), writes(mean, wide), writes(rstd, wide)},
          .cost = cost_of(spec, false),
          .call = [spec](Ops& ops, void* const* p) {
            ops.layer_norm_forward(spec, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
          }});
  b.on_backward([=, &b] {
    const TensorId dy = b.gradient_of(y);
    // The stream's gradient so far, from the layers behind, is added in the same pass and overwritten by the sum.
    const TensorId behind = b.has_gradient(stream) ? b.gradient_of(stream) : kNoTensor;
    const TensorId dx = behind != kNoTensor ? behind : b.activation(name + " gradient", {rows, columns});
    const OutputTolerance backward = b.tolerance(Op::layer_norm_backward, columns);
    const OutputTolerance over_rows = b.tolerance(Op::layer_norm_backward, rows);
    const bool in_place = behind != kNoTensor;
    b.emit({.op = Op::layer_norm_backward,
            .name = name + " gradient",
            .operands = {reads(dy), reads(stream), reads(gamma.storage), reads(mean), reads(rstd),
                         in_place ? updates(dx, backward) : writes(dx, backward), writes(gamma.gradient, over_rows),
                         writes(beta.gradient, over_rows)},
            .cost = cost_of(spec, true),
            .call = [spec, in_place](Ops& ops, void* const* p) {
              ops.layer_norm_backward(spec, p[0], p[1], p[2], p[3], p[4], in_place ? p[5] : nullptr, p[5], p[6], p[7]);
            }});
    if (!in_place) b.give_gradient(stream, dx);
    if (has_residual) {  // the same values for both; nobody writes into them before both have read them
      b.give_gradient(x, dx);
      b.give_gradient(residual, dx);
    }
  });
  return {.stream = stream, .y = y};
}

EmbeddingTables embedding(ModelBuilder& b, const std::string& token_name, const std::string& position_name,
                          TensorId tokens, int64_t batch, int64_t length, int64_t vocabulary, int64_t positions,
                          int64_t channels) {
  const EmbeddingSpec spec{.precision = b.precision(),
                           .tokens = element_count({batch, length}),
                           .length = length,
                           .vocabulary = vocabulary,
                           .channels = channels,
                           .accumulate = true};
  require_valid(spec);
  // GPT-2 (Radford et al. 2019): N(0, 0.02) for tokens, 0.01 for positions.
  EmbeddingTables tables;
  tables.token =
      b.parameter(token_name + ".weight", {vocabulary, channels}, {.init = BufferInit::normal, .scale = 0.02});
  tables.position =
      b.parameter(position_name + ".weight", {positions, channels}, {.init = BufferInit::normal, .scale = 0.01});
  tables.y = b.activation("embedding", {spec.tokens, channels});
  b.emit({.op = Op::embedding_forward,
          .name = "embedding",
          .operands = {reads(tokens), reads(tables.token.storage), reads(tables.position.storage),
                       writes(tables.y, b.tolerance(Op::embedding_forward))},
          .cost = cost_of(spec, false),
          .call = [spec](Ops& ops, void* const* p) {
            ops.embedding_forward(spec, static_cast<const int32_t*>(p[0]), p[1], p[2], p[3]);
          }});
  b.on_backward([=, &b] {
    const OutputTolerance tolerance = b.tolerance(Op::embedding_backward, spec.tokens);
    b.emit({.op = Op::embedding_backward,
            .name = "embedding gradient",
            .operands = {reads(tokens), reads(b.gradient_of(tables.y)), updates(tables.token.gradient, tolerance),
                         updates(tables.position.gradient, tolerance)},
            .cost = cost_of(spec, true),
            .workspace_bytes = [spec](const Ops& ops) { return ops.embedding_workspace_bytes(spec); },
            .call =
                [spec](Ops& ops, void* const* p) {
                  ops.embedding_backward(spec, static_cast<const int32_t*>(p[0]), p[1], p[2], p[3], p[4]);
                }});
  });
  return tables;
}

TensorId attention(ModelBuilder& b, const std::string& name, TensorId qkv, int64_t batch, int64_t length, int64_t heads,
                   int64_t head_dim) {
  const AttentionSpec spec{
      .precision = b.precision(), .batch = batch, .length = length, .heads = heads, .head_dim = head_dim};
  require_valid(spec);
  const TensorId y = b.activation(name, {batch * length, heads * head_dim});
  const TensorId log_sum_exp = b.activation(name + " log-sum-exp", {batch, heads, length}, b.statistics());
  const int64_t reduction = length + head_dim;
  b.emit({.op = Op::attention_forward,
          .name = name,
          .operands = {reads(qkv), writes(y, b.tolerance(Op::attention_forward, reduction)),
                       writes(log_sum_exp, b.statistics_tolerance(Op::attention_forward, reduction))},
          .cost = cost_of(spec, false),
          .workspace_bytes = [spec](const Ops& ops) { return ops.attention_workspace_bytes(spec, false); },
          .call = [spec](Ops& ops, void* const* p) { ops.attention_forward(spec, p[0], p[1], p[2], p[3]); }});
  b.on_backward([=, &b] {
    const TensorId dy = b.gradient_of(y);
    b.write_gradient(qkv, [&](TensorId dqkv) {
      b.emit({.op = Op::attention_backward,
              .name = name + " gradient",
              .operands = {reads(qkv), reads(y), reads(dy), reads(log_sum_exp),
                           writes(dqkv, b.tolerance(Op::attention_backward, reduction))},
              .cost = cost_of(spec, true),
              .workspace_bytes = [spec](const Ops& ops) { return ops.attention_workspace_bytes(spec, true); },
              .call = [spec](Ops& ops,
                             void* const* p) { ops.attention_backward(spec, p[0], p[1], p[2], p[3], p[4], p[5]); }});
    });
  });
  return y;
}

}  // namespace dlbench
