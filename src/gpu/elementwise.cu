// Memory-bound ops: fill_normal, copy, triad, axpy, bias, relu, gelu; and noop. Twin: src/cpu/elementwise.cpp.
//
// Each is one pass with 16-byte accesses around a functor of src/core/math.
#include <limits>

#include "core/base/random.h"
#include "core/math/activation.h"
#include "core/math/elementwise.h"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

__global__ void noop_kernel() {}

/// The 128 random bits of a counter make two values: a thread makes both.
template <typename T>
__global__ void fill_normal_kernel(int64_t n, uint64_t seed, uint64_t stream, float factor, T* x) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x * 2;
  for (int64_t i = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 2; i < n; i += step) {
    const uint64_t index = static_cast<uint64_t>(i);
    x[i] = from_float<T>(normal_value(seed, stream, index, factor));
    if (i + 1 < n) x[i + 1] = from_float<T>(normal_value(seed, stream, index + 1, factor));
  }
}

/// y[r,c] = f(x[r,c], bias[c]). A pack may cross the end of a row, so each element finds its column by counting on.
template <typename T, typename F>
__global__ void map_columns_kernel(F f, int64_t n, int64_t columns, Split split, const T* x, const T* bias, T* y) {
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  constexpr int kSize = Pack<T>::kSize;
  const Pack<T>* x_packs = reinterpret_cast<const Pack<T>*>(x + split.head);
  Pack<T>* y_packs = reinterpret_cast<Pack<T>*>(y + split.head);
  int64_t first = (split.head + thread * kSize) % columns;  // column of the pack's first element
  const int64_t advance = threads * kSize % columns;
  for (int64_t p = thread; p < split.packs; p += threads) {
    Pack<T> pack = x_packs[p];
    int64_t c = first;
    DLB_UNROLL
    for (int k = 0; k < kSize; ++k) {
      pack.value[k] = f(pack.value[k], bias[c]);
      if (++c == columns) c = 0;
    }
    y_packs[p] = pack;
    first += advance;
    if (first >= columns) first -= columns;
  }
  for (int64_t i = thread; i < split.head; i += threads) y[i] = f(x[i], bias[i % columns]);
  for (int64_t i = split.head + split.packs * kSize + thread; i < n; i += threads) y[i] = f(x[i], bias[i % columns]);
}

/// Moves the bits: a copy must keep a signalling NaN.
struct Same {
  template <typename T>
  __device__ T operator()(T x) const {
    return x;
  }
};

/// map over batch*n elements of the precision's storage type, with a functor made for its compute type.
template <typename MakeFunctor, typename... In>
void map_vectors(cudaStream_t stream, int multiprocessors, const VectorSpec& spec, const char* what,
                 MakeFunctor make_functor, void* out, const In*... in) {
  visit_float_type(storage_of(spec.precision), what, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto f = make_functor(ComputeOf<T>{});
    map(stream, multiprocessors, spec.n * spec.batch, InStorage<T, decltype(f)>{f}, static_cast<T*>(out),
        static_cast<const T*>(in)...);
  });
}

}  // namespace

void GpuOps::noop() {
  launch(stream_, dim3(1), dim3(1), 0, noop_kernel);
}

void GpuOps::fill_normal(const FillSpec& spec, void* x) {
  require_valid(spec);
  if (spec.n == 0) return;
  const float factor = static_cast<float>(spec.scale * kIrwinHallScale);
  visit_float_type(spec.type, "fill_normal", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(stream_, dim3(grid_size((spec.n + 1) / 2, hardware_.multiprocessors)), dim3(kThreads), 0,
           fill_normal_kernel<T>, spec.n, spec.seed, spec.stream, factor, static_cast<T*>(x));
  });
}

void GpuOps::copy(const VectorSpec& spec, const void* x, void* y) {
  require_valid(spec);
  // As bytes: 16 of them at a time whatever the type; a misaligned head and tail go one by one.
  const int64_t bytes = spec.n * spec.batch * static_cast<int64_t>(size_of(storage_of(spec.precision)));
  map(stream_, hardware_.multiprocessors, bytes, Same{}, static_cast<uint8_t*>(y), static_cast<const uint8_t*>(x));
}

void GpuOps::triad(const VectorSpec& spec, float a, const void* x, const void* y, void* z) {
  require_valid(spec);
  const auto make = [a](auto zero) { return Triad<decltype(zero)>{a}; };
  map_vectors(stream_, hardware_.multiprocessors, spec, "triad", make, z, x, y);
}

void GpuOps::axpy(const VectorSpec& spec, float a, const void* x, void* y) {
  require_valid(spec);
  const auto make = [a](auto zero) { return Axpy<decltype(zero)>{a}; };
  map_vectors(stream_, hardware_.multiprocessors, spec, "axpy", make, y, x, static_cast<const void*>(y));
}

void GpuOps::bias(const MatrixSpec& spec, const void* x, const void* bias, void* y) {
  require_valid(spec);
  const int64_t n = spec.rows * spec.columns;
  if (n == 0) return;
  visit_float_type(storage_of(spec.precision), "bias", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* from = static_cast<const T*>(x);
    T* to = static_cast<T*>(y);
    const Split split = split_packs(n, from, static_cast<const T*>(to));
    const unsigned grid = grid_size(split.packs > 0 ? split.packs : n, hardware_.multiprocessors);
    launch(stream_, dim3(grid), dim3(kThreads), 0, map_columns_kernel<T, InStorage<T, AddBias>>,
           InStorage<T, AddBias>{}, n, spec.columns, split, from, static_cast<const T*>(bias), to);
  });
}

void GpuOps::relu_forward(const VectorSpec& spec, const void* x, void* y) {
  require_valid(spec);
  map_vectors(
      stream_, hardware_.multiprocessors, spec, "relu_forward", [](auto) { return ReluForward{}; }, y, x);
}

void GpuOps::relu_backward(const VectorSpec& spec, const void* dy, const void* y, void* dx) {
  require_valid(spec);
  map_vectors(
      stream_, hardware_.multiprocessors, spec, "relu_backward", [](auto) { return ReluBackward{}; }, dx, dy, y);
}

void GpuOps::gelu_forward(const VectorSpec& spec, const void* x, void* y) {
  require_valid(spec);
  map_vectors(
      stream_, hardware_.multiprocessors, spec, "gelu_forward", [](auto) { return GeluForward{}; }, y, x);
}

void GpuOps::gelu_backward(const VectorSpec& spec, const void* dy, const void* x, void* dx) {
  require_valid(spec);
  map_vectors(
      stream_, hardware_.multiprocessors, spec, "gelu_backward", [](auto) { return GeluBackward{}; }, dx, dy, x);
}

}  // namespace dlbench::gpu
