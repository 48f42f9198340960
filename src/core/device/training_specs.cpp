#include "core/device/training_specs.h"

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

namespace dlbench {

namespace {

using Named = std::pair<const char*, int64_t>;

[[noreturn]] void refuse(const char* op, const std::string& why) {
  throw std::invalid_argument(std::string(op) + ": " + why);
}

void at_least(const char* op, int64_t bound, std::initializer_list<Named> extents) {
  for (const auto& [name, value] : extents) {
    if (value < bound)
      refuse(op, std::string(name) + " is " + std::to_string(value) + "; must be at least " + std::to_string(bound));
  }
}

/// The product of the extents must be countable, with room for byte offsets of 8-byte elements.
void countable(const char* op, std::initializer_list<int64_t> extents) {
  int64_t product = 8;
  for (const int64_t extent : extents) {
    if (extent == 0) return;
    if (__builtin_mul_overflow(product, extent, &product)) refuse(op, "more than 2^60 elements");
  }
}

void finite(const char* op, std::initializer_list<std::pair<const char*, float>> values) {
  for (const auto& [name, value] : values) {
    if (!std::isfinite(value)) refuse(op, std::string(name) + " must be finite");
  }
}

/// A window sliding over a padded image of one channel.
void window(const char* op, int64_t h, int64_t w, int64_t r, int64_t s, int64_t stride, int64_t pad) {
  at_least(op, 1, {{"r", r}, {"s", s}, {"stride", stride}});
  at_least(op, 0, {{"pad", pad}, {"h", h}, {"w", w}});
  countable(op, {h + 2 * pad, w + 2 * pad});
  if (r > h + 2 * pad || s > w + 2 * pad) {
    refuse(op, "a window of " + std::to_string(r) + "x" + std::to_string(s) + " is larger than the padded image of " +
                   std::to_string(h + 2 * pad) + "x" + std::to_string(w + 2 * pad));
  }
}

}  // namespace

void require_valid(const Conv2dSpec& spec) {
  constexpr const char* op = "conv2d";
  at_least(op, 0, {{"n", spec.n}, {"c", spec.c}, {"k", spec.k}});
  window(op, spec.h, spec.w, spec.r, spec.s, spec.stride, spec.pad);
  countable(op, {spec.n, spec.c, spec.h, spec.w});
  countable(op, {spec.n, spec.k, spec.p(), spec.q()});
  countable(op, {spec.k, spec.c, spec.r, spec.s});
}

void require_valid(const PoolSpec& spec) {
  constexpr const char* op = "pool";
  at_least(op, 0, {{"n", spec.n}, {"c", spec.c}});
  window(op, spec.h, spec.w, spec.r, spec.s, spec.stride, spec.pad);
  countable(op, {spec.n, spec.c, spec.h + 2 * spec.pad, spec.w + 2 * spec.pad});
  if (2 * spec.pad > spec.r || 2 * spec.pad > spec.s) refuse(op, "pad must be at most half of the window");
  if (spec.pooling == Pooling::max && spec.r * spec.s > 256) refuse(op, "a max window has at most 256 places");
}

void require_valid(const BatchNormSpec& spec) {
  constexpr const char* op = "batch_norm";
  at_least(op, 0, {{"n", spec.n}, {"c", spec.c}, {"h", spec.h}, {"w", spec.w}});
  countable(op, {spec.n, spec.c, spec.h, spec.w});
  if (spec.c > 0 && spec.n * spec.h * spec.w < 2) refuse(op, "a variance needs at least 2 values per channel (n*h*w)");
  finite(op, {{"epsilon", spec.epsilon}, {"momentum", spec.momentum}});
}

void require_valid(const LayerNormSpec& spec) {
  constexpr const char* op = "layer_norm";
  at_least(op, 0, {{"rows", spec.rows}});
  at_least(op, 1, {{"columns", spec.columns}});
  countable(op, {spec.rows, spec.columns});
  finite(op, {{"epsilon", spec.epsilon}});
}

void require_valid(const RowsSpec& spec) {
  constexpr const char* op = "softmax";
  at_least(op, 0, {{"rows", spec.rows}, {"columns", spec.columns}, {"row_stride", spec.row_stride}});
  if (spec.row_stride != 0 && spec.row_stride < spec.columns) refuse(op, "row_stride is smaller than columns");
  countable(op, {spec.rows, spec.row_stride != 0 ? spec.row_stride : spec.columns});
}

void require_valid(const EmbeddingSpec& spec) {
  constexpr const char* op = "embedding";
  at_least(op, 0, {{"tokens", spec.tokens}, {"vocabulary", spec.vocabulary}, {"channels", spec.channels}});
  at_least(op, 1, {{"length", spec.length}});
  if (spec.tokens % spec.length != 0) refuse(op, "tokens must be a multiple of length");
  if (spec.tokens > 0 && spec.vocabulary < 1) refuse(op, "a token needs a vocabulary of at least 1");
  countable(op, {spec.tokens, spec.channels});
  countable(op, {spec.vocabulary, spec.channels});
  countable(op, {spec.length, spec.channels});
}

void require_valid(const AttentionSpec& spec) {
  constexpr const char* op = "attention";
  at_least(op, 0, {{"batch", spec.batch}, {"length", spec.length}, {"heads", spec.heads}});
  at_least(op, 1, {{"head_dim", spec.head_dim}});
  countable(op, {spec.batch, spec.length, 3, spec.heads, spec.head_dim});
  countable(op, {spec.batch, spec.heads, spec.length, spec.length});
}

void require_valid(const GradientSpec& spec) {
  constexpr const char* op = "prepare_update";
  at_least(op, 0, {{"n", spec.n}});
  countable(op, {spec.n});
  finite(op, {{"max_norm", spec.max_norm}});
  if (spec.growth_interval < 1) refuse(op, "growth_interval must be at least 1");
  if (!spec.check && (spec.max_norm > 0 || spec.dynamic_scaling)) {
    refuse(op, "clipping and dynamic loss scaling need the gradient to be checked (check = true)");
  }
}

void require_valid(const SgdSpec& spec) {
  constexpr const char* op = "sgd_step";
  at_least(op, 0, {{"n", spec.n}, {"decayed", spec.decayed}});
  countable(op, {spec.n});
  if (spec.decayed > spec.n) refuse(op, "decayed must be at most n");
  finite(op, {{"lr", spec.lr}, {"momentum", spec.momentum}, {"weight_decay", spec.weight_decay}});
}

void require_valid(const AdamWSpec& spec) {
  constexpr const char* op = "adamw_step";
  at_least(op, 0, {{"n", spec.n}, {"decayed", spec.decayed}});
  countable(op, {spec.n});
  if (spec.decayed > spec.n) refuse(op, "decayed must be at most n");
  finite(op, {{"lr", spec.lr}, {"weight_decay", spec.weight_decay}, {"epsilon", spec.epsilon}});
  for (const float beta : {spec.beta1, spec.beta2}) {
    if (!(beta >= 0.0f && beta < 1.0f)) refuse(op, "beta1 and beta2 must be from 0 to below 1");
  }
}

}  // namespace dlbench
