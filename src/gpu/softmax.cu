// softmax and its cross-entropy: a warp or a block per row. Twin: src/cpu/softmax.cpp.
//
// The logits are read twice (softmax.cuh): a vocabulary's row is too long for the registers of a block, so the second
// time they come from L2.
#include "gpu/softmax.cuh"

#include <cmath>

#include "core/math/optimizer.h"

namespace dlbench::gpu {
namespace {

template <typename T>
__global__ void softmax_forward_kernel(int64_t rows, int64_t columns, int64_t stride, bool whole_block, const T* x,
                                       T* y) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(whole_block);
  for (int64_t row = group.index; row < rows; row += group.count) {
    const T* in = x + row * stride;
    T* out = y + row * stride;
    const Normalizer<Acc> normalizer = normalizer_of(in, columns, group, whole_block);
    const Acc scale = Acc(1) / normalizer.sum;
    for_span(
        columns, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          Pack<T, kWidth> pack = load_pack<kWidth>(in + i);
          DLB_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            pack.value[k] = narrow<T>(exp_of(widen(pack.value[k]) - normalizer.largest) * scale);
          }
          store_pack(out + i, pack);
        },
        in, static_cast<const T*>(out));
  }
}

/// dx = y * (dy - sum(dy * y))
template <typename T>
__global__ void softmax_backward_kernel(int64_t rows, int64_t columns, int64_t stride, bool whole_block, const T* dy,
                                        const T* y, T* dx) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(whole_block);
  const auto product = [](T a, T b) { return widen(a) * widen(b); };
  for (int64_t row = group.index; row < rows; row += group.count) {
    const T *dy_row = dy + row * stride, *y_row = y + row * stride;
    T* dx_row = dx + row * stride;
    const Acc part = reduce_span(Acc(0), product, Sum{}, columns, group.lane, group.lanes, dy_row, y_row);
    const Acc sum = group_reduce(whole_block, part, Acc(0), Sum{});
    for_span(
        columns, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          Pack<T, kWidth> gradient = load_pack<kWidth>(dy_row + i);
          const Pack<T, kWidth> value = load_pack<kWidth>(y_row + i);
          DLB_UNROLL
          for (int k = 0; k < kWidth; ++k) {
            gradient.value[k] = narrow<T>(widen(value.value[k]) * (widen(gradient.value[k]) - sum));
          }
          store_pack(dx_row + i, gradient);
        },
        dy_row, y_row, static_cast<const T*>(dx_row));
  }
}

/// What is the same for all rows of a cross-entropy.
struct CrossEntropyShape {
  int64_t rows, columns, stride;
  bool whole_block;
};

/// dlogits may be logits: each lane writes only elements that it has read itself, and the target's logit is read before
/// the barrier of the reduction.
template <typename T>
__global__ void cross_entropy_kernel(CrossEntropyShape s, const T* logits, const int32_t* targets,
                                     const TrainingState* state, ComputeOf<T>* losses, T* dlogits) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(s.whole_block);
  const Acc gradient_scale = (state == nullptr ? Acc(1) : Acc(state->loss_scale)) / static_cast<Acc>(s.rows);
  for (int64_t row = group.index; row < s.rows; row += group.count) {
    const T* in = logits + row * s.stride;
    T* out = dlogits == nullptr ? nullptr : dlogits + row * s.stride;
    const int64_t target = targets[row];
    const bool counts = target >= 0 && target < s.columns;
    const Acc chosen = counts ? widen(in[target]) : Acc(0);
    const Normalizer<Acc> normalizer = normalizer_of(in, s.columns, group, s.whole_block);
    if (group.lane == 0) {
      losses[row] = counts ? std::log(normalizer.sum) - (chosen - normalizer.largest) : Acc(0);
    }
    if (out == nullptr) continue;
    __syncwarp();  // of a row of a warp: nobody writes before every lane has read the target's logit
    const Acc scale = gradient_scale / normalizer.sum;
    for_span(
        s.stride, group.lane, group.lanes,
        [&](auto width, int64_t i) {
          constexpr int kWidth = decltype(width)::value;
          Pack<T, kWidth> pack = {};
          if (counts && i < s.columns) {
            pack = load_pack<kWidth>(in + i);
            DLB_UNROLL
            for (int k = 0; k < kWidth; ++k) {
              const Acc value = exp_of(widen(pack.value[k]) - normalizer.largest) * scale;
              pack.value[k] = narrow<T>(i + k == target ? value - gradient_scale : value);
            }
            DLB_UNROLL
            for (int k = 0; k < kWidth; ++k) {
              if (i + k >= s.columns) pack.value[k] = narrow<T>(Acc(0));
            }
          }
          store_pack(out + i, pack);
        },
        in, static_cast<const T*>(out));
  }
}

int64_t stride_of(const RowsSpec& spec) {
  return spec.row_stride == 0 ? spec.columns : spec.row_stride;
}

}  // namespace

void GpuOps::softmax_forward(const RowsSpec& spec, const void* x, void* y) {
  require_valid(spec);
  if (spec.columns == 0) return;
  const bool whole_block = spec.columns > kRowOfAWarp;
  visit_float_type(storage_of(spec.precision), "softmax_forward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(stream_, row_grid(spec.rows, whole_block, hardware_.multiprocessors), dim3(kThreads), 0,
           softmax_forward_kernel<T>, spec.rows, spec.columns, stride_of(spec), whole_block, static_cast<const T*>(x),
           static_cast<T*>(y));
  });
}

void GpuOps::softmax_backward(const RowsSpec& spec, const void* dy, const void* y, void* dx) {
  require_valid(spec);
  if (spec.columns == 0) return;
  const bool whole_block = spec.columns > kRowOfAWarp;
  visit_float_type(storage_of(spec.precision), "softmax_backward", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(stream_, row_grid(spec.rows, whole_block, hardware_.multiprocessors), dim3(kThreads), 0,
           softmax_backward_kernel<T>, spec.rows, spec.columns, stride_of(spec), whole_block, static_cast<const T*>(dy),
           static_cast<const T*>(y), static_cast<T*>(dx));
  });
}

void GpuOps::cross_entropy(const RowsSpec& spec, const void* logits, const int32_t* targets, const TrainingState* state,
                           void* losses, void* dlogits) {
  require_valid(spec);
  const CrossEntropyShape shape = {spec.rows, spec.columns, stride_of(spec), spec.columns > kRowOfAWarp};
  visit_float_type(storage_of(spec.precision), "cross_entropy", [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch(stream_, row_grid(spec.rows, shape.whole_block, hardware_.multiprocessors), dim3(kThreads), 0,
           cross_entropy_kernel<T>, shape, static_cast<const T*>(logits), targets, state,
           static_cast<ComputeOf<T>*>(losses), static_cast<T*>(dlogits));
  });
}

}  // namespace dlbench::gpu
