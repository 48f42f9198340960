// Attention and embedding of the reference. Attention stores the T x T probabilities of one head of one sequence at a
// time. What it computes when it costs too much: all of a head of a sequence, or nothing of it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "core/device/reference_elements.h"
#include "core/device/reference_ops.h"

namespace dlbench {

namespace {

using Matrix = std::vector<double>;  // [T, HD] or [T, T]

/// One head of one sequence. Its rows of HD values lie `row` elements apart.
class Head {
 public:
  Head(const AttentionSpec& s, int64_t b, int64_t head) : s_(s), b_(b), head_(head), type_(storage_of(s.precision)) {}

  /// part 0, 1, 2: q, k, v
  Matrix load_packed(const void* qkv, int64_t part) const { return load(qkv, 3, part); }
  Matrix load_output(const void* y) const { return load(y, 1, 0); }
  void store_packed(void* qkv, int64_t part, const Matrix& m) const { store(qkv, 3, part, m); }
  void store_output(void* y, const Matrix& m) const { store(y, 1, 0, m); }
  Run log_sum_exp() const { return {(b_ * s_.heads + head_) * s_.length, s_.length, 1}; }

 private:
  Run row(int64_t parts, int64_t part, int64_t t) const {
    return {(((b_ * s_.length + t) * parts + part) * s_.heads + head_) * s_.head_dim, s_.head_dim, 1};
  }
  Matrix load(const void* array, int64_t parts, int64_t part) const {
    Matrix m(static_cast<size_t>(s_.length * s_.head_dim));
    for (int64_t t = 0; t < s_.length; ++t) load_run(type_, array, row(parts, part, t), m.data() + t * s_.head_dim);
    return m;
  }
  void store(void* array, int64_t parts, int64_t part, const Matrix& m) const {
    for (int64_t t = 0; t < s_.length; ++t) store_run(type_, array, row(parts, part, t), m.data() + t * s_.head_dim);
  }

  const AttentionSpec& s_;
  int64_t b_, head_;
  DType type_;
};

/// How many keys row t attends to.
int64_t visible(const AttentionSpec& s, int64_t t) {
  return s.causal ? t + 1 : s.length;
}

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void add_scaled(double factor, const double* x, double* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sums[i] += factor * x[i];
}

double scale_of(const AttentionSpec& s) {
  return 1 / std::sqrt(static_cast<double>(s.head_dim));
}

RowSample heads_of(const AttentionSpec& s, double products, double max_flops) {
  const double pairs = static_cast<double>(s.length) * static_cast<double>(visible(s, s.length / 2));
  return RowSample(s.batch * s.heads, products * 2 * pairs * static_cast<double>(s.head_dim), max_flops);
}

void forward_of_head(const AttentionSpec& s, const Head& head, const void* qkv, void* y, void* log_sum_exp) {
  const int64_t d = s.head_dim;
  const Matrix q = head.load_packed(qkv, 0), k = head.load_packed(qkv, 1), v = head.load_packed(qkv, 2);
  Matrix out(q.size()), lse(static_cast<size_t>(s.length));
  for (int64_t t = 0; t < s.length; ++t) {
    Matrix score(static_cast<size_t>(visible(s, t)));
    for (int64_t j = 0; j < visible(s, t); ++j) {
      score[static_cast<size_t>(j)] = scale_of(s) * dot(q.data() + t * d, k.data() + j * d, d);
    }
    const double largest = *std::max_element(score.begin(), score.end());
    double sum = 0;
    for (const double value : score) sum += std::exp(value - largest);
    lse[static_cast<size_t>(t)] = largest + std::log(sum);
    for (int64_t j = 0; j < visible(s, t); ++j) {
      const double probability = std::exp(score[static_cast<size_t>(j)] - largest) / sum;
      add_scaled(probability, v.data() + j * d, out.data() + t * d, d);
    }
  }
  head.store_output(y, out);
  store_run(accumulate_of(s.precision), log_sum_exp, head.log_sum_exp(), lse);
}

/// With P = softmax, dP = dy v^T and D = rowsum(dy * y): dS = P * (dP - D) (Dao et al. 2022, FlashAttention, appendix
/// B.2).
void backward_of_head(const AttentionSpec& s, const Head& head, const void* qkv, const void* y, const void* dy,
                      const void* log_sum_exp, void* dqkv) {
  const int64_t d = s.head_dim;
  const Matrix q = head.load_packed(qkv, 0), k = head.load_packed(qkv, 1), v = head.load_packed(qkv, 2);
  const Matrix out = head.load_output(y), gradient = head.load_output(dy);
  const Matrix lse = load_run(accumulate_of(s.precision), log_sum_exp, head.log_sum_exp());
  Matrix dq(q.size()), dk(q.size()), dv(q.size());
  for (int64_t t = 0; t < s.length; ++t) {
    const double* g = gradient.data() + t * d;
    const double delta = dot(g, out.data() + t * d, d);
    for (int64_t j = 0; j < visible(s, t); ++j) {
      const double score = scale_of(s) * dot(q.data() + t * d, k.data() + j * d, d);
      const double probability = std::exp(score - lse[static_cast<size_t>(t)]);
      const double dscore = probability * (dot(g, v.data() + j * d, d) - delta) * scale_of(s);
      add_scaled(probability, g, dv.data() + j * d, d);
      add_scaled(dscore, k.data() + j * d, dq.data() + t * d, d);
      add_scaled(dscore, q.data() + t * d, dk.data() + j * d, d);
    }
  }
  head.store_packed(dqkv, 0, dq);
  head.store_packed(dqkv, 1, dk);
  head.store_packed(dqkv, 2, dv);
}

size_t checked_token(const EmbeddingSpec& s, const int32_t* tokens, int64_t t) {
  if (tokens[t] < 0 || tokens[t] >= s.vocabulary) {
    throw std::invalid_argument(
        fmt::format("embedding: token {} is {}; must be from 0 to {}", t, tokens[t], s.vocabulary - 1));
  }
  return static_cast<size_t>(tokens[t]);
}

}  // namespace

void ReferenceOps::attention_forward(const AttentionSpec& s, const void* qkv, void* y, void* log_sum_exp, void*) {
  require_valid(s);
  const RowSample sample = heads_of(s, 2, options_.max_flops_per_op);
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t head = 0; head < s.heads; ++head) {
      if (sample.contains(b * s.heads + head)) forward_of_head(s, Head(s, b, head), qkv, y, log_sum_exp);
    }
  }
}

void ReferenceOps::attention_backward(const AttentionSpec& s, const void* qkv, const void* y, const void* dy,
                                      const void* log_sum_exp, void* dqkv, void*) {
  require_valid(s);
  const RowSample sample = heads_of(s, 5, options_.max_flops_per_op);
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t head = 0; head < s.heads; ++head) {
      if (sample.contains(b * s.heads + head)) backward_of_head(s, Head(s, b, head), qkv, y, dy, log_sum_exp, dqkv);
    }
  }
}

void ReferenceOps::embedding_forward(const EmbeddingSpec& s, const int32_t* tokens, const void* token_table,
                                     const void* position_table, void* y) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  for (int64_t t = 0; t < s.tokens; ++t) {
    const auto token = static_cast<int64_t>(checked_token(s, tokens, t));
    std::vector<double> row = load_run(type, token_table, {token * s.channels, s.channels, 1});
    if (s.positions) {
      const std::vector<double> position = load_run(type, position_table, {t % s.length * s.channels, s.channels, 1});
      for (size_t i = 0; i < row.size(); ++i) row[i] += position[i];
    }
    store_run(type, y, {t * s.channels, s.channels, 1}, row);
  }
}

void ReferenceOps::embedding_backward(const EmbeddingSpec& s, const int32_t* tokens, const void* dy, void* dtoken,
                                      void* dposition, void*) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  const Run table{0, s.vocabulary * s.channels, 1}, positions{0, s.length * s.channels, 1};
  std::vector<double> token_sums =
      s.accumulate ? load_run(type, dtoken, table) : std::vector<double>(static_cast<size_t>(table.count));
  std::vector<double> position_sums(static_cast<size_t>(positions.count));
  for (int64_t t = 0; t < s.tokens; ++t) {
    const std::vector<double> row = load_run(type, dy, {t * s.channels, s.channels, 1});
    const size_t token = checked_token(s, tokens, t) * row.size(),
                 position = static_cast<size_t>(t % s.length) * row.size();
    for (size_t i = 0; i < row.size(); ++i) {
      token_sums[token + i] += row[i];
      position_sums[position + i] += row[i];
    }
  }
  store_run(type, dtoken, table, token_sums);
  if (s.positions) store_run(type, dposition, positions, position_sums);
}

}  // namespace dlbench
