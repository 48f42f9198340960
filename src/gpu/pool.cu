// pool: maximum and average over windows, forward and backward. Twin: src/cpu/pool.cpp.
//
// Backward gathers: a thread adds up what the windows over its input give it, in their order, so nothing is written
// twice and no atomics are needed. In nhwc a thread has a pack of channels; nchw is done element by element.
#include <limits>

#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

/// A PoolSpec as kernels want it. Steps: elements from one channel, column, row and image to the next.
struct PoolShape {
  int64_t n, c, h, w, p, q;
  int64_t r, s, stride, pad;
  bool nhwc;
};

/// Where a thread is in [n, y, x, c] (nhwc, c in packs) or [n, c, y, x]. `Index`: 32 bits where they do, because a
/// division of 64 bits takes dozens of instructions.
template <typename Index, int kWidth>
__device__ void find_place(const PoolShape& shape, int64_t flat, int64_t height, int64_t width, int64_t* n, int64_t* c,
                           int64_t* y, int64_t* x) {
  Index rest = static_cast<Index>(flat);
  const auto take = [&rest](int64_t extent) {
    const Index e = static_cast<Index>(extent), digit = rest % e;
    rest /= e;
    return static_cast<int64_t>(digit);
  };
  if (shape.nhwc) *c = take(shape.c / kWidth) * kWidth;
  *x = take(width);
  *y = take(height);
  if (!shape.nhwc) *c = take(shape.c);
  *n = static_cast<int64_t>(rest);
}

__device__ inline int64_t offset_of(const PoolShape& shape, int64_t height, int64_t width, int64_t n, int64_t c,
                                    int64_t y, int64_t x) {
  return shape.nhwc ? ((n * height + y) * width + x) * shape.c + c : ((n * shape.c + c) * height + y) * width + x;
}

/// The largest of the values that a lane meets. The first of equals wins, and the first NaN over everything.
template <typename Acc>
struct Winner {
  Acc value;
  int place;  ///< -1: none yet
  __device__ void meet(Acc candidate, int at) {
    if (place >= 0 && (value != value || !(candidate > value || candidate != candidate))) return;
    value = candidate;
    place = at;
  }
};

template <typename T, typename Index, int kWidth>
__global__ void max_forward_kernel(PoolShape shape, int64_t total, const T* x, T* y, uint8_t* index) {
  using Acc = ComputeOf<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    int64_t n = 0, c = 0, p = 0, q = 0;
    find_place<Index, kWidth>(shape, flat, shape.p, shape.q, &n, &c, &p, &q);
    Winner<Acc> winner[kWidth];
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) winner[k] = {-kInfinity<Acc>, -1};
    for (int64_t r = 0; r < shape.r; ++r) {
      const int64_t row = p * shape.stride + r - shape.pad;
      if (row < 0 || row >= shape.h) continue;
      for (int64_t s = 0; s < shape.s; ++s) {
        const int64_t column = q * shape.stride + s - shape.pad;
        if (column < 0 || column >= shape.w) continue;
        const Pack<T, kWidth> pack = load_pack<kWidth>(x + offset_of(shape, shape.h, shape.w, n, c, row, column));
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) winner[k].meet(widen(pack.value[k]), static_cast<int>(r * shape.s + s));
      }
    }
    Pack<T, kWidth> value;
    Pack<uint8_t, kWidth> place;
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      value.value[k] = narrow<T>(winner[k].value);
      place.value[k] = static_cast<uint8_t>(winner[k].place < 0 ? 0 : winner[k].place);
    }
    const int64_t at = offset_of(shape, shape.p, shape.q, n, c, p, q);
    store_pack(y + at, value);
    store_pack(index + at, place);
  }
}

template <typename T, typename Index, int kWidth>
__global__ void average_forward_kernel(PoolShape shape, int64_t total, const T* x, T* y) {
  using Acc = ComputeOf<T>;
  const Acc places = static_cast<Acc>(shape.r * shape.s);
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    int64_t n = 0, c = 0, p = 0, q = 0;
    find_place<Index, kWidth>(shape, flat, shape.p, shape.q, &n, &c, &p, &q);
    Acc sum[kWidth] = {};
    for (int64_t r = 0; r < shape.r; ++r) {
      const int64_t row = p * shape.stride + r - shape.pad;
      if (row < 0 || row >= shape.h) continue;
      for (int64_t s = 0; s < shape.s; ++s) {
        const int64_t column = q * shape.stride + s - shape.pad;
        if (column < 0 || column >= shape.w) continue;
        const Pack<T, kWidth> pack = load_pack<kWidth>(x + offset_of(shape, shape.h, shape.w, n, c, row, column));
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) sum[k] += widen(pack.value[k]);
      }
    }
    Pack<T, kWidth> value;
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) value.value[k] = narrow<T>(sum[k] / places);
    store_pack(y + offset_of(shape, shape.p, shape.q, n, c, p, q), value);
  }
}

/// The windows that contain row (or column) `at` of the padded image: [first, last].
struct Windows {
  int64_t first, last;
};
__device__ inline Windows windows_over(int64_t at, int64_t window, int64_t stride, int64_t count) {
  const int64_t lowest = at - window + 1;
  const int64_t first = lowest <= 0 ? 0 : (lowest + stride - 1) / stride, last = at / stride;
  return {first, last < count ? last : count - 1};
}

/// `index` null: average.
template <typename T, typename Index, int kWidth>
__global__ void pool_backward_kernel(PoolShape shape, int64_t total, const T* dy, const uint8_t* index, T* dx) {
  using Acc = ComputeOf<T>;
  const Acc places = static_cast<Acc>(shape.r * shape.s);
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t flat = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; flat < total; flat += threads) {
    int64_t n = 0, c = 0, row = 0, column = 0;
    find_place<Index, kWidth>(shape, flat, shape.h, shape.w, &n, &c, &row, &column);
    const Windows rows = windows_over(row + shape.pad, shape.r, shape.stride, shape.p);
    const Windows columns = windows_over(column + shape.pad, shape.s, shape.stride, shape.q);
    Acc sum[kWidth] = {};
    for (int64_t p = rows.first; p <= rows.last; ++p) {
      for (int64_t q = columns.first; q <= columns.last; ++q) {
        const int64_t at = offset_of(shape, shape.p, shape.q, n, c, p, q);
        const Pack<T, kWidth> gradient = load_pack<kWidth>(dy + at);
        if (index == nullptr) {
          DLB_UNROLL
          for (int k = 0; k < kWidth; ++k) sum[k] += widen(gradient.value[k]);
          continue;
        }
        const int64_t place = (row + shape.pad - p * shape.stride) * shape.s + column + shape.pad - q * shape.stride;
        const Pack<uint8_t, kWidth> winner = load_pack<kWidth>(index + at);
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          if (winner.value[k] == place) sum[k] += widen(gradient.value[k]);
        }
      }
    }
    Pack<T, kWidth> value;
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) value.value[k] = narrow<T>(index == nullptr ? sum[k] / places : sum[k]);
    store_pack(dx + offset_of(shape, shape.h, shape.w, n, c, row, column), value);
  }
}

PoolShape shape_of(const PoolSpec& s) {
  return {s.n, s.c, s.h, s.w, s.p(), s.q(), s.r, s.s, s.stride, s.pad, s.layout == ImageLayout::nhwc};
}

/// Calls run(index_tag, Width<w>, threads) with the width of a thread's pack of channels and the type that counts the
/// threads of `elements`.
template <typename T, typename Run>
void with_pool_widths(const PoolShape& shape, int64_t elements, bool aligned, Run run) {
  constexpr int kPack = Pack<T>::kSize;
  const auto with_index = [&](auto width) {
    const int64_t total = elements / decltype(width)::value;
    if (total <= std::numeric_limits<int32_t>::max()) {
      run(uint32_t{}, width, total);
    } else {
      run(int64_t{}, width, total);
    }
  };
  if (shape.nhwc && shape.c % kPack == 0 && aligned) {
    with_index(Width<kPack>{});
  } else {
    with_index(Width<1>{});
  }
}

}  // namespace

void GpuOps::pool_forward(const PoolSpec& spec, const void* x, void* y, uint8_t* index) {
  require_valid(spec);
  const PoolShape shape = shape_of(spec);
  const int64_t outputs = shape.n * shape.c * shape.p * shape.q;
  if (outputs == 0) return;
  visit_float_type(storage_of(spec.precision), "pool_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kPack = Pack<T>::kSize;
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    const bool aligned = packs_aligned<kPack>(from) && packs_aligned<kPack>(to) && packs_aligned<kPack>(index);
    with_pool_widths<T>(shape, outputs, aligned, [&](auto index_tag, auto width, int64_t total) {
      using Index = decltype(index_tag);
      constexpr int kWidth = decltype(width)::value;
      const dim3 grid(grid_size(total, hardware_.multiprocessors));
      if (spec.pooling == Pooling::max) {
        launch(stream_, grid, dim3(kThreads), 0, max_forward_kernel<T, Index, kWidth>, shape, total, from, to, index);
      } else {
        launch(stream_, grid, dim3(kThreads), 0, average_forward_kernel<T, Index, kWidth>, shape, total, from, to);
      }
    });
  });
}

void GpuOps::pool_backward(const PoolSpec& spec, const void* dy, const uint8_t* index, void* dx) {
  require_valid(spec);
  const PoolShape shape = shape_of(spec);
  const int64_t inputs = shape.n * shape.c * shape.h * shape.w;
  if (inputs == 0) return;
  const uint8_t* winners = spec.pooling == Pooling::max ? index : nullptr;
  visit_float_type(storage_of(spec.precision), "pool_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kPack = Pack<T>::kSize;
    const T* from = static_cast<const T*>(dy);
    T* to = static_cast<T*>(dx);
    const bool aligned = packs_aligned<kPack>(from) && packs_aligned<kPack>(to) && packs_aligned<kPack>(winners);
    with_pool_widths<T>(shape, inputs, aligned, [&](auto index_tag, auto width, int64_t total) {
      using Index = decltype(index_tag);
      constexpr int kWidth = decltype(width)::value;
      launch(stream_, dim3(grid_size(total, hardware_.multiprocessors)), dim3(kThreads), 0,
             pool_backward_kernel<T, Index, kWidth>, shape, total, from, winners, to);
    });
  });
}

}  // namespace dlbench::gpu
