// The normalizer of a row of a softmax, for softmax.cu and attention.cu. Twin of the first: src/cpu/softmax.cpp.
//
// One pass finds the largest value m and the sum of e^(x - m) together (Milakov & Gimelshein 2018, "Online normalizer
// calculation for softmax"): whenever a pack raises m, the sum so far is rescaled.
#pragma once

#include "core/math/activation.h"
#include "core/math/elementwise.h"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {

/// The largest of some values and the sum of e^(value - largest).
template <typename Acc>
struct Normalizer {
  Acc largest, sum;
};

/// A finite value to subtract even where all values so far are -infinity: e^(-infinity - 0) adds nothing, while
/// -infinity - -infinity would be NaN.
template <typename Acc>
__device__ Acc subtrahend(Acc largest) {
  return largest == -kInfinity<Acc> ? Acc(0) : largest;
}

/// Of scale * x[0, n); complete in every thread of the group. A NaN in the row makes both NaN.
template <typename T>
__device__ Normalizer<ComputeOf<T>> normalizer_of(const T* x, int64_t n, const RowGroup& group, bool whole_block,
                                                  ComputeOf<T> scale = 1) {
  using Acc = ComputeOf<T>;
  Acc largest = -kInfinity<Acc>, sum = 0;
  for_span(
      n, group.lane, group.lanes,
      [&](auto width, int64_t i) {
        constexpr int kWidth = decltype(width)::value;
        const Pack<T, kWidth> pack = load_pack<kWidth>(x + i);
        Acc raised = largest;
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) raised = MaxOfTwo{}(raised, widen(pack.value[k]) * scale);
        const Acc less = subtrahend(raised);
        if (raised != largest) sum *= exp_of(largest - less);
        DLB_UNROLL
        for (int k = 0; k < kWidth; ++k) sum += exp_of(widen(pack.value[k]) * scale - less);
        largest = raised;
      },
      x);
  const Acc all = group_reduce(whole_block, largest, -kInfinity<Acc>, MaxOfTwo{});
  sum = group_reduce(whole_block, sum * exp_of(largest - subtrahend(all)), Acc(0), Sum{});
  return {all, sum};
}

}  // namespace dlbench::gpu
