// dot, and matrix-vector products. Twin: src/cpu/gemv.cpp.
//
// fp32 and fp64 products are cuBLAS; cuBLAS has no gemv of 16-bit matrices with any transpose and stride, so those, and
// extents that don't fit cuBLAS's int, run in kernels of ours: one multiply-add per element in the accumulate type,
// which is what bounds nothing but the memory traffic. dot is the one-row case: deterministic, in two passes when long.
#include <limits>

#include "gpu/parallel.cuh"

namespace dlbench::gpu {
namespace {

/// out[row] = sum over i of a[row, i] * x[row / rows_per_x, i], or out[row, slice] as partial results. Row `row` of A
/// starts at (row % a_rows) * extent.
template <typename T, typename Out>
__global__ void product_kernel(int64_t rows, int64_t a_rows, int64_t rows_per_x, int64_t extent, Slices slices,
                               bool whole_block, const T* a, const T* x, void* out, bool partial) {
  using Acc = ComputeOf<T>;
  const RowGroup group = row_group(whole_block);
  const auto term = [](T left, T right) { return widen(left) * widen(right); };
  for (int64_t task = group.index; task < rows * slices.count; task += group.count) {
    const int64_t row = task / slices.count, slice = task % slices.count, begin = slice_begin(slices, slice);
    Acc acc = reduce_span(Acc(0), term, Sum{}, slice_size(slices, slice, extent), group.lane, group.lanes,
                          a + row % a_rows * extent + begin, x + row / rows_per_x * extent + begin);
    acc = whole_block ? block_reduce(acc, Acc(0), Sum{}) : warp_reduce(acc, Sum{});
    if (group.lane == 0) store_result<Out>(out, task, acc, partial);
  }
}

template <typename T, typename Out>
void products(cudaStream_t stream, int multiprocessors, Scratch scratch, int64_t rows, int64_t a_rows,
              int64_t rows_per_x, int64_t extent, const void* a, const void* x, void* y) {
  using Acc = ComputeOf<T>;
  const Slices slices =
      choose_slices(rows, rows, extent, 8192, multiprocessors, static_cast<int64_t>(scratch.bytes / sizeof(Acc)));
  const bool partial = slices.count > 1, whole_block = extent > kRowOfAWarp;
  launch(stream, row_grid(rows * slices.count, whole_block, multiprocessors), dim3(kThreads), 0, product_kernel<T, Out>,
         rows, a_rows, rows_per_x, extent, slices, whole_block, static_cast<const T*>(a), static_cast<const T*>(x),
         partial ? scratch.data : y, partial);
  if (partial) {
    finish_slices(stream, multiprocessors, rows, slices.count, Sum{}, Acc(0), scratch.data, static_cast<Out*>(y));
  }
}

/// cuBLAS counts in int; larger products take our kernels.
bool fits_cublas(const GemvSpec& s) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return s.m <= kMost && s.n <= kMost && s.m * s.n <= kMost;
}

constexpr int64_t kBatchOfACall = 65535;  // cuBLAS maps the batch to a grid dimension with this limit

/// Row-major A[m,n] is column-major [n,m] with leading dimension n: y = A x is its transposed product.
template <typename T, typename Gemv>
void cublas_gemv(cublasHandle_t handle, Gemv gemv, const GemvSpec& s, const void* a, const void* x, void* y) {
  const T one = 1, zero = 0;
  const bool plain = s.trans == Transpose::no;
  const int64_t x_size = plain ? s.n : s.m, y_size = plain ? s.m : s.n, a_size = s.m * s.n;
  for (int64_t done = 0; done < s.batch; done += kBatchOfACall) {
    const int64_t count = s.batch - done < kBatchOfACall ? s.batch - done : kBatchOfACall;
    DLB_CUBLAS(gemv(handle, plain ? CUBLAS_OP_T : CUBLAS_OP_N, static_cast<int>(s.n), static_cast<int>(s.m), &one,
                    static_cast<const T*>(a) + done * a_size, static_cast<int>(s.n), a_size,
                    static_cast<const T*>(x) + done * x_size, 1, x_size, &zero, static_cast<T*>(y) + done * y_size, 1,
                    y_size, static_cast<int>(count)));
  }
}

}  // namespace

void GpuOps::dot(const VectorSpec& spec, const void* x, const void* y, void* out) {
  require_valid(spec);
  if (spec.batch == 0) return;
  visit_float_type(storage_of(spec.precision), "dot", [&](auto tag) {
    using T = typename decltype(tag)::type;
    products<T, ComputeOf<T>>(stream_, hardware_.multiprocessors, scratch_, spec.batch, spec.batch, 1, spec.n, x, y,
                              out);
  });
}

void GpuOps::gemv(const GemvSpec& spec, const void* a, const void* x, void* y) {
  require_valid(spec);
  const bool plain = spec.trans == Transpose::no;
  if ((plain ? spec.m : spec.n) == 0 || spec.batch == 0) return;
  const int64_t inputs = plain ? spec.n : spec.m, outputs = plain ? spec.m : spec.n;
  const Precision precision = spec.precision == Precision::tf32 ? Precision::fp32 : spec.precision;
  if (spec.shared_matrix && spec.batch > 1 && inputs > 0 && supports(Op::gemm, precision).level != SupportLevel::no) {
    // Y[batch, outputs] = X[batch, inputs] op(A)^T: a matrix product, which reads A once for all vectors, as the twin
    // does. cuBLAS's batched gemv couldn't: its strides "must not be zero" (cublas<t>gemvStridedBatched).
    const GemmSpec product = {.precision = precision,
                              .trans_b = plain ? Transpose::yes : Transpose::no,
                              .m = spec.batch,
                              .n = outputs,
                              .k = inputs};
    return gemm(product, x, a, nullptr, y, nullptr);
  }
  const DType type = storage_of(spec.precision);
  if (inputs > 0 && fits_cublas(spec)) {
    if (type == DType::f32) {
      return cublas_gemv<float>(blas_.cublas(), blas_.functions().cublasSgemvStridedBatched, spec, a, x, y);
    }
    if (type == DType::f64) {
      return cublas_gemv<double>(blas_.cublas(), blas_.functions().cublasDgemvStridedBatched, spec, a, x, y);
    }
  }
  visit_float_type(type, "gemv", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (plain) {
      const int64_t a_rows = spec.shared_matrix ? spec.m : spec.m * spec.batch;
      products<T, T>(stream_, hardware_.multiprocessors, scratch_, spec.m * spec.batch, a_rows, spec.m, spec.n, a, x,
                     y);
    } else {
      reduce_columns<T>(stream_, hardware_.multiprocessors, scratch_, spec.batch, spec.m, spec.n,
                        spec.shared_matrix ? 0 : spec.m * spec.n, Sum{}, ComputeOf<T>(0), static_cast<const T*>(a),
                        static_cast<const T*>(x), static_cast<T*>(y));
    }
  });
}

}  // namespace dlbench::gpu
