// embedding: rows of the token table plus rows of the position table, and their gradients. Twin: src/cpu/embedding.cpp.
//
// Backward adds up the rows of dy that belong to one token, without sorting, counting or atomics: the block of a
// position in the sequence of tokens looks whether the same token stood anywhere before it; if so, it ends, else it
// owns the token and adds up all of its rows in their order. That looks at tokens^2 / 2 numbers of four bytes, which L2
// holds: less than one pass over dy for any batch that fits. The sum is the same on every run, whatever the blocks do.
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

template <typename T>
__global__ void embedding_forward_kernel(int64_t tokens, int64_t length, int64_t channels, bool whole_block,
                                         const int32_t* token, const T* token_table, const T* position_table, T* y) {
  const RowGroup group = row_group(whole_block);
  for (int64_t t = group.index; t < tokens; t += group.count) {
    const T* from = token_table + token[t] * channels;
    const T* position = position_table == nullptr ? from : position_table + t % length * channels;
    T* to = y + t * channels;
    const bool positions = position_table != nullptr;
    for_span(
        channels, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          Pack<T, kWidth> pack = load_pack<kWidth>(from + i);
          if (positions) {
            const Pack<T, kWidth> added = load_pack<kWidth>(position + i);
            DLB_UNROLL
            for (int k = 0; k < kWidth; ++k) pack.value[k] = narrow<T>(widen(pack.value[k]) + widen(added.value[k]));
          }
          store_pack(to + i, pack);
        },
        from, position, static_cast<const T*>(to));
  }
}

/// Whether token[0, t) has the value of token[t]; equal in all threads of the block.
__device__ inline bool stood_before(const int32_t* token, int64_t t) {
  const int32_t wanted = token[t];
  for (int64_t first = 0; first < t; first += kThreads * 4) {
    bool found = false;
    DLB_UNROLL
    for (int k = 0; k < 4; ++k) {
      const int64_t i = first + k * kThreads + static_cast<int64_t>(threadIdx.x);
      found = found || (i < t && token[i] == wanted);
    }
    if (__syncthreads_or(found) != 0) return true;
  }
  return false;
}

/// Packs of channels that one thread adds up at a time; more channels take another look at the tokens.
constexpr int kPacksOfAThread = 4;

/// Block t: dtoken[token[t], :] (+)= the sum of dy over all positions of that token, if t is the first.
template <typename T, int kWidth>
__global__ void embedding_backward_kernel(int64_t tokens, int64_t channels, bool accumulate, const int32_t* token,
                                          const T* dy, T* dtoken) {
  using Acc = ComputeOf<T>;
  DLB_SHARED(unsigned, matches, kThreads / kWarp);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kWarp;
  for (int64_t t = blockIdx.x; t < tokens; t += gridDim.x) {
    if (stood_before(token, t)) continue;
    const int32_t wanted = token[t];
    T* to = dtoken + wanted * channels;
    for (int64_t first = 0; first < channels; first += int64_t{kThreads} * kPacksOfAThread * kWidth) {
      Acc sum[kPacksOfAThread][kWidth] = {};
      const auto for_packs = [&](auto body) {
        DLB_UNROLL
        for (int p = 0; p < kPacksOfAThread; ++p) {
          const int64_t channel = first + (p * kThreads + thread) * kWidth;
          if (channel < channels) body(sum[p], channel);
        }
      };
      for (int64_t tile = t; tile < tokens; tile += kThreads) {
        const int64_t mine = tile + thread;
        const unsigned of_warp = __ballot_sync(kFullWarp, mine < tokens && token[mine] == wanted);
        if (lane == 0) matches[thread / kWarp] = of_warp;
        __syncthreads();
        for (int warp = 0; warp < kThreads / kWarp; ++warp) {
          for (unsigned rest = matches[warp]; rest != 0; rest &= rest - 1) {
            const T* row = dy + (tile + warp * kWarp + __ffs(static_cast<int>(rest)) - 1) * channels;
            for_packs([&](Acc(&part)[kWidth], int64_t channel) {
              const Pack<T, kWidth> pack = load_pack<kWidth>(row + channel);
              DLB_UNROLL
              for (int k = 0; k < kWidth; ++k) part[k] += widen(pack.value[k]);
            });
          }
        }
        __syncthreads();
      }
      for_packs([&](Acc(&part)[kWidth], int64_t channel) {
        Pack<T, kWidth> pack = {};
        if (accumulate) pack = load_pack<kWidth>(static_cast<const T*>(to) + channel);
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) pack.value[k] = narrow<T>(widen(pack.value[k]) + part[k]);
        store_pack(to + channel, pack);
      });
    }
  }
}

template <typename T, int kWidth>
void run_backward(cudaStream_t stream, const EmbeddingSpec& spec, const int32_t* tokens, const T* dy, T* dtoken) {
  constexpr int64_t kMostBlocks = int64_t{1} << 20;
  const int64_t blocks = spec.tokens < kMostBlocks ? spec.tokens : kMostBlocks;
  launch(stream, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, embedding_backward_kernel<T, kWidth>,
         spec.tokens, spec.channels, spec.accumulate, tokens, dy, dtoken);
}

}  // namespace

void GpuOps::embedding_forward(const EmbeddingSpec& spec, const int32_t* tokens, const void* token_table,
                               const void* position_table, void* y) {
  require_valid(spec);
  if (spec.channels == 0) return;
  const bool whole_block = spec.channels > kRowOfAWarp;
  visit_float_type(storage_of(spec.precision), "embedding_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(stream_, row_grid(spec.tokens, whole_block, hardware_.multiprocessors), dim3(kThreads), 0,
           embedding_forward_kernel<T>, spec.tokens, spec.length, spec.channels, whole_block, tokens,
           static_cast<const T*>(token_table), spec.positions ? static_cast<const T*>(position_table) : nullptr,
           static_cast<T*>(y));
  });
}

int64_t GpuOps::embedding_workspace_bytes(const EmbeddingSpec& spec) const {
  require_valid(spec);
  return 0;
}

void GpuOps::embedding_backward(const EmbeddingSpec& spec, const int32_t* tokens, const void* dy, void* dtoken,
                                void* dposition, void* workspace) {
  require_valid(spec);
  static_cast<void>(workspace);
  if (spec.channels == 0) return;
  visit_float_type(storage_of(spec.precision), "embedding_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(dy);
    T* to = static_cast<T*>(dtoken);
    const size_t table_bytes = static_cast<size_t>(spec.vocabulary * spec.channels) * sizeof(T);
    if (!spec.accumulate && table_bytes > 0) DLB_CUDA(cudaMemsetAsync(to, 0, table_bytes, stream_));
    constexpr int kPack = Pack<T>::kSize;
    if (spec.channels % kPack == 0 && packs_aligned<kPack>(from) && packs_aligned<kPack>(to)) {
      run_backward<T, kPack>(stream_, spec, tokens, from, to);
    } else {
      run_backward<T, 1>(stream_, spec, tokens, from, to);
    }
    if (!spec.positions) return;
    // One sum over the batch per position and channel. A column sum of [B, T*C].
    reduce_columns<T>(stream_, hardware_.multiprocessors, scratch_, 1, spec.tokens / spec.length,
                      spec.length * spec.channels, 0, Sum{}, ComputeOf<T>(0), from, static_cast<const T*>(nullptr),
                      static_cast<T*>(dposition));
  });
}

}  // namespace dlbench::gpu
