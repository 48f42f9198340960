// batch_norm: training mode, with residual and ReLU in the same pass. Twin: src/cpu/batch_norm.cpp.
//
// Three launches each way: parts of the sums of every channel (columns.cuh), their totals, one pass that writes. In
// nhwc channels are the columns of a matrix [N*H*W, C]; in nchw a block takes a slice of one channel's N runs of H*W
// values.
#include <cmath>

#include "core/math/activation.h"
#include "gpu/columns.cuh"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

/// Channels at a time: totals and the parts of at least one slice fit the scratch memory.
constexpr int64_t kChannelsOfACall = 8192;

template <typename T>
struct BatchNormArrays {
  const T *x, *gamma, *beta, *residual;  ///< forward: x, gamma, beta, residual (or null)
  T* y;
  const T *dy, *output;  ///< backward: dy, what forward wrote (null without activation)
  T *dx, *dresidual, *dgamma, *dbeta;
  ComputeOf<T>*mean, *rstd, *running_mean, *running_variance;
  TwoSums<ComputeOf<T>>* totals;  ///< backward: sums of g and g * xhat
  ComputeOf<T> count, epsilon, momentum;
  bool relu;
};

// The numbers of a thread's columns, in registers; made by Source::columns. ------------------------------------------

template <typename T, int kWidth>
struct StatisticsColumns {
  const T* x;
  __device__ void add(int64_t, int64_t offset, Moments<ComputeOf<T>> (&part)[kWidth]) const {
    const Pack<T, kWidth> pack = load_pack<kWidth>(x + offset);
    const ComputeOf<T> reciprocal = ComputeOf<T>(1) / (part[0].count + ComputeOf<T>(1));
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) part[k].add(widen(pack.value[k]), reciprocal);
  }
};

template <typename T>
struct StatisticsSource {
  using Part = Moments<ComputeOf<T>>;
  BatchNormArrays<T> a;
  template <int kWidth>
  __device__ StatisticsColumns<T, kWidth> columns(int64_t) const {
    return {a.x};
  }
};

template <typename T, int kWidth>
struct NormalizeColumns {
  const BatchNormArrays<T>& a;
  ComputeOf<T> mean[kWidth], scale[kWidth], shift[kWidth];
  __device__ NormalizeColumns(const BatchNormArrays<T>& arrays, int64_t column) : a(arrays) {
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      mean[k] = a.mean[column + k];
      scale[k] = a.rstd[column + k] * widen(a.gamma[column + k]);
      shift[k] = widen(a.beta[column + k]);
    }
  }
  __device__ void apply(int64_t, int64_t offset) const {
    using Acc = ComputeOf<T>;
    Pack<T, kWidth> pack = load_pack<kWidth>(a.x + offset), added = {};
    if (a.residual != nullptr) added = load_pack<kWidth>(a.residual + offset);
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      Acc value = (widen(pack.value[k]) - mean[k]) * scale[k] + shift[k];
      if (a.residual != nullptr) value += widen(added.value[k]);
      pack.value[k] = narrow<T>(a.relu ? ReluForward{}(value) : value);
    }
    store_pack(a.y + offset, pack);
  }
};

template <typename T>
struct NormalizeSource {
  BatchNormArrays<T> a;
  template <int kWidth>
  __device__ NormalizeColumns<T, kWidth> columns(int64_t column) const {
    return {a, column};
  }
};

/// dy behind the activation.
template <int kWidth, typename T>
__device__ Pack<T, kWidth> masked_gradient(const BatchNormArrays<T>& a, int64_t offset) {
  Pack<T, kWidth> gradient = load_pack<kWidth>(a.dy + offset);
  if (!a.relu) return gradient;
  const Pack<T, kWidth> output = load_pack<kWidth>(a.output + offset);
  DLB_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    gradient.value[k] = narrow<T>(ReluBackward{}(widen(gradient.value[k]), widen(output.value[k])));
  }
  return gradient;
}

template <typename T, int kWidth>
struct GradientSumColumns {
  const BatchNormArrays<T>& a;
  ComputeOf<T> mean[kWidth], rstd[kWidth];
  __device__ GradientSumColumns(const BatchNormArrays<T>& arrays, int64_t column) : a(arrays) {
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      mean[k] = a.mean[column + k];
      rstd[k] = a.rstd[column + k];
    }
  }
  __device__ void add(int64_t, int64_t offset, TwoSums<ComputeOf<T>> (&part)[kWidth]) const {
    const Pack<T, kWidth> gradient = masked_gradient<kWidth>(a, offset), value = load_pack<kWidth>(a.x + offset);
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      const ComputeOf<T> g = widen(gradient.value[k]);
      part[k].first += g;
      part[k].second += g * ((widen(value.value[k]) - mean[k]) * rstd[k]);
    }
  }
};

template <typename T>
struct GradientSumSource {
  using Part = TwoSums<ComputeOf<T>>;
  BatchNormArrays<T> a;
  template <int kWidth>
  __device__ GradientSumColumns<T, kWidth> columns(int64_t column) const {
    return {a, column};
  }
};

/// dx = gamma * rstd * (g - mean(g) - xhat * mean(g * xhat)) (Ioffe & Szegedy 2015, section 3).
template <typename T, int kWidth>
struct GradientColumns {
  const BatchNormArrays<T>& a;
  ComputeOf<T> mean[kWidth], rstd[kWidth], scale[kWidth], mean_g[kWidth], mean_g_xhat[kWidth];
  __device__ GradientColumns(const BatchNormArrays<T>& arrays, int64_t column) : a(arrays) {
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      mean[k] = a.mean[column + k];
      rstd[k] = a.rstd[column + k];
      scale[k] = rstd[k] * widen(a.gamma[column + k]);
      mean_g[k] = a.totals[column + k].first / a.count;
      mean_g_xhat[k] = a.totals[column + k].second / a.count;
    }
  }
  __device__ void apply(int64_t, int64_t offset) const {
    const Pack<T, kWidth> gradient = masked_gradient<kWidth>(a, offset), value = load_pack<kWidth>(a.x + offset);
    Pack<T, kWidth> dx;
    DLB_UNROLL
    for (int k = 0; k < kWidth; ++k) {
      const ComputeOf<T> xhat = (widen(value.value[k]) - mean[k]) * rstd[k];
      dx.value[k] = narrow<T>(scale[k] * (widen(gradient.value[k]) - mean_g[k] - xhat * mean_g_xhat[k]));
    }
    if (a.dresidual != nullptr) store_pack(a.dresidual + offset, gradient);
    store_pack(a.dx + offset, dx);
  }
};

template <typename T>
struct GradientSource {
  BatchNormArrays<T> a;
  template <int kWidth>
  __device__ GradientColumns<T, kWidth> columns(int64_t column) const {
    return {a, column};
  }
};

// Totals --------------------------------------------------------------------------------------------------------------

template <typename T>
struct StatisticsSink {
  BatchNormArrays<T> a;
  __device__ void take(int64_t c, const Moments<ComputeOf<T>>& total) const {
    using Acc = ComputeOf<T>;
    a.mean[c] = total.mean;
    a.rstd[c] = Acc(1) / std::sqrt(total.squares / a.count + a.epsilon);
    const Acc unbiased = total.squares / (a.count - Acc(1));
    a.running_mean[c] = (Acc(1) - a.momentum) * a.running_mean[c] + a.momentum * total.mean;
    a.running_variance[c] = (Acc(1) - a.momentum) * a.running_variance[c] + a.momentum * unbiased;
  }
};

template <typename T>
struct GradientSumSink {
  BatchNormArrays<T> a;
  __device__ void take(int64_t c, const TwoSums<ComputeOf<T>>& total) const {
    a.totals[c] = total;
    a.dbeta[c] = narrow<T>(total.first);
    a.dgamma[c] = narrow<T>(total.second);
  }
};

// Both layouts --------------------------------------------------------------------------------------------------------

/// What the passes run on, and where.
struct BatchNormRun {
  cudaStream_t stream;
  int multiprocessors;
  Scratch scratch;
  ImageLayout layout;
  int64_t images, channels, pixels;  ///< channels of the tensor
  bool packs;                        ///< nhwc in packs of 16 bytes
};

/// Sums of `count` channels, then the map.
template <typename T, typename Sums, typename Sink, typename Map>
void run_channels(const BatchNormRun& run, int64_t count, const Sums& sums, const Sink& sink, const Map& map) {
  using Part = typename Sums::Part;
  constexpr int kPack = Pack<T>::kSize;
  const size_t totals_bytes = kChannelsOfACall * sizeof(TwoSums<ComputeOf<T>>);
  Part* parts = reinterpret_cast<Part*>(static_cast<char*>(run.scratch.data) + totals_bytes);
  const int64_t parts_count = static_cast<int64_t>((run.scratch.bytes - totals_bytes) / sizeof(Part));
  if (run.layout == ImageLayout::nhwc) {
    const auto in_columns = [&](auto width) {
      constexpr int kWidth = decltype(width)::value;
      const ColumnTile tile = column_tile(run.images * run.pixels, count, run.channels, kWidth);
      column_sums<kWidth>(run.stream, run.multiprocessors, tile, sums, sink, parts, parts_count);
      column_map<kWidth>(run.stream, run.multiprocessors, tile, map);
    };
    if (run.packs) {
      in_columns(Width<kPack>{});
    } else {
      in_columns(Width<1>{});
    }
    return;
  }
  const Planes planes = {run.images, count, run.pixels, run.channels * run.pixels};
  plane_sums(run.stream, run.multiprocessors, planes, sums, sink, parts, parts_count);
  plane_map(run.stream, run.multiprocessors, planes, map);
}

/// The arrays moved on by `first` channels.
template <typename T>
BatchNormArrays<T> from_channel(BatchNormArrays<T> a, int64_t first, int64_t elements) {
  const auto move = [](auto*& pointer, int64_t by) {
    if (pointer != nullptr) pointer += by;
  };
  for (const T** tensor : {&a.x, &a.residual, &a.dy, &a.output}) move(*tensor, elements);
  for (T** tensor : {&a.y, &a.dx, &a.dresidual}) move(*tensor, elements);
  for (const T** vector : {&a.gamma, &a.beta}) move(*vector, first);
  for (T** vector : {&a.dgamma, &a.dbeta}) move(*vector, first);
  for (ComputeOf<T>** vector : {&a.mean, &a.rstd, &a.running_mean, &a.running_variance}) move(*vector, first);
  return a;
}

template <typename T>
BatchNormArrays<T> arrays_of(const BatchNormSpec& spec, Scratch scratch) {
  BatchNormArrays<T> a = {};
  a.totals = static_cast<TwoSums<ComputeOf<T>>*>(scratch.data);
  a.count = static_cast<ComputeOf<T>>(spec.n * spec.h * spec.w);
  a.epsilon = spec.epsilon;
  a.momentum = spec.momentum;
  a.relu = spec.activation == Activation::relu;
  return a;
}

/// Calls body(arrays of some channels, their number) until all channels are done.
template <typename T, typename Body>
void for_channels(const BatchNormSpec& spec, const BatchNormArrays<T>& arrays, Body body) {
  const int64_t step = spec.layout == ImageLayout::nhwc ? 1 : spec.h * spec.w;
  for (int64_t first = 0; first < spec.c; first += kChannelsOfACall) {
    const int64_t count = spec.c - first < kChannelsOfACall ? spec.c - first : kChannelsOfACall;
    body(from_channel(arrays, first, first * step), count);
  }
}

template <typename T, typename... P>
bool in_packs(const BatchNormSpec& spec, const P*... tensors) {
  constexpr int kPack = Pack<T>::kSize;
  return spec.c % kPack == 0 && (packs_aligned<kPack>(tensors) && ...);
}

}  // namespace

void GpuOps::batch_norm_forward(const BatchNormSpec& spec, const void* x, const void* gamma, const void* beta,
                                const void* residual, void* y, void* running_mean, void* running_variance,
                                void* saved_mean, void* saved_rstd) {
  require_valid(spec);
  visit_float_type(storage_of(spec.precision), "batch_norm_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    BatchNormArrays<T> a = arrays_of<T>(spec, scratch_);
    a.x = static_cast<const T*>(x);
    a.gamma = static_cast<const T*>(gamma);
    a.beta = static_cast<const T*>(beta);
    a.residual = spec.residual ? static_cast<const T*>(residual) : nullptr;
    a.y = static_cast<T*>(y);
    a.mean = static_cast<Acc*>(saved_mean);
    a.rstd = static_cast<Acc*>(saved_rstd);
    a.running_mean = static_cast<Acc*>(running_mean);
    a.running_variance = static_cast<Acc*>(running_variance);
    const BatchNormRun run = {stream_,         hardware_.multiprocessors,
                              scratch_,        spec.layout,
                              spec.n,          spec.c,
                              spec.h * spec.w, in_packs<T>(spec, a.x, a.residual, static_cast<const T*>(a.y))};
    for_channels(spec, a, [&](const BatchNormArrays<T>& some, int64_t count) {
      run_channels<T>(run, count, StatisticsSource<T>{some}, StatisticsSink<T>{some}, NormalizeSource<T>{some});
    });
  });
}

void GpuOps::batch_norm_backward(const BatchNormSpec& spec, const void* dy, const void* x, const void* y,
                                 const void* gamma, const void* saved_mean, const void* saved_rstd, void* dx,
                                 void* dresidual, void* dgamma, void* dbeta) {
  require_valid(spec);
  visit_float_type(storage_of(spec.precision), "batch_norm_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    BatchNormArrays<T> a = arrays_of<T>(spec, scratch_);
    a.dy = static_cast<const T*>(dy);
    a.x = static_cast<const T*>(x);
    a.output = a.relu ? static_cast<const T*>(y) : nullptr;
    a.gamma = static_cast<const T*>(gamma);
    a.mean = static_cast<Acc*>(const_cast<void*>(saved_mean));  // read only
    a.rstd = static_cast<Acc*>(const_cast<void*>(saved_rstd));
    a.dx = static_cast<T*>(dx);
    a.dresidual = spec.residual ? static_cast<T*>(dresidual) : nullptr;
    a.dgamma = static_cast<T*>(dgamma);
    a.dbeta = static_cast<T*>(dbeta);
    const bool packs =
        in_packs<T>(spec, a.dy, a.x, a.output, static_cast<const T*>(a.dx), static_cast<const T*>(a.dresidual));
    const BatchNormRun run = {stream_, hardware_.multiprocessors, scratch_, spec.layout, spec.n,
                              spec.c,  spec.h * spec.w,           packs};
    for_channels(spec, a, [&](const BatchNormArrays<T>& some, int64_t count) {
      run_channels<T>(run, count, GradientSumSource<T>{some}, GradientSumSink<T>{some}, GradientSource<T>{some});
    });
  });
}

}  // namespace dlbench::gpu
