// attention: scores, softmax and their gradients as batched products of cuBLASLt. Twin: src/cpu/attention.cpp.
//
// Queries, keys and values are first copied apart, head by head ([heads, T, HD], rows of whole packs), so that one
// product serves all heads at a time and runs on tensor cores. Scores exist for some heads and kQueriesOfABlock queries
// at a time: memory doesn't grow with T^2, and a causal block leaves out the keys behind its last query. Scores and
// sums over blocks have the accumulate type; probabilities and their gradients are rounded to the storage type, as
// factors of products. Backward keeps no probabilities: it makes them again from the log-sum-exp (Dao et al. 2022,
// "FlashAttention", appendix B.2).
#include <algorithm>
#include <cmath>

#include "gpu/softmax.cuh"

namespace dlbench::gpu {
namespace {

constexpr int64_t kMostBytes = int64_t{128} << 20;  // for the heads that are done at a time, whatever the GPU
constexpr int64_t kQueriesOfABlock = 512;
constexpr int64_t kTile = 128;  // rows and columns of a product that one multiprocessor takes at a time, about

/// Some (sequence, head) pairs, `first` to `first + count` in [B, NH].
struct Heads {
  int64_t first, count;
  int64_t length, heads, head_dim;
  int64_t pitch;  ///< elements of a row of a head's own matrices: head_dim, filled up to a pack
};

/// Element (t, 0) of a pair in a tensor of rows [B, T, parts, NH, HD].
__device__ inline int64_t packed_offset(const Heads& h, int64_t pair, int64_t t, int64_t parts, int64_t part) {
  return (((pair / h.heads * h.length + t) * parts + part) * h.heads + pair % h.heads) * h.head_dim;
}

/// to[part][pair][t, :] = from[b, t, part, head, :] for parts 0 to parts - 1.
template <typename T, int kWidth>
__global__ void split_heads_kernel(Heads h, int64_t parts, const T* from, T* to) {
  const int64_t packs = h.head_dim / kWidth, total = parts * h.count * h.length * packs;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    const int64_t column = flat % packs * kWidth, row = flat / packs, t = row % h.length, rest = row / h.length;
    const int64_t pair = h.first + rest % h.count, part = rest / h.count;
    store_pack(to + row * h.pitch + column, load_pack<kWidth>(from + packed_offset(h, pair, t, parts, part) + column));
  }
}

/// to[b, t, part, head, :] = from[pair][t - begin, :], rounded to the storage type, for queries or keys from `begin`
/// on; a pair's matrix has `rows` rows.
template <typename T, int kWidth>
__global__ void merge_heads_kernel(Heads h, int64_t parts, int64_t part, int64_t begin, int64_t rows, int64_t stride,
                                   const ComputeOf<T>* from, T* to) {
  const int64_t packs = h.head_dim / kWidth, total = h.count * rows * packs;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    const int64_t column = flat % packs * kWidth, row = flat / packs % rows, pair = flat / packs / rows;
    const Pack<ComputeOf<T>, kWidth> wide = load_pack<kWidth>(from + pair * stride + row * h.pitch + column);
    Pack<T, kWidth> pack;
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) pack.value[k] = narrow<T>(wide.value[k]);
    store_pack(to + packed_offset(h, h.first + pair, begin + row, parts, part) + column, pack);
  }
}

/// Queries [begin, begin + rows) of every pair, and the keys [0, keys) that they may see.
struct Block {
  int64_t begin, rows, keys;
  int64_t pitch, stride;  ///< elements between rows of scores, and between pairs
  bool causal, whole_block;
  __device__ int64_t visible(int64_t row) const { return causal ? begin + row + 1 : keys; }
};

/// probabilities = softmax(scale * scores) over the visible keys, zero elsewhere; and log_sum_exp. The two may be one
/// array where their types are.
template <typename T>
__global__ void probabilities_kernel(Heads h, Block block, ComputeOf<T> scale, const ComputeOf<T>* scores,
                                     T* probabilities, ComputeOf<T>* log_sum_exp) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(block.whole_block);
  for (int64_t task = group.index; task < h.count * block.rows; task += group.count) {
    const int64_t pair = task / block.rows, row = task % block.rows;
    const int64_t at = pair * block.stride + row * block.pitch, visible = block.visible(row);
    const Acc* in = scores + at;
    T* out = probabilities + at;
    const Normalizer<Acc> normalizer = normalizer_of(in, visible, group, block.whole_block, scale);
    if (group.lane == 0) {
      log_sum_exp[(h.first + pair) * h.length + block.begin + row] = normalizer.largest + std::log(normalizer.sum);
    }
    const Acc factor = Acc(1) / normalizer.sum;
    for (int64_t i = group.lane; i < block.keys; i += group.lanes) {
      out[i] = narrow<T>(i < visible ? exp_of(in[i] * scale - normalizer.largest) * factor : Acc(0));
    }
  }
}

/// The tensors of backward that belong to rows of queries.
template <typename T>
struct QueryRows {
  const T *y, *dy;
  const ComputeOf<T>* log_sum_exp;
};

/// probabilities = e^(scale * scores - log_sum_exp), dscores = scale * probabilities * (dprobabilities - sum(y * dy)),
/// both zero beyond the visible keys. Either may lie where it comes from, where their types are one.
template <typename T>
__global__ void score_gradients_kernel(Heads h, Block block, ComputeOf<T> scale, QueryRows<T> queries,
                                       const ComputeOf<T>* scores, const ComputeOf<T>* dprobabilities, T* probabilities,
                                       T* dscores) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(block.whole_block);
  const auto product = [](T a, T b) { return widen(a) * widen(b); };
  for (int64_t task = group.index; task < h.count * block.rows; task += group.count) {
    const int64_t pair = task / block.rows, row = task % block.rows, query = block.begin + row;
    const int64_t at = pair * block.stride + row * block.pitch, visible = block.visible(row);
    const int64_t of_query = packed_offset(h, h.first + pair, query, 1, 0);
    const Acc part = reduce_span(Acc(0), product, Sum{}, h.head_dim, group.lane, group.lanes, queries.y + of_query,
                                 queries.dy + of_query);
    const Acc delta = group_reduce(block.whole_block, part, Acc(0), Sum{});
    const Acc log_sum_exp = queries.log_sum_exp[(h.first + pair) * h.length + query];
    for (int64_t i = group.lane; i < block.keys; i += group.lanes) {
      Acc probability = 0, dscore = 0;
      if (i < visible) {
        probability = exp_of(scores[at + i] * scale - log_sum_exp);
        dscore = probability * (dprobabilities[at + i] - delta) * scale;
      }
      probabilities[at + i] = narrow<T>(probability);
      dscores[at + i] = narrow<T>(dscore);
    }
  }
}

/// Sizes in elements, per pair, and the pieces of the workspace.
struct AttentionPlan {
  int64_t pairs = 0;         ///< at a time
  int64_t queries = 0;       ///< of a block, at most
  int64_t pitch = 0;         ///< of a head's rows
  int64_t score_pitch = 0;   ///< of a row of scores
  void* inputs = nullptr;    ///< q, k, v and, backward, dy: each [pairs, T, pitch], storage type
  void* scores = nullptr;    ///< [pairs, queries, score_pitch], accumulate type
  void* dscores = nullptr;   ///< backward
  void* factors = nullptr;   ///< the same rounded to the storage type; where that is the accumulate type, `scores`
  void* dfactors = nullptr;  ///< backward
  void* rows = nullptr;      ///< output, or gradient of the queries, of one block: [pairs, queries, pitch]
  void* dk = nullptr;        ///< backward: [pairs, T, pitch], accumulate type
  void* dv = nullptr;
  int64_t bytes = 0;
};

/// How many heads are done at a time: as many as have their scores in half of the L2 cache, but enough to give every
/// multiprocessor two tiles.
int64_t pairs_at_a_time(const AttentionSpec& s, const Hardware& hardware, int64_t queries, int64_t score_bytes,
                        int64_t bytes) {
  const int64_t tiles = ((queries + kTile - 1) / kTile) * ((s.length + kTile - 1) / kTile);
  const int64_t to_fill = (2 * hardware.multiprocessors + tiles - 1) / tiles;
  const int64_t wanted = std::max(hardware.l2_bytes / 2 / std::max<int64_t>(score_bytes, 1), to_fill);
  const int64_t most = kMostBytes / std::max<int64_t>(bytes, 1);
  return std::clamp<int64_t>(std::min(wanted, most), 1, s.batch * s.heads);
}

AttentionPlan plan_of(const AttentionSpec& s, bool backward, const Hardware& hardware, void* workspace) {
  const int64_t narrow_bytes = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const int64_t wide_bytes = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  const int64_t pack = 16 / narrow_bytes;
  AttentionPlan p;
  p.queries = std::min(s.length, kQueriesOfABlock);
  p.pitch = (s.head_dim + pack - 1) / pack * pack;
  p.score_pitch = (s.length + pack - 1) / pack * pack;
  const int64_t scores = p.queries * p.score_pitch, inputs = (backward ? 4 : 3) * s.length * p.pitch;
  const bool rounds = narrow_bytes != wide_bytes;
  const int64_t per_pair = inputs * narrow_bytes +
                           (backward ? 2 : 1) * scores * (wide_bytes + (rounds ? narrow_bytes : 0)) +
                           (p.queries + (backward ? 2 * s.length : 0)) * p.pitch * wide_bytes;
  p.pairs = pairs_at_a_time(s, hardware, p.queries, (backward ? 2 : 1) * scores * wide_bytes, per_pair);
  Carver carver(workspace);
  p.inputs = carver.take(p.pairs * inputs * narrow_bytes);
  p.scores = carver.take(p.pairs * scores * wide_bytes);
  p.factors = rounds ? carver.take(p.pairs * scores * narrow_bytes) : p.scores;
  p.rows = carver.take(p.pairs * p.queries * p.pitch * wide_bytes);
  if (backward) {
    p.dscores = carver.take(p.pairs * scores * wide_bytes);
    p.dfactors = rounds ? carver.take(p.pairs * scores * narrow_bytes) : p.dscores;
    p.dk = carver.take(p.pairs * s.length * p.pitch * wide_bytes);
    p.dv = carver.take(p.pairs * s.length * p.pitch * wide_bytes);
  }
  p.bytes = carver.used_bytes();
  return p;
}

Block block_of(const AttentionSpec& s, const AttentionPlan& p, int64_t begin) {
  const int64_t rows = std::min(p.queries, s.length - begin), keys = s.causal ? begin + rows : s.length;
  return {begin, rows, keys, p.score_pitch, p.queries * p.score_pitch, s.causal, keys > kRowOfAWarp};
}

/// Whether heads can be moved in packs.
template <typename T, typename... P>
bool heads_in_packs(const AttentionSpec& s, const P*... tensors) {
  constexpr int kPack = Pack<T>::kSize;
  return s.head_dim % kPack == 0 && (packs_aligned<kPack>(tensors) && ...);
}

template <typename T>
void split_heads(cudaStream_t stream, int multiprocessors, const AttentionSpec& s, const Heads& h, int64_t parts,
                 const T* from, T* to) {
  constexpr int kPack = Pack<T>::kSize;
  const bool packs = heads_in_packs<T>(s, from);
  const int64_t total = parts * h.count * h.length * (h.head_dim / (packs ? kPack : 1));
  launch(stream, dim3(grid_size(total, multiprocessors)), dim3(kThreads), 0,
         packs ? split_heads_kernel<T, kPack> : split_heads_kernel<T, 1>, h, parts, from, to);
}

template <typename T>
void merge_heads(cudaStream_t stream, int multiprocessors, const AttentionSpec& s, const Heads& h, int64_t parts,
                 int64_t part, int64_t begin, int64_t rows, int64_t stride, const void* from, T* to) {
  constexpr int kPack = Pack<T>::kSize;
  const bool packs = heads_in_packs<T>(s, static_cast<const T*>(to));
  const int64_t total = h.count * rows * (h.head_dim / (packs ? kPack : 1));
  launch(stream, dim3(grid_size(total, multiprocessors)), dim3(kThreads), 0,
         packs ? merge_heads_kernel<T, kPack> : merge_heads_kernel<T, 1>, h, parts, part, begin, rows, stride,
         static_cast<const ComputeOf<T>*>(from), to);
}

/// The products of one block over all pairs. A factor is a matrix of each pair: where it begins, its pitch and stride.
struct Factor {
  const void* data;
  int64_t pitch, stride;
};
GemmSpec product_of(Precision precision, int64_t pairs, int64_t m, int64_t n, int64_t k, const Factor& a,
                    const Factor& b, int64_t c_pitch, int64_t c_stride) {
  GemmSpec g = {.precision = precision, .m = m, .n = n, .k = k, .batch = pairs};
  g.lda = a.pitch;
  g.ldb = b.pitch;
  g.ldc = c_pitch;
  g.stride_a = a.stride;
  g.stride_b = b.stride;
  g.stride_c = c_stride;
  return g;
}

template <typename Body>
void for_heads(const AttentionSpec& s, const AttentionPlan& p, Body body) {
  const int64_t all = s.batch * s.heads;
  for (int64_t first = 0; first < all; first += p.pairs) {
    body(Heads{first, std::min(p.pairs, all - first), s.length, s.heads, s.head_dim, p.pitch});
  }
}

template <typename Acc>
Acc scale_of(const AttentionSpec& s) {
  return static_cast<Acc>(1.0 / std::sqrt(static_cast<double>(s.head_dim)));
}

}  // namespace

int64_t GpuOps::attention_workspace_bytes(const AttentionSpec& spec, bool backward) const {
  require_valid(spec);
  if (spec.batch * spec.heads * spec.length == 0) return 0;
  return plan_of(spec, backward, hardware_, nullptr).bytes;
}

void GpuOps::attention_forward(const AttentionSpec& spec, const void* qkv, void* y, void* log_sum_exp,
                               void* workspace) {
  require_valid(spec);
  require(Op::attention_forward, spec.precision);
  if (spec.batch * spec.heads * spec.length == 0) return;
  const AttentionPlan p = plan_of(spec, false, hardware_, workspace);
  const int processors = hardware_.multiprocessors;
  visit_float_type(storage_of(spec.precision), "attention_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    for_heads(spec, p, [&](const Heads& h) {
      const int64_t stride = spec.length * p.pitch, matrix = h.count * stride;
      const T* q = static_cast<const T*>(p.inputs);
      split_heads(stream_, processors, spec, h, 3, static_cast<const T*>(qkv), static_cast<T*>(p.inputs));
      const Factor k = {q + matrix, p.pitch, stride}, v = {q + 2 * matrix, p.pitch, stride};
      for (int64_t begin = 0; begin < spec.length; begin += p.queries) {
        const Block block = block_of(spec, p, begin);
        const Factor queries = {q + begin * p.pitch, p.pitch, stride};
        const Factor probabilities = {p.factors, block.pitch, block.stride};
        GemmSpec scores = product_of(spec.precision, h.count, block.rows, block.keys, spec.head_dim, queries, k,
                                     block.pitch, block.stride);
        scores.trans_b = Transpose::yes;
        wide_gemm(scores, queries.data, k.data, p.scores);
        launch(stream_, row_grid(h.count * block.rows, block.whole_block, processors), dim3(kThreads), 0,
               probabilities_kernel<T>, h, block, scale_of<Acc>(spec), static_cast<const Acc*>(p.scores),
               static_cast<T*>(p.factors), static_cast<Acc*>(log_sum_exp));
        wide_gemm(product_of(spec.precision, h.count, block.rows, spec.head_dim, block.keys, probabilities, v, p.pitch,
                             p.queries * p.pitch),
                  probabilities.data, v.data, p.rows);
        merge_heads(stream_, processors, spec, h, 1, 0, begin, block.rows, p.queries * p.pitch, p.rows,
                    static_cast<T*>(y));
      }
    });
  });
}

void GpuOps::attention_backward(const AttentionSpec& spec, const void* qkv, const void* y, const void* dy,
                                const void* log_sum_exp, void* dqkv, void* workspace) {
  require_valid(spec);
  require(Op::attention_backward, spec.precision);
  if (spec.batch * spec.heads * spec.length == 0) return;
  const AttentionPlan p = plan_of(spec, true, hardware_, workspace);
  const int processors = hardware_.multiprocessors;
  visit_float_type(storage_of(spec.precision), "attention_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    const QueryRows<T> rows = {static_cast<const T*>(y), static_cast<const T*>(dy),
                               static_cast<const Acc*>(log_sum_exp)};
    T* out = static_cast<T*>(dqkv);
    for_heads(spec, p, [&](const Heads& h) {
      const int64_t stride = spec.length * p.pitch, matrix = h.count * stride, query_stride = p.queries * p.pitch;
      T* inputs = static_cast<T*>(p.inputs);
      split_heads(stream_, processors, spec, h, 3, static_cast<const T*>(qkv), inputs);
      split_heads(stream_, processors, spec, h, 1, static_cast<const T*>(dy), inputs + 3 * matrix);
      const Factor k = {inputs + matrix, p.pitch, stride}, v = {inputs + 2 * matrix, p.pitch, stride};
      const int64_t last = (spec.length - 1) / p.queries * p.queries;
      // From the last block to the first: the last sees all keys and sets their gradients, the others add.
      for (int64_t begin = last; begin >= 0; begin -= p.queries) {
        const Block block = block_of(spec, p, begin);
        const Factor q = {inputs + begin * p.pitch, p.pitch, stride};
        const Factor gradient = {inputs + 3 * matrix + begin * p.pitch, p.pitch, stride};
        const Factor probabilities = {p.factors, block.pitch, block.stride};
        const Factor dscores = {p.dfactors, block.pitch, block.stride};
        const auto against_keys = [&](const Factor& a, const Factor& b, void* c) {
          GemmSpec g = product_of(spec.precision, h.count, block.rows, block.keys, spec.head_dim, a, b, block.pitch,
                                  block.stride);
          g.trans_b = Transpose::yes;
          wide_gemm(g, a.data, b.data, c);
        };
        const auto into_keys = [&](const Factor& a, const Factor& b, void* c) {
          GemmSpec g =
              product_of(spec.precision, h.count, block.keys, spec.head_dim, block.rows, a, b, p.pitch, stride);
          g.trans_a = Transpose::yes;
          g.beta = begin == last ? 0.0f : 1.0f;
          wide_gemm(g, a.data, b.data, c);
        };
        against_keys(q, k, p.scores);
        against_keys(gradient, v, p.dscores);
        launch(stream_, row_grid(h.count * block.rows, block.whole_block, processors), dim3(kThreads), 0,
               score_gradients_kernel<T>, h, block, scale_of<Acc>(spec), rows, static_cast<const Acc*>(p.scores),
               static_cast<const Acc*>(p.dscores), static_cast<T*>(p.factors), static_cast<T*>(p.dfactors));
        into_keys(probabilities, gradient, p.dv);
        into_keys(dscores, q, p.dk);
        wide_gemm(product_of(spec.precision, h.count, block.rows, spec.head_dim, block.keys, dscores, k, p.pitch,
                             query_stride),
                  dscores.data, k.data, p.rows);
        merge_heads(stream_, processors, spec, h, 3, 0, begin, block.rows, query_stride, p.rows, out);
      }
      merge_heads(stream_, processors, spec, h, 3, 1, 0, spec.length, stride, p.dk, out);
      merge_heads(stream_, processors, spec, h, 3, 2, 0, spec.length, stride, p.dv, out);
    });
  });
}

}  // namespace dlbench::gpu
