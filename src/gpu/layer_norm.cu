// layer_norm: a warp or a block per row; gradients of gamma and beta by columns. Twin: src/cpu/layer_norm.cpp.
//
// A row is read for its mean, again for its variance (differences from the mean: no cancellation) and again to be
// written; only the first time comes from memory, the others from L1 and L2.
#include <cmath>

#include "gpu/columns.cuh"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

struct LayerNormShape {
  int64_t rows, columns;
  bool whole_block;
};

template <typename T>
struct LayerNormForward {
  const T *x, *residual, *gamma, *beta;  ///< residual null: none
  T *sum, *y;                            ///< sum null: none
  ComputeOf<T>*mean, *rstd;
};

/// sum = x + residual of one row, each lane the elements that it reads again afterwards: the spans of later passes are
/// over the same pointers.
template <typename T>
__device__ void add_residual(const LayerNormForward<T>& a, int64_t columns, int64_t first, const RowGroup& group) {
  const T *x = a.x + first, *residual = a.residual + first;
  T* sum = a.sum + first;
  for_span(
      columns, group.lane, group.lanes,
      [&](auto width, int64_t i) {
        constexpr int kWidth = decltype(width)::value;
        const Pack<T, kWidth> added = load_pack<kWidth>(residual + i);
        Pack<T, kWidth> pack = load_pack<kWidth>(x + i);
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) pack.value[k] = narrow<T>(widen(pack.value[k]) + widen(added.value[k]));
        store_pack(sum + i, pack);
      },
      x, residual, static_cast<const T*>(sum));
}

template <typename T>
__global__ void layer_norm_forward_kernel(LayerNormShape s, ComputeOf<T> epsilon, LayerNormForward<T> a) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(s.whole_block);
  const Acc columns = static_cast<Acc>(s.columns);
  for (int64_t row = group.index; row < s.rows; row += group.count) {
    const int64_t first = row * s.columns;
    const T* in = a.x + first;
    if (a.sum != nullptr) {
      add_residual(a, s.columns, first, group);
      // Other lanes may read what this one wrote: the spans split differently where the pointers are misaligned.
      if (s.whole_block) {
        __syncthreads();
      } else {
        __syncwarp();
      }
      in = a.sum + first;
    }
    const auto value = [](T x) { return widen(x); };
    const Acc total = reduce_span(Acc(0), value, Sum{}, s.columns, group.lane, group.lanes, in);
    const Acc mean = group_reduce(s.whole_block, total, Acc(0), Sum{}) / columns;
    const auto square = [mean](T x) {
      const Acc difference = widen(x) - mean;
      return difference * difference;
    };
    const Acc squares = reduce_span(Acc(0), square, Sum{}, s.columns, group.lane, group.lanes, in);
    const Acc variance = group_reduce(s.whole_block, squares, Acc(0), Sum{}) / columns;
    const Acc rstd = Acc(1) / std::sqrt(variance + epsilon);
    if (group.lane == 0) {
      a.mean[row] = mean;
      a.rstd[row] = rstd;
    }
    T* out = a.y + first;
    for_span(
        s.columns, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          const Pack<T, kWidth> gamma = load_pack<kWidth>(a.gamma + i), beta = load_pack<kWidth>(a.beta + i);
          Pack<T, kWidth> pack = load_pack<kWidth>(in + i);
          DLB_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            const Acc normalized = (widen(pack.value[k]) - mean) * rstd;
            pack.value[k] = narrow<T>(normalized * widen(gamma.value[k]) + widen(beta.value[k]));
          }
          store_pack(out + i, pack);
        },
        in, static_cast<const T*>(out), a.gamma, a.beta);
  }
}

template <typename T>
struct LayerNormBackward {
  const T *dy, *x, *gamma;
  const ComputeOf<T>*mean, *rstd;
  const T* dx_add;  ///< null: nothing
  T* dx;
};

/// dx = rstd * (g - mean(g) - xhat * mean(g * xhat)) + dx_add with g = dy * gamma (Ba et al. 2016; the derivation is
/// that of Ioffe & Szegedy 2015, section 3). dx may be dx_add: a lane writes what it has just read.
template <typename T>
__global__ void layer_norm_backward_kernel(LayerNormShape s, LayerNormBackward<T> a) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(s.whole_block);
  const Acc columns = static_cast<Acc>(s.columns);
  for (int64_t row = group.index; row < s.rows; row += group.count) {
    const int64_t first = row * s.columns;
    const T *dy = a.dy + first, *x = a.x + first, *dx_add = a.dx_add == nullptr ? nullptr : a.dx_add + first;
    T* dx = a.dx + first;
    const Acc mean = a.mean[row], rstd = a.rstd[row];
    Acc sum = 0, sum_xhat = 0;
    for_span(
        s.columns, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          const Pack<T, kWidth> gradient = load_pack<kWidth>(dy + i), value = load_pack<kWidth>(x + i);
          const Pack<T, kWidth> gamma = load_pack<kWidth>(a.gamma + i);
          DLB_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            const Acc g = widen(gradient.value[k]) * widen(gamma.value[k]);
            sum += g;
            sum_xhat += g * ((widen(value.value[k]) - mean) * rstd);
          }
        },
        dy, x, a.gamma);
    const Acc mean_g = group_reduce(s.whole_block, sum, Acc(0), Sum{}) / columns;
    const Acc mean_g_xhat = group_reduce(s.whole_block, sum_xhat, Acc(0), Sum{}) / columns;
    const T* aligned_as = dx_add == nullptr ? dx : dx_add;
    for_span(
        s.columns, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          const Pack<T, kWidth> gradient = load_pack<kWidth>(dy + i), value = load_pack<kWidth>(x + i);
          const Pack<T, kWidth> gamma = load_pack<kWidth>(a.gamma + i);
          Pack<T, kWidth> added = {};
          if (dx_add != nullptr) added = load_pack<kWidth>(dx_add + i);
          DLB_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            const Acc g = widen(gradient.value[k]) * widen(gamma.value[k]);
            const Acc xhat = (widen(value.value[k]) - mean) * rstd;
            added.value[k] = narrow<T>(rstd * (g - mean_g - xhat * mean_g_xhat) + widen(added.value[k]));
          }
          store_pack(dx + i, added);
        },
        dy, x, a.gamma, aligned_as, static_cast<const T*>(dx));
  }
}

/// What the columns add up: dy, and dy * xhat.
template <typename T>
struct GammaBetaSource {
  const T *dy, *x;
  const ComputeOf<T>*mean, *rstd;

  template <int kWidth>
  struct Columns {
    GammaBetaSource source;
    __device__ void add(int64_t row, int64_t offset, TwoSums<ComputeOf<T>> (&part)[kWidth]) const {
      const ComputeOf<T> mean = source.mean[row], rstd = source.rstd[row];
      const Pack<T, kWidth> gradient = load_pack<kWidth>(source.dy + offset);
      const Pack<T, kWidth> value = load_pack<kWidth>(source.x + offset);
      DLB_UNROLL
      for (int k = 0; k < kWidth; ++k) {
        const ComputeOf<T> g = widen(gradient.value[k]);
        part[k].first += g;
        part[k].second += g * ((widen(value.value[k]) - mean) * rstd);
      }
    }
  };
  template <int kWidth>
  __device__ Columns<kWidth> columns(int64_t) const {
    return {*this};
  }
};

template <typename T>
struct GammaBetaSink {
  T *dgamma, *dbeta;
  __device__ void take(int64_t column, const TwoSums<ComputeOf<T>>& total) const {
    dbeta[column] = narrow<T>(total.first);
    dgamma[column] = narrow<T>(total.second);
  }
};

/// Columns at a time: their parts of at least one slice fit the scratch memory.
constexpr int64_t kColumnsOfACall = 16384;

template <typename T>
void gamma_beta_gradients(cudaStream_t stream, int multiprocessors, Scratch scratch, const LayerNormShape& s,
                          const GammaBetaSource<T>& source, const GammaBetaSink<T>& sink) {
  using Part = TwoSums<ComputeOf<T>>;
  constexpr int kPack = Pack<T>::kSize;
  const int64_t parts_count = static_cast<int64_t>(scratch.bytes / sizeof(Part));
  Part* parts = static_cast<Part*>(scratch.data);
  const bool packs = s.columns % kPack == 0 && packs_aligned<kPack>(source.dy) && packs_aligned<kPack>(source.x);
  for (int64_t first = 0; first < s.columns; first += kColumnsOfACall) {
    const int64_t count = s.columns - first < kColumnsOfACall ? s.columns - first : kColumnsOfACall;
    const GammaBetaSource<T> from = {source.dy + first, source.x + first, source.mean, source.rstd};
    const GammaBetaSink<T> to = {sink.dgamma + first, sink.dbeta + first};
    if (packs) {
      column_sums<kPack>(stream, multiprocessors, column_tile(s.rows, count, s.columns, kPack), from, to, parts,
                         parts_count);
    } else {
      column_sums<1>(stream, multiprocessors, column_tile(s.rows, count, s.columns, 1), from, to, parts, parts_count);
    }
  }
}

}  // namespace

void GpuOps::layer_norm_forward(const LayerNormSpec& spec, const void* x, const void* residual, const void* gamma,
                                const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) {
  require_valid(spec);
  const LayerNormShape shape = {spec.rows, spec.columns, spec.columns > kRowOfAWarp};
  visit_float_type(storage_of(spec.precision), "layer_norm_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    const LayerNormForward<T> arrays = {static_cast<const T*>(x),
                                        static_cast<const T*>(residual),
                                        static_cast<const T*>(gamma),
                                        static_cast<const T*>(beta),
                                        spec.residual ? static_cast<T*>(sum) : nullptr,
                                        static_cast<T*>(y),
                                        static_cast<Acc*>(saved_mean),
                                        static_cast<Acc*>(saved_rstd)};
    launch(stream_, row_grid(spec.rows, shape.whole_block, hardware_.multiprocessors), dim3(kThreads), 0,
           layer_norm_forward_kernel<T>, shape, static_cast<Acc>(spec.epsilon), arrays);
  });
}

void GpuOps::layer_norm_backward(const LayerNormSpec& spec, const void* dy, const void* x, const void* gamma,
                                 const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx,
                                 void* dgamma, void* dbeta) {
  require_valid(spec);
  const LayerNormShape shape = {spec.rows, spec.columns, spec.columns > kRowOfAWarp};
  visit_float_type(storage_of(spec.precision), "layer_norm_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    const LayerNormBackward<T> arrays = {static_cast<const T*>(dy),
                                         static_cast<const T*>(x),
                                         static_cast<const T*>(gamma),
                                         static_cast<const Acc*>(saved_mean),
                                         static_cast<const Acc*>(saved_rstd),
                                         static_cast<const T*>(dx_add),
                                         static_cast<T*>(dx)};
    gamma_beta_gradients<T>(stream_, hardware_.multiprocessors, scratch_, shape,
                            {arrays.dy, arrays.x, arrays.mean, arrays.rstd},
                            {static_cast<T*>(dgamma), static_cast<T*>(dbeta)});
    launch(stream_, row_grid(spec.rows, shape.whole_block, hardware_.multiprocessors), dim3(kThreads), 0,
           layer_norm_backward_kernel<T>, shape, arrays);
  });
}

}  // namespace dlbench::gpu
