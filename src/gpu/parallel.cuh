// Loops of kernels: element-wise maps with 16-byte accesses, and reductions of warps, blocks and grids.
//
// Why: one place decides grid sizes, alignment and the order of sums. Twin: src/cpu/parallel.h (oneTBB).
// Promises: offsets are 64-bit; any alignment works (a scalar head and tail, or scalar throughout when the pointers
// disagree about where a 16-byte line begins); sums are taken in an order that depends on the shape and the number of
// multiprocessors only, never on timing: no atomics.
#pragma once

#include <cstdint>
#include <limits>

#include "gpu/launch.cuh"
#include "gpu/ops.h"

namespace dlbench::gpu {

inline constexpr int kThreads =
    256;  // of a block; a multiple of the warp that every capability runs 4 or more times per SM
inline constexpr int kWarp = 32;
inline constexpr unsigned kFullWarp = 0xFFFFFFFFu;
/// A variable, because nvcc calls no function of the host from a kernel, not even a constexpr one.
template <typename T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();

/// Neighbouring elements, 16 bytes of them unless stated otherwise: one load or store instruction (two for 32 bytes).
template <typename T, int kWidth = 16 / sizeof(T)>
struct alignas(kWidth * sizeof(T) < 16 ? kWidth * sizeof(T) : 16) Pack {
  static constexpr int kSize = kWidth;
  T value[kWidth];
};

template <int kWidth, typename T>
__device__ Pack<T, kWidth> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, kWidth>*>(p);
}
template <int kWidth, typename T>
__device__ void store_pack(T* p, const Pack<T, kWidth>& pack) {
  *reinterpret_cast<Pack<T, kWidth>*>(p) = pack;
}

/// Whether packs of `kWidth` elements may be loaded from `p` and at every multiple of the pack from there; null is.
template <int kWidth, typename T>
bool packs_aligned(const T* p) {
  return reinterpret_cast<uintptr_t>(p) % alignof(Pack<T, kWidth>) == 0;
}

/// A number of elements known to the compiler.
template <int kWidth>
struct Width {
  static constexpr int value = kWidth;
};

/// How n elements split into a scalar head, packs, and a scalar tail.
struct Split {
  int64_t head, packs;
};

/// The same split for all pointers: their element types have the same size. Also used inside kernels.
template <typename First, typename... Rest>
DLB_HD Split split_packs(int64_t n, const First* first, const Rest*... rest) {
  const uintptr_t offset = reinterpret_cast<uintptr_t>(first) % 16;
  const bool congruent = ((reinterpret_cast<uintptr_t>(rest) % 16 == offset) && ...);
  if (!congruent || offset % sizeof(First) != 0) return {n, 0};
  const int64_t to_line = static_cast<int64_t>((16 - offset) % 16 / sizeof(First));
  const int64_t head = to_line < n ? to_line : n;
  return {head, (n - head) / Pack<First>::kSize};
}

/// Calls f(Width<w>, i): w elements from i on belong to the calling one of `lanes` lanes, in packs where all pointers
/// allow it, else one by one. Equal arguments give every lane the same elements again.
template <typename F, typename... P>
__device__ void for_span(int64_t n, int lane, int lanes, F f, const P*... p) {
  constexpr int kSizes[] = {Pack<P>::kSize...};
  const Split split = split_packs(n, p...);
  for (int64_t i = lane; i < split.head; i += lanes) f(Width<1>{}, i);
  for (int64_t k = lane; k < split.packs; k += lanes) f(Width<kSizes[0]>{}, split.head + k * kSizes[0]);
  for (int64_t i = split.head + split.packs * kSizes[0] + lane; i < n; i += lanes) f(Width<1>{}, i);
}

/// Blocks for `work` independent items of one thread each: enough to fill the device several times over and no more,
/// because the loops are grid-stride.
inline unsigned grid_size(int64_t work, int multiprocessors) {
  const int64_t wanted = (work + kThreads - 1) / kThreads;
  const int64_t most = static_cast<int64_t>(multiprocessors) * 32;
  return static_cast<unsigned>(wanted < most ? wanted : most);
}

// Element-wise -----------------------------------------------------------------------------------------------------

template <typename T, typename F, typename... In>
__device__ Pack<T> map_pack(const F& f, const Pack<In>... in) {
  Pack<T> out;
  DLB_UNROLL
  for (int k = 0; k < Pack<T>::kSize; ++k) out.value[k] = f(in.value[k]...);
  return out;
}

/// out[i] = f(in[i]...) for i < n. `out` may be one of the inputs.
template <typename T, typename F, typename... In>
__global__ void map_kernel(F f, int64_t n, Split split, T* out, const In*... in) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  Pack<T>* out_packs = reinterpret_cast<Pack<T>*>(out + split.head);
  for (int64_t p = thread; p < split.packs; p += threads) {
    out_packs[p] = map_pack<T>(f, reinterpret_cast<const Pack<In>*>(in + split.head)[p]...);
  }
  for (int64_t i = thread; i < split.head; i += threads) out[i] = f(in[i]...);
  for (int64_t i = split.head + split.packs * Pack<T>::kSize + thread; i < n; i += threads) out[i] = f(in[i]...);
}

/// `f` takes and gives elements in their storage type.
template <typename T, typename F, typename... In>
void map(cudaStream_t stream, int multiprocessors, int64_t n, F f, T* out, const In*... in) {
  static_assert(((sizeof(In) == sizeof(T)) && ...));
  if (n == 0) return;
  const Split split = split_packs(n, static_cast<const T*>(out), in...);
  const int64_t work = split.packs > split.head ? split.packs : split.head;
  launch(stream, dim3(grid_size(work > 0 ? work : n, multiprocessors)), dim3(kThreads), 0, map_kernel<T, F, In...>, f,
         n, split, out, in...);
}

/// A functor of src/core/math over the compute type, as one over the storage type T.
template <typename T, typename F>
struct InStorage {
  F f;
  template <typename... In>
  __device__ T operator()(In... x) const {
    return narrow<T>(f(widen(x)...));
  }
};

// Reductions -------------------------------------------------------------------------------------------------------

struct Sum {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};

template <typename Acc, typename Combine>
__device__ Acc warp_reduce(Acc value, Combine combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_down_sync(kFullWarp, value, static_cast<unsigned>(offset)));
  }
  return value;  // complete in lane 0
}

/// Over a block of kThreads threads; complete in thread 0. Every thread of the block must call it.
template <typename Acc, typename Combine>
__device__ Acc block_reduce(Acc value, Acc identity, Combine combine) {
  DLB_SHARED(Acc, of_warp, kThreads / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  value = warp_reduce(value, combine);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = lane < kThreads / kWarp ? of_warp[lane] : identity;
  value = warp_reduce(value, combine);
  __syncthreads();  // of_warp may be written again by a next call
  return value;
}

/// As warp_reduce, complete in every lane. `combine` must be commutative, so that the lanes agree to the last bit.
template <typename Acc, typename Combine>
__device__ Acc warp_reduce_all(Acc value, Combine combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(kFullWarp, value, offset));
  }
  return value;
}

/// As block_reduce, complete in every thread.
template <typename Acc, typename Combine>
__device__ Acc block_reduce_all(Acc value, Acc identity, Combine combine) {
  DLB_SHARED(Acc, of_warp, kThreads / kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, warp = static_cast<int>(threadIdx.x) / kWarp;
  value = warp_reduce_all(value, combine);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = warp_reduce_all(lane < kThreads / kWarp ? of_warp[lane] : identity, combine);
  __syncthreads();
  return value;
}

template <typename Acc, typename Term, typename Combine, typename First, typename... Rest>
__device__ Acc combine_pack(Acc acc, Term term, Combine combine, const Pack<First> first, const Pack<Rest>... rest) {
  DLB_UNROLL
  for (int k = 0; k < Pack<First>::kSize; ++k) acc = combine(acc, term(first.value[k], rest.value[k]...));
  return acc;
}

/// combine over i of term(in[i]...): the part of one of `lanes` lanes.
template <typename Acc, typename Term, typename Combine, typename First, typename... Rest>
__device__ Acc reduce_span(Acc acc, Term term, Combine combine, int64_t n, int lane, int lanes, const First* first,
                           const Rest*... rest) {
  const Split split = split_packs(n, first, rest...);
  for (int64_t i = lane; i < split.head; i += lanes) acc = combine(acc, term(first[i], rest[i]...));
  for (int64_t p = lane; p < split.packs; p += lanes) {
    acc = combine_pack(acc, term, combine, reinterpret_cast<const Pack<First>*>(first + split.head)[p],
                       reinterpret_cast<const Pack<Rest>*>(rest + split.head)[p]...);
  }
  for (int64_t i = split.head + split.packs * Pack<First>::kSize + lane; i < n; i += lanes) {
    acc = combine(acc, term(first[i], rest[i]...));
  }
  return acc;
}

/// How the reduction of one output is cut into slices, each reduced by its own block: few outputs of many elements
/// would leave most of the device idle. With more than one slice the partial results go through scratch memory and a
/// second kernel adds them up in order.
struct Slices {
  int64_t count = 1;
  int64_t length = 0;  ///< elements of a slice; a multiple of 64, so that the slices of an aligned row are aligned
};

/// @param blocks blocks that one slice of every output takes; @param shortest elements worth a block of their own
inline Slices choose_slices(int64_t blocks, int64_t outputs, int64_t extent, int64_t shortest, int multiprocessors,
                            int64_t scratch_values) {
  if (blocks == 0 || outputs == 0 || extent == 0) return {1, extent};
  int64_t count = static_cast<int64_t>(multiprocessors) * 8 / blocks;
  const int64_t limits[] = {extent / shortest, scratch_values / outputs, 1024};
  for (const int64_t limit : limits) count = count < limit ? count : limit;
  if (count <= 1) return {1, extent};
  const int64_t length = ((extent + count - 1) / count + 63) / 64 * 64;
  return {(extent + length - 1) / length, length};
}

/// The elements [begin, end) of slice `slice`.
DLB_HD int64_t slice_begin(const Slices& slices, int64_t slice) {
  return slice * slices.length;
}
DLB_HD int64_t slice_size(const Slices& slices, int64_t slice, int64_t extent) {
  const int64_t left = extent - slice * slices.length;
  return left < slices.length ? left : slices.length;
}

/// One value per row: lane 0 of the row's group writes it, as the output type or as a partial result.
template <typename Out>
__device__ void store_result(void* out, int64_t index, ComputeOf<Out> value, bool partial) {
  if (partial) {
    static_cast<ComputeOf<Out>*>(out)[index] = value;
  } else {
    static_cast<Out*>(out)[index] = narrow<Out>(value);
  }
}

/// The threads that reduce one row: a warp for short rows, a block for long ones.
struct RowGroup {
  int64_t index, count;
  int lane, lanes;
};
__device__ inline RowGroup row_group(bool whole_block) {
  const int thread = static_cast<int>(threadIdx.x);
  if (whole_block) return {static_cast<int64_t>(blockIdx.x), static_cast<int64_t>(gridDim.x), thread, kThreads};
  constexpr int kGroups = kThreads / kWarp;
  return {static_cast<int64_t>(blockIdx.x) * kGroups + thread / kWarp, static_cast<int64_t>(gridDim.x) * kGroups,
          thread % kWarp, kWarp};
}

/// Over the threads of a row group; complete in all of them.
template <typename Acc, typename Combine>
__device__ Acc group_reduce(bool whole_block, Acc value, Acc identity, Combine combine) {
  return whole_block ? block_reduce_all(value, identity, combine) : warp_reduce_all(value, combine);
}

inline constexpr int64_t kRowOfAWarp = 1024;  // elements up to which a row is left to one warp

/// Blocks for `rows` rows; the kernels are grid-stride over them.
inline dim3 row_grid(int64_t rows, bool whole_block, int multiprocessors) {
  const int64_t groups = whole_block ? 1 : kThreads / kWarp;
  const int64_t wanted = (rows + groups - 1) / groups, most = static_cast<int64_t>(multiprocessors) * 64;
  return dim3(static_cast<unsigned>(wanted < most ? wanted : most));
}

/// x[rows, extent] -> out[rows], or out[rows, slices] as partial results.
template <typename In, typename Out, typename Combine>
__global__ void reduce_rows_kernel(int64_t rows, int64_t extent, Slices slices, bool whole_block, Combine combine,
                                   ComputeOf<In> identity, const In* x, void* out, bool partial) {
  using Acc = ComputeOf<In>;
  const RowGroup group = row_group(whole_block);
  const auto term = [](In value) { return widen(value); };
  for (int64_t task = group.index; task < rows * slices.count; task += group.count) {
    const int64_t row = task / slices.count, slice = task % slices.count;
    const In* begin = x + row * extent + slice_begin(slices, slice);
    Acc acc = reduce_span(identity, term, combine, slice_size(slices, slice, extent), group.lane, group.lanes, begin);
    acc = whole_block ? block_reduce(acc, identity, combine) : warp_reduce(acc, combine);
    if (group.lane == 0) store_result<Out>(out, task, acc, partial);
  }
}

/// The second pass: partial[rows, slices] -> out[rows].
template <typename Out, typename Combine>
void finish_slices(cudaStream_t stream, int multiprocessors, int64_t rows, int64_t slices, Combine combine,
                   ComputeOf<Out> identity, const void* partial, Out* out) {
  using Acc = ComputeOf<Out>;
  launch(stream, row_grid(rows, false, multiprocessors), dim3(kThreads), 0, reduce_rows_kernel<Acc, Out, Combine>, rows,
         slices, Slices{1, slices}, false, combine, identity, static_cast<const Acc*>(partial), out, false);
}

inline constexpr int kColumnRows = kThreads / kWarp;  // threads that share one column

/// x[outer, extent, inner] -> out[outer, inner], or out[outer, inner, slices] as partial results. Neighbouring threads
/// read neighbouring columns. `weights` [outer, extent] multiplies each element (a transposed matrix-vector product),
/// or is null. `outer_stride`: elements from one outer matrix to the next.
template <typename In, typename Out, typename Combine>
__global__ void reduce_columns_kernel(int64_t outer, int64_t extent, int64_t inner, int64_t outer_stride, Slices slices,
                                      Combine combine, ComputeOf<In> identity, const In* x, const In* weights,
                                      void* out, bool partial) {
  using Acc = ComputeOf<In>;
  DLB_SHARED(Acc, tile, kColumnRows * kWarp);
  const int lane = static_cast<int>(threadIdx.x) % kWarp, share = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t column_blocks = (inner + kWarp - 1) / kWarp;
  for (int64_t task = blockIdx.x; task < outer * column_blocks * slices.count; task += gridDim.x) {
    const int64_t slice = task % slices.count, rest = task / slices.count;
    const int64_t column = rest % column_blocks * kWarp + lane, matrix = rest / column_blocks;
    Acc acc = identity;
    if (column < inner) {
      const int64_t begin = slice_begin(slices, slice), end = begin + slice_size(slices, slice, extent);
      const In* p = x + matrix * outer_stride + column;
      for (int64_t row = begin + share; row < end; row += kColumnRows) {
        const Acc value = widen(p[row * inner]);
        acc = combine(acc, weights == nullptr ? value : value * widen(weights[matrix * extent + row]));
      }
    }
    tile[share * kWarp + lane] = acc;
    __syncthreads();
    if (share == 0 && column < inner) {
      for (int i = 1; i < kColumnRows; ++i) acc = combine(acc, tile[i * kWarp + lane]);
      store_result<Out>(out, (matrix * inner + column) * slices.count + slice, acc, partial);
    }
    __syncthreads();
  }
}

/// Both passes over columns.
template <typename T, typename Combine>
void reduce_columns(cudaStream_t stream, int multiprocessors, Scratch scratch, int64_t outer, int64_t extent,
                    int64_t inner, int64_t outer_stride, Combine combine, ComputeOf<T> identity, const T* x,
                    const T* weights, T* y) {
  const int64_t blocks = outer * ((inner + kWarp - 1) / kWarp), outputs = outer * inner;
  const Slices slices = choose_slices(blocks, outputs, extent, 256, multiprocessors,
                                      static_cast<int64_t>(scratch.bytes / sizeof(ComputeOf<T>)));
  const bool partial = slices.count > 1;
  void* out = partial ? scratch.data : static_cast<void*>(y);
  launch(stream, row_grid(blocks * slices.count, true, multiprocessors), dim3(kThreads), 0,
         reduce_columns_kernel<T, T, Combine>, outer, extent, inner, outer_stride, slices, combine, identity, x,
         weights, out, partial);
  if (partial) finish_slices(stream, multiprocessors, outputs, slices.count, combine, identity, scratch.data, y);
}

}  // namespace dlbench::gpu
