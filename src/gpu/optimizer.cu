// What happens between backward and the next step: gradient norm, overflow, loss scale; SGD and AdamW over the one flat
// array of all parameters. Twin: src/cpu/optimizer.cpp.
//
// Nothing here asks the host: norm, clip factor, loss scale and the number of the step live in a TrainingState on the
// device, so a captured step goes on being right however often it is replayed.
#include "core/math/optimizer.h"

#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

/// A block's part of a gradient.
template <typename Acc>
struct NormPart {
  Acc squares;
  int overflow;  ///< an element is infinite or NaN
};

constexpr int64_t kNormBlocks = 1024;       // at most; each with a NormPart in the workspace
constexpr int64_t kNormElements = 1 << 13;  // that are worth a block

int64_t norm_blocks(int64_t n) {
  const int64_t wanted = (n + kNormElements - 1) / kNormElements;
  return wanted < kNormBlocks ? wanted : kNormBlocks;
}

template <typename T>
__global__ void norm_parts_kernel(int64_t n, int64_t length, const T* gradient, NormPart<ComputeOf<T>>* parts) {
  using Acc = ComputeOf<T>;
  const int64_t begin = blockIdx.x * length, left = n - begin;
  const T* slice = gradient + begin;
  Acc squares = 0;
  int overflow = 0;
  for_span(
      left < length ? left : length, static_cast<int>(threadIdx.x), kThreads,
      [&](auto width, int64_t i) {
        constexpr int kWidth = decltype(width)::value;
        const Pack<T, kWidth> pack = load_pack<kWidth>(slice + i);
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) {
          const Acc value = widen(pack.value[k]);
          squares += value * value;
          overflow |= value - value != Acc(0);
        }
      },
      slice);
  squares = block_reduce_all(squares, Acc(0), Sum{});
  overflow = __syncthreads_or(overflow);
  if (threadIdx.x == 0) parts[blockIdx.x] = {squares, overflow};
}

/// What a GradientSpec says to update_training_state.
struct UpdateRule {
  float max_norm;
  bool dynamic_scaling;
  int32_t growth_interval;
};

/// One block; without parts (count 0) the step is only counted.
template <typename Acc>
__global__ void update_state_kernel(int count, const NormPart<Acc>* parts, UpdateRule rule, TrainingState* state) {
  Acc squares = 0;
  int overflow = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    squares += parts[i].squares;
    overflow |= parts[i].overflow;
  }
  squares = block_reduce_all(squares, Acc(0), Sum{});
  overflow = __syncthreads_or(overflow);
  if (threadIdx.x != 0) return;
  TrainingState updated = *state;
  update_training_state(updated, static_cast<float>(std::sqrt(squares)), overflow == 0, rule.max_norm,
                        rule.dynamic_scaling, rule.growth_interval);
  *state = updated;
}

/// The arrays of an optimizer, packs of four elements, and which element is the first without decay.
struct Sweep {
  int64_t n, quads, decayed;
};

/// gradient and parameter have the storage type, the others the statistics type.
template <typename T>
struct SgdArrays {
  const T* gradient;
  ComputeOf<T>*master, *momentum;
  T* parameter;  ///< or null
};

template <typename T, int kWidth, typename Update>
__device__ void sgd_at(const SgdArrays<T>& a, int64_t i, Update update) {
  using Acc = ComputeOf<T>;
  const Pack<T, kWidth> gradient = load_pack<kWidth>(a.gradient + i);
  Pack<Acc, kWidth> w = load_pack<kWidth>(a.master + i), v = load_pack<kWidth>(a.momentum + i);
  Pack<T, kWidth> parameter;
  DLB_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    update(i + k, w.value[k], v.value[k], widen(gradient.value[k]));
    parameter.value[k] = narrow<T>(w.value[k]);
  }
  store_pack(a.master + i, w);
  store_pack(a.momentum + i, v);
  if (a.parameter != nullptr) store_pack(a.parameter + i, parameter);
}

template <typename T>
__global__ void sgd_kernel(Sweep sweep, SgdSpec spec, const TrainingState* state, SgdArrays<T> arrays) {
  using Acc = ComputeOf<T>;
  if (state->skip != 0) return;
  const Acc factor = state->gradient_factor, lr = spec.lr, momentum = spec.momentum, decay = spec.weight_decay;
  const bool first = state->step <= 1;
  const auto update = [&](int64_t i, Acc& w, Acc& v, Acc g) {
    sgd_update(w, v, g * factor, lr, momentum, i < sweep.decayed ? decay : Acc(0), first);
  };
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t q = thread; q < sweep.quads; q += threads) sgd_at<T, 4>(arrays, q * 4, update);
  for (int64_t i = sweep.quads * 4 + thread; i < sweep.n; i += threads) sgd_at<T, 1>(arrays, i, update);
}

template <typename T>
struct AdamArrays {
  const T* gradient;
  ComputeOf<T>*master, *m, *v;
  T* parameter;  ///< or null
};

template <typename T, int kWidth, typename Update>
__device__ void adamw_at(const AdamArrays<T>& a, int64_t i, Update update) {
  using Acc = ComputeOf<T>;
  const Pack<T, kWidth> gradient = load_pack<kWidth>(a.gradient + i);
  Pack<Acc, kWidth> w = load_pack<kWidth>(a.master + i), m = load_pack<kWidth>(a.m + i);
  Pack<Acc, kWidth> v = load_pack<kWidth>(a.v + i);
  Pack<T, kWidth> parameter;
  DLB_UNROLL
  for (int k = 0; k < kWidth; ++k) {
    update(i + k, w.value[k], m.value[k], v.value[k], widen(gradient.value[k]));
    parameter.value[k] = narrow<T>(w.value[k]);
  }
  store_pack(a.master + i, w);
  store_pack(a.m + i, m);
  store_pack(a.v + i, v);
  if (a.parameter != nullptr) store_pack(a.parameter + i, parameter);
}

template <typename T>
__global__ void adamw_kernel(Sweep sweep, AdamWSpec spec, const TrainingState* state, AdamArrays<T> arrays) {
  using Acc = ComputeOf<T>;
  DLB_SHARED(Acc, corrections, 2);
  if (state->skip != 0) return;
  if (threadIdx.x == 0) {  // in double: 1 - 0.999 loses four digits of a float
    const double t = state->step;
    corrections[0] = static_cast<Acc>(1.0 / (1.0 - ::pow(static_cast<double>(spec.beta1), t)));
    corrections[1] = static_cast<Acc>(1.0 / ::sqrt(1.0 - ::pow(static_cast<double>(spec.beta2), t)));
  }
  __syncthreads();
  const Acc correction1 = corrections[0], correction2 = corrections[1];
  const Acc factor = state->gradient_factor, lr = spec.lr, decay = spec.weight_decay, epsilon = spec.epsilon;
  const Acc beta1 = spec.beta1, beta2 = spec.beta2;
  const auto update = [&](int64_t i, Acc& w, Acc& m, Acc& v, Acc g) {
    adamw_update(w, m, v, g * factor, lr, beta1, beta2, epsilon, i < sweep.decayed ? decay : Acc(0), correction1,
                 correction2);
  };
  const int64_t thread = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t q = thread; q < sweep.quads; q += threads) adamw_at<T, 4>(arrays, q * 4, update);
  for (int64_t i = sweep.quads * 4 + thread; i < sweep.n; i += threads) adamw_at<T, 1>(arrays, i, update);
}

/// Quads where every array allows them.
template <typename... P>
Sweep sweep_of(int64_t n, int64_t decayed, const P*... arrays) {
  return {n, (packs_aligned<4>(arrays) && ...) ? n / 4 : 0, decayed};
}

}  // namespace

int64_t GpuOps::update_workspace_bytes(const GradientSpec& spec) const {
  require_valid(spec);
  if (!spec.check) return 0;
  const bool wide = accumulate_of(spec.precision) == DType::f64;
  return norm_blocks(spec.n) * static_cast<int64_t>(wide ? sizeof(NormPart<double>) : sizeof(NormPart<float>));
}

void GpuOps::prepare_update(const GradientSpec& spec, const void* gradient, TrainingState* state, void* workspace) {
  require_valid(spec);
  const UpdateRule rule = {spec.max_norm, spec.dynamic_scaling, spec.growth_interval};
  const int64_t blocks = spec.check ? norm_blocks(spec.n) : 0;
  visit_float_type(storage_of(spec.precision), "prepare_update", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Part = NormPart<ComputeOf<T>>;
    Part* parts = static_cast<Part*>(workspace);
    if (blocks > 0) {
      const int64_t length = ((spec.n + blocks - 1) / blocks + 63) / 64 * 64;  // slices of an aligned array are aligned
      // Rounding up may leave the last blocks without elements: they write parts of zero.
      launch(stream_, dim3(static_cast<unsigned>(blocks)), dim3(kThreads), 0, norm_parts_kernel<T>, spec.n, length,
             static_cast<const T*>(gradient), parts);
    }
    launch(stream_, dim3(1), dim3(kThreads), 0, update_state_kernel<ComputeOf<T>>, static_cast<int>(blocks), parts,
           rule, state);
  });
}

void GpuOps::sgd_step(const SgdSpec& spec, const TrainingState* state, const void* gradient, void* master,
                      void* momentum, void* parameter) {
  require_valid(spec);
  if (spec.n == 0) return;
  visit_float_type(storage_of(spec.precision), "sgd_step", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    const SgdArrays<T> arrays = {static_cast<const T*>(gradient), static_cast<Acc*>(master),
                                 static_cast<Acc*>(momentum), static_cast<T*>(parameter)};
    const Sweep sweep =
        sweep_of(spec.n, spec.decayed, arrays.gradient, arrays.master, arrays.momentum, arrays.parameter);
    launch(stream_, dim3(grid_size(sweep.quads > 0 ? sweep.quads : spec.n, hardware_.multiprocessors)), dim3(kThreads),
           0, sgd_kernel<T>, sweep, spec, state, arrays);
  });
}

void GpuOps::adamw_step(const AdamWSpec& spec, const TrainingState* state, const void* gradient, void* master, void* m,
                        void* v, void* parameter) {
  require_valid(spec);
  if (spec.n == 0) return;
  visit_float_type(storage_of(spec.precision), "adamw_step", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    const AdamArrays<T> arrays = {static_cast<const T*>(gradient), static_cast<Acc*>(master), static_cast<Acc*>(m),
                                  static_cast<Acc*>(v), static_cast<T*>(parameter)};
    const Sweep sweep =
        sweep_of(spec.n, spec.decayed, arrays.gradient, arrays.master, arrays.m, arrays.v, arrays.parameter);
    launch(stream_, dim3(grid_size(sweep.quads > 0 ? sweep.quads : spec.n, hardware_.multiprocessors)), dim3(kThreads),
           0, adamw_kernel<T>, sweep, spec, state, arrays);
  });
}

}  // namespace dlbench::gpu
