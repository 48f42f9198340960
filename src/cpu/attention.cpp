// Attention without a T x T matrix in memory. Twin: src/gpu/attention.cu.
//
// The tiles of scores are those of Dao et al. 2022 ("FlashAttention"): a block of queries meets the blocks of keys one
// after another; maximum and sum of each query are carried along; backward computes the probabilities again from the
// log-sum-exp. Blocks and their order follow from the shape alone. fp32 and 16-bit types go through the packed panels
// and tiles of gemm (widened on the way), fp64 through one-thread OpenBLAS calls.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpu/gemm_kernels.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {

constexpr int64_t kQueries = 128;         ///< of a block in forward
constexpr int64_t kKeys = 64;             ///< of a block
constexpr int64_t kBackwardQueries = 64;  ///< of a block in backward
constexpr int64_t kSlack = 16;            ///< elements that the last store into a panel may reach beyond it

int64_t round_up(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Left and right operands of products of W: packed panels, or for fp64 the matrix where it lies.
struct Left {
  const void* data;
  int64_t stride;   ///< of the depth (panels: between depths of a panel)
  int64_t panel;    ///< elements from one panel of rows to the next
  bool transposed;  ///< fp64 only
};
struct Right {
  const void* data;
  int64_t stride, panel;
  bool transposed;
};

/// What a causal mask leaves of a product.
struct Everything {
  bool wanted(int64_t, int64_t, int64_t, int64_t) const { return true; }
  int64_t from(int64_t) const { return 0; }
  int64_t to(int64_t, int64_t depth) const { return depth; }
};

/// Products of small matrices by one thread. W: the accumulate type.
template <typename W>
class Products {
 public:
  Products(const Blas& blas, DType type)
      : blas_(blas),
        kernels_(gemm_kernels()),
        type_(element_index(type)),
        wide_(element_index(kFp64 ? DType::f64 : DType::f32)),
        element_(static_cast<int64_t>(size_of(type))) {}

  static constexpr bool kFp64 = std::is_same_v<W, double>;
  int64_t left_size(int64_t rows, int64_t depth) const {
    return kFp64 ? 0 : round_up(rows, kernels_.tile_rows) * depth + kSlack;
  }
  int64_t right_size(int64_t columns, int64_t depth) const {
    return kFp64 ? 0 : round_up(columns, kernels_.tile_columns) * depth;
  }
  const char* element(const void* x, int64_t i) const { return static_cast<const char*>(x) + i * element_; }
  char* element(void* x, int64_t i) const { return static_cast<char*>(x) + i * element_; }

  /// A(row, p) = x[row * stride + p]
  Left rows(const void* x, int64_t stride, int64_t rows, int64_t depth, W* memory) const {
    return pack_left(type_, x, stride, rows, depth, memory);
  }
  Left wide_rows(const W* x, int64_t stride, int64_t rows, int64_t depth, W* memory) const {
    return pack_left(wide_, x, stride, rows, depth, memory);
  }
  /// A(row, p) = x[p * stride + row]: what a tile reads anyway.
  Left wide_columns(const W* x, int64_t stride) const { return {x, stride, kernels_.tile_rows, true}; }
  /// B(p, column) = x[p * stride + column]
  Right rows_of_depth(const void* x, int64_t stride, int64_t depth, int64_t columns, W* memory) const {
    if constexpr (kFp64) return {x, stride, 0, false};
    kernels_.pack_b[type_](x, stride, 1, depth, columns, reinterpret_cast<float*>(memory));
    return {memory, kernels_.tile_columns, depth * kernels_.tile_columns, false};
  }
  /// B(p, column) = x[column * stride + p]
  Right rows_of_columns(const void* x, int64_t stride, int64_t depth, int64_t columns, W* memory) const {
    if constexpr (kFp64) return {x, stride, 0, true};
    kernels_.pack_b[type_](x, 1, stride, depth, columns, reinterpret_cast<float*>(memory));
    return {memory, kernels_.tile_columns, depth * kernels_.tile_columns, false};
  }

  /// What `rows` and `rows_of_depth` packed into `memory` before.
  Left packed_rows(const void* x, int64_t stride, int64_t depth, const W* memory) const {
    if constexpr (kFp64) return {x, stride, 0, false};
    return {memory, kernels_.tile_rows, depth * kernels_.tile_rows, false};
  }
  Right packed_rows_of_depth(const void* x, int64_t stride, int64_t depth, const W* memory) const {
    if constexpr (kFp64) return {x, stride, 0, false};
    return {memory, kernels_.tile_columns, depth * kernels_.tile_columns, false};
  }

  /// C = alpha A B + beta C, beta 0 or 1. The mask tells which tiles of C are wanted, and for which depths rows of A
  /// aren't 0; fp64 computes everything.
  template <typename Mask>
  void multiply(const Left& a, const Right& b, int64_t m, int64_t n, int64_t depth, double alpha, float beta, W* c,
                int64_t ldc, const Mask& mask) const {
    if constexpr (kFp64) {
      blas_.gemm(true, a.transposed ? Transpose::yes : Transpose::no, b.transposed ? Transpose::yes : Transpose::no, m,
                 n, depth, alpha, a.data, a.stride, b.data, b.stride, static_cast<double>(beta), c, ldc);
    } else {
      TileArgs t;
      t.a_stride = a.stride, t.b_stride = b.stride, t.c_stride = ldc, t.alpha = static_cast<float>(alpha),
      t.beta = beta;
      for (int64_t j = 0; j < n; j += kernels_.tile_columns) {
        t.columns = std::min<int64_t>(kernels_.tile_columns, n - j);
        for (int64_t i = 0; i < m; i += kernels_.tile_rows) {
          t.rows = static_cast<int>(std::min<int64_t>(kernels_.tile_rows, m - i));
          if (!mask.wanted(i, t.rows, j, t.columns)) continue;
          const int64_t from = mask.from(i), to = std::max(from, mask.to(i + t.rows - 1, depth));
          t.depth = to - from;
          t.a = static_cast<const float*>(a.data) + i / kernels_.tile_rows * a.panel + from * a.stride;
          t.b = static_cast<const float*>(b.data) + j / kernels_.tile_columns * b.panel + from * b.stride;
          t.c = c + i * ldc + j;
          kernels_.tile(t);
        }
      }
    }
  }

 private:
  Left pack_left(int type, const void* x, int64_t stride, int64_t rows, int64_t depth, W* memory) const {
    if constexpr (kFp64) return {x, stride, 0, false};
    kernels_.pack_a[type](x, stride, 1, rows, depth, reinterpret_cast<float*>(memory));
    return {memory, kernels_.tile_rows, depth * kernels_.tile_rows, false};
  }
  const Blas& blas_;
  const GemmKernels& kernels_;
  int type_, wide_;
  int64_t element_;
};

// Masks, with `lead` the first query less the first key: a key is seen when key <= lead + query.
/// Scores with keys as rows and queries as columns.
struct KeysByQueries : Everything {
  bool causal;
  int64_t lead;
  KeysByQueries(bool causal_, int64_t lead_) : causal(causal_), lead(lead_) {}
  bool wanted(int64_t key, int64_t, int64_t query, int64_t queries) const {
    return !causal || key < lead + query + queries;
  }
};
/// Scores with queries as rows and keys as columns.
struct QueriesByKeys : Everything {
  bool causal;
  int64_t lead;
  QueriesByKeys(bool causal_, int64_t lead_) : causal(causal_), lead(lead_) {}
  bool wanted(int64_t query, int64_t queries, int64_t key, int64_t) const {
    return !causal || key < lead + query + queries;
  }
};
/// Rows are queries, the depth goes over keys.
struct OverKeys : Everything {
  bool causal;
  int64_t lead;
  OverKeys(bool causal_, int64_t lead_) : causal(causal_), lead(lead_) {}
  int64_t to(int64_t query, int64_t depth) const {
    return causal ? std::clamp<int64_t>(lead + query + 1, 0, depth) : depth;
  }
};
/// Rows are keys, the depth goes over queries.
struct OverQueries : Everything {
  bool causal;
  int64_t lead, queries;
  OverQueries(bool causal_, int64_t lead_, int64_t queries_) : causal(causal_), lead(lead_), queries(queries_) {}
  int64_t from(int64_t key) const { return causal ? std::clamp<int64_t>(key - lead, 0, queries) : 0; }
};

/// Hands out parts of one thread's workspace; with no memory it only counts.
template <typename W>
class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<W*>(memory)) {}
  W* take(int64_t count) {
    W* here = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += round_up(count, 64);
    return here;
  }
  int64_t bytes() const { return used_ * static_cast<int64_t>(sizeof(W)); }

 private:
  W* memory_;
  int64_t used_ = 0;
};

template <typename W>
struct ForwardMemory {
  W *queries, *keys, *values, *scores, *sums, *maximum, *total, *factor;
  int64_t bytes;
  ForwardMemory(const AttentionSpec& s, const Products<W>& p, void* memory) {
    Carver<W> carve(memory);
    queries = carve.take(p.right_size(kQueries, s.head_dim));
    keys = carve.take(p.left_size(kKeys, s.head_dim));
    values = carve.take(p.right_size(s.head_dim, kKeys));
    scores = carve.take(kKeys * kQueries);
    sums = carve.take(kQueries * s.head_dim);
    maximum = carve.take(kQueries), total = carve.take(kQueries), factor = carve.take(kQueries);
    bytes = carve.bytes();
  }
};

template <typename W>
struct BackwardMemory {
  int64_t left, right;  ///< elements of one block of queries
  W *queries_left, *queries_right, *outputs_left, *outputs_right;
  W *keys_columns, *values_columns, *keys_right, *scores_left, *scores, *gradients, *dq, *dk, *dv, *delta;
  int64_t bytes;
  BackwardMemory(const AttentionSpec& s, const Products<W>& p, void* memory) {
    Carver<W> carve(memory);
    const int64_t blocks = (s.length + kBackwardQueries - 1) / kBackwardQueries;
    left = round_up(p.left_size(kBackwardQueries, s.head_dim), 64);
    right = round_up(p.right_size(s.head_dim, kBackwardQueries), 64);
    queries_left = carve.take(blocks * left), outputs_left = carve.take(blocks * left);
    queries_right = carve.take(blocks * right), outputs_right = carve.take(blocks * right);
    keys_columns = carve.take(p.right_size(kKeys, s.head_dim));
    values_columns = carve.take(p.right_size(kKeys, s.head_dim));
    keys_right = carve.take(p.right_size(s.head_dim, kKeys));
    scores_left = carve.take(p.left_size(kBackwardQueries, kKeys));
    scores = carve.take(kBackwardQueries * kKeys), gradients = carve.take(kBackwardQueries * kKeys);
    dq = carve.take(s.length * s.head_dim);
    dk = carve.take(kKeys * s.head_dim), dv = carve.take(kKeys * s.head_dim);
    delta = carve.take(s.length);
    bytes = carve.bytes();
  }
};

/// Where the parts of a head lie.
struct Head {
  int64_t token, output;  ///< elements from one token to the next in qkv and in y
  int64_t part;           ///< elements from q to k and from k to v
  int64_t qkv, y, log_sum_exp;
  Head(const AttentionSpec& s, int64_t index)
      : token(3 * s.heads * s.head_dim), output(s.heads * s.head_dim), part(s.heads * s.head_dim) {
    const int64_t text = index / s.heads, head = index % s.heads;
    qkv = text * s.length * token + head * s.head_dim;
    y = text * s.length * output + head * s.head_dim;
    log_sum_exp = index * s.length;
  }
};

double score_scale(const AttentionSpec& s) {
  return 1.0 / std::sqrt(static_cast<double>(s.head_dim));
}

template <typename W>
void forward_block(const AttentionSpec& s, const Products<W>& p, const SequenceKernels& k, const SequenceKernels& wide,
                   const Head& head, int64_t first, const void* qkv, void* y, W* log_sum_exp,
                   const ForwardMemory<W>& w) {
  const int64_t hd = s.head_dim, queries = std::min(kQueries, s.length - first);
  const char* q = p.element(qkv, head.qkv + first * head.token);
  const Right q_columns = p.rows_of_columns(q, head.token, hd, queries, w.queries);
  std::fill_n(w.maximum, queries, -std::numeric_limits<W>::infinity());
  std::fill_n(w.total, queries, W(0));
  const int64_t end = s.causal ? first + queries : s.length;
  for (int64_t key = 0; key < end; key += kKeys) {
    const int64_t keys = std::min(kKeys, s.length - key), lead = first - key;
    const char* from = p.element(qkv, head.qkv + key * head.token + head.part);
    const Left k_rows = p.rows(from, head.token, keys, hd, w.keys);
    p.multiply(k_rows, q_columns, keys, queries, hd, score_scale(s), 0, w.scores, kQueries,
               KeysByQueries(s.causal, lead));
    wide.attention_block(w.scores, kQueries, keys, queries, s.causal, lead, w.maximum, w.total, w.factor);
    if (key > 0) wide.scale_rows(w.sums, hd, w.factor, queries, hd, w.sums, hd);
    const Right v_rows = p.rows_of_depth(p.element(from, head.part), head.token, keys, hd, w.values);
    p.multiply(p.wide_columns(w.scores, kQueries), v_rows, queries, hd, keys, 1, key > 0 ? 1.0f : 0.0f, w.sums, hd,
               OverKeys(s.causal, lead));
  }
  for (int64_t i = 0; i < queries; ++i) {
    log_sum_exp[head.log_sum_exp + first + i] = w.maximum[i] + std::log(w.total[i]);
    w.factor[i] = W(1) / w.total[i];
  }
  k.scale_rows(w.sums, hd, w.factor, queries, hd, p.element(y, head.y + first * head.output), head.output);
}

template <typename W>
void backward_head(const AttentionSpec& s, const Products<W>& p, const SequenceKernels& k, const SequenceKernels& wide,
                   const Head& head, const void* qkv, const void* y, const void* dy, const W* log_sum_exp, void* dqkv,
                   const BackwardMemory<W>& w) {
  const int64_t hd = s.head_dim, blocks = (s.length + kBackwardQueries - 1) / kBackwardQueries;
  const W* level = log_sum_exp + head.log_sum_exp;
  k.row_dots(p.element(dy, head.y), p.element(y, head.y), s.length, hd, head.output, w.delta);
  const auto block_size = [&](int64_t block) {
    return std::min(kBackwardQueries, s.length - block * kBackwardQueries);
  };
  const auto q_of = [&](int64_t block) { return p.element(qkv, head.qkv + block * kBackwardQueries * head.token); };
  const auto dy_of = [&](int64_t block) { return p.element(dy, head.y + block * kBackwardQueries * head.output); };
  if constexpr (!Products<W>::kFp64) {
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t n = block_size(b);
      p.rows(q_of(b), head.token, n, hd, w.queries_left + b * w.left);
      p.rows(dy_of(b), head.output, n, hd, w.outputs_left + b * w.left);
      p.rows_of_depth(q_of(b), head.token, n, hd, w.queries_right + b * w.right);
      p.rows_of_depth(dy_of(b), head.output, n, hd, w.outputs_right + b * w.right);
    }
  }
  for (int64_t key = 0; key < s.length; key += kKeys) {
    const int64_t keys = std::min(kKeys, s.length - key), first = s.causal ? key / kBackwardQueries : 0;
    const char* from = p.element(qkv, head.qkv + key * head.token + head.part);
    const Right k_columns = p.rows_of_columns(from, head.token, hd, keys, w.keys_columns);
    const Right v_columns = p.rows_of_columns(p.element(from, head.part), head.token, hd, keys, w.values_columns);
    const Right k_rows = p.rows_of_depth(from, head.token, keys, hd, w.keys_right);
    for (int64_t b = first; b < blocks; ++b) {
      const int64_t n = block_size(b), query = b * kBackwardQueries, lead = query - key;
      const float beta = b > first ? 1.0f : 0.0f;
      const QueriesByKeys tiles(s.causal, lead);
      p.multiply(p.packed_rows(q_of(b), head.token, hd, w.queries_left + b * w.left), k_columns, n, keys, hd,
                 score_scale(s), 0, w.scores, kKeys, tiles);
      p.multiply(p.packed_rows(dy_of(b), head.output, hd, w.outputs_left + b * w.left), v_columns, n, keys, hd, 1, 0,
                 w.gradients, kKeys, tiles);
      wide.attention_gradient(w.scores, w.gradients, kKeys, n, keys, s.causal, lead, level + query, w.delta + query,
                              score_scale(s));
      const OverQueries later(s.causal, lead, n);
      p.multiply(p.wide_columns(w.scores, kKeys),
                 p.packed_rows_of_depth(dy_of(b), head.output, n, w.outputs_right + b * w.right), keys, hd, n, 1, beta,
                 w.dv, hd, later);
      p.multiply(p.wide_columns(w.gradients, kKeys),
                 p.packed_rows_of_depth(q_of(b), head.token, n, w.queries_right + b * w.right), keys, hd, n, 1, beta,
                 w.dk, hd, later);
      p.multiply(p.wide_rows(w.gradients, kKeys, n, keys, w.scores_left), k_rows, n, hd, keys, 1, key > 0 ? 1.0f : 0.0f,
                 w.dq + query * hd, hd, OverKeys(s.causal, lead));
    }
    char* to = p.element(dqkv, head.qkv + key * head.token + head.part);
    k.scale_rows(w.dk, hd, nullptr, keys, hd, to, head.token);
    k.scale_rows(w.dv, hd, nullptr, keys, hd, p.element(to, head.part), head.token);
  }
  k.scale_rows(w.dq, hd, nullptr, s.length, hd, p.element(dqkv, head.qkv), head.token);
}

template <typename F>
auto with_accumulate_type(Precision precision, const F& f) {
  return accumulate_of(precision) == DType::f64 ? f(double{}) : f(float{});
}

}  // namespace

int64_t CpuOps::attention_workspace_bytes(const AttentionSpec& s, bool backward) const {
  return with_accumulate_type(s.precision, [&](auto wide) {
    using W = decltype(wide);
    const Products<W> products(blas_, storage_of(s.precision));
    const int64_t one =
        backward ? BackwardMemory<W>(s, products, nullptr).bytes : ForwardMemory<W>(s, products, nullptr).bytes;
    return one * team_.threads();
  });
}

void CpuOps::attention_forward(const AttentionSpec& s, const void* qkv, void* y, void* log_sum_exp, void* workspace) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::attention_forward, s.precision);
  const SequenceKernels& wide = sequence_kernels(element_index(accumulate_of(s.precision)));
  with_accumulate_type(s.precision, [&](auto type) {
    using W = decltype(type);
    const Products<W> products(blas_, storage_of(s.precision));
    const int64_t blocks = (s.length + kQueries - 1) / kQueries;
    team_.parallel_tasks(s.batch * s.heads * blocks, [&](int64_t task, int part) {
      const ForwardMemory<W> unplaced(s, products, nullptr);
      const ForwardMemory<W> memory(s, products, static_cast<char*>(workspace) + part * unplaced.bytes);
      forward_block<W>(s, products, k, wide, Head(s, task / blocks), task % blocks * kQueries, qkv, y,
                       static_cast<W*>(log_sum_exp), memory);
    });
  });
}

void CpuOps::attention_backward(const AttentionSpec& s, const void* qkv, const void* y, const void* dy,
                                const void* log_sum_exp, void* dqkv, void* workspace) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::attention_backward, s.precision);
  const SequenceKernels& wide = sequence_kernels(element_index(accumulate_of(s.precision)));
  if (s.length == 0) return;
  with_accumulate_type(s.precision, [&](auto type) {
    using W = decltype(type);
    const Products<W> products(blas_, storage_of(s.precision));
    team_.parallel_tasks(s.batch * s.heads, [&](int64_t task, int part) {
      const BackwardMemory<W> unplaced(s, products, nullptr);
      const BackwardMemory<W> memory(s, products, static_cast<char*>(workspace) + part * unplaced.bytes);
      backward_head<W>(s, products, k, wide, Head(s, task), qkv, y, dy, static_cast<const W*>(log_sum_exp), dqkv,
                       memory);
    });
  });
}

}  // namespace dlbench::cpu
