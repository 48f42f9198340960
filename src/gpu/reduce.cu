// reduce: sums and maxima over rows, over columns, or of everything. Twin: src/cpu/reduce.cpp.
//
// Deterministic: a fixed tree within a warp and a block, slices added in order, no atomics (parallel.cuh).
#include <limits>

#include "core/math/elementwise.h"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

template <typename T, typename Combine>
void reduce_rows(cudaStream_t stream, int multiprocessors, Scratch scratch, int64_t rows, int64_t extent,
                 Combine combine, ComputeOf<T> identity, const T* x, T* y) {
  const Slices slices = choose_slices(rows, rows, extent, 8192, multiprocessors,
                                      static_cast<int64_t>(scratch.bytes / sizeof(ComputeOf<T>)));
  const bool partial = slices.count > 1, whole_block = extent > kRowOfAWarp;
  void* out = partial ? scratch.data : static_cast<void*>(y);
  launch(stream, row_grid(rows * slices.count, whole_block, multiprocessors), dim3(kThreads), 0,
         reduce_rows_kernel<T, T, Combine>, rows, extent, slices, whole_block, combine, identity, x, out, partial);
  if (partial) finish_slices(stream, multiprocessors, rows, slices.count, combine, identity, scratch.data, y);
}

}  // namespace

void GpuOps::reduce(const ReduceSpec& spec, const void* x, void* y) {
  require_valid(spec);
  if (spec.outer == 0 || spec.inner == 0) return;
  visit_float_type(storage_of(spec.precision), "reduce", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Acc = ComputeOf<T>;
    const auto run = [&](auto combine, Acc identity) {
      const T* in = static_cast<const T*>(x);
      T* out = static_cast<T*>(y);
      if (spec.inner == 1) {
        reduce_rows(stream_, hardware_.multiprocessors, scratch_, spec.outer, spec.extent, combine, identity, in, out);
      } else {
        reduce_columns<T>(stream_, hardware_.multiprocessors, scratch_, spec.outer, spec.extent, spec.inner,
                          spec.extent * spec.inner, combine, identity, in, nullptr, out);
      }
    };
    switch (spec.reduction) {
      case Reduction::sum:
        return run(Sum{}, Acc(0));
      case Reduction::max:
        return run(MaxOfTwo{}, -std::numeric_limits<Acc>::infinity());
    }
  });
}

}  // namespace dlbench::gpu
