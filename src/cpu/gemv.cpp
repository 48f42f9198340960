// Matrix times vector, and dot products. Twin: src/gpu/gemv.cu.
//
// The order of additions depends on sizes only (see reduce.cpp).
#include <array>
#include <stdexcept>

#include "core/base/error.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {
constexpr int64_t kPieceElements = 8192;
constexpr int64_t kMaxPieces = 256;
}  // namespace

void CpuOps::dot(const VectorSpec& s, const void* x, const void* y, void* out) {
  if (s.n < 0 || s.batch < 0) throw std::invalid_argument("dot: n and batch must not be negative");
  const VectorKernels& k = kernels(Op::dot, s.precision);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const char *left = static_cast<const char*>(x), *right = static_cast<const char*>(y);
  const bool wide = accumulate_of(s.precision) == DType::f64;
  const auto store = [&](int64_t b, double value) {
    if (wide)
      static_cast<double*>(out)[b] = value;
    else
      static_cast<float*>(out)[b] = static_cast<float>(value);
  };
  const int64_t piece = std::max<int64_t>(kPieceElements, ((s.n + kMaxPieces - 1) / kMaxPieces + 63) / 64 * 64);
  const int64_t pieces = std::max<int64_t>(1, (s.n + piece - 1) / piece);
  std::array<double, kMaxPieces> part;
  const auto piece_of = [&](int64_t b, int64_t p) {
    const int64_t at = (b * s.n + p * piece) * e;
    return k.dot(left + at, right + at, std::min(piece, s.n - p * piece));
  };
  if (s.batch >= 2 * team_.threads() || pieces == 1) {
    team_.parallel_for(s.batch, grain(2 * e * s.n), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        double total = 0;
        for (int64_t p = 0; p < pieces; ++p) total += piece_of(b, p);
        store(b, total);
      }
    });
    return;
  }
  for (int64_t b = 0; b < s.batch; ++b) {
    team_.parallel_for(pieces, 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) part[static_cast<size_t>(p)] = piece_of(b, p);
    });
    double total = 0;
    for (int64_t p = 0; p < pieces; ++p) total += part[static_cast<size_t>(p)];
    store(b, total);
  }
}

void CpuOps::gemv(const GemvSpec& s, const void* a, const void* x, void* y) {
  if (s.m < 0 || s.n < 0 || s.batch < 0) throw std::invalid_argument("gemv: m, n and batch must not be negative");
  const VectorKernels& k = kernels(Op::gemv, s.precision);
  const int64_t inputs = s.trans == Transpose::no ? s.n : s.m, outputs = s.trans == Transpose::no ? s.m : s.n;
  if (s.shared_matrix && s.batch > 1 && s.precision != Precision::fp64) {
    // Y[batch, outputs] = X[batch, inputs] op(A)^T: a matrix product, which reads A once for all vectors.
    GemmSpec product{.precision = s.precision,
                     .trans_b = s.trans == Transpose::no ? Transpose::yes : Transpose::no,
                     .m = s.batch,
                     .n = outputs,
                     .k = inputs};
    return gemm(product, x, a, nullptr, y, nullptr);
  }
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const int64_t wide = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  const auto matrix = [&](int64_t b) {
    return static_cast<const char*>(a) + (s.shared_matrix ? 0 : b * s.m * s.n * e);
  };
  const auto input = [&](int64_t b) { return static_cast<const char*>(x) + b * inputs * e; };
  const auto output = [&](int64_t b) { return static_cast<char*>(y) + b * outputs * e; };

  if (s.trans == Transpose::no) {
    // All rows of all matrices, one after another.
    team_.parallel_for(s.batch * s.m, grain(s.n * e), 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end;) {
        const int64_t b = r / s.m, first = r % s.m, count = std::min(s.m - first, end - r);
        k.matrix_vector(matrix(b) + first * s.n * e, input(b), output(b) + first * e, count, s.n);
        r += count;
      }
    });
    return;
  }
  // Blocks of columns times pieces of rows; both counts follow from the shape.
  constexpr int64_t kColumns = 512, kRowsPerPiece = 256;
  if (s.batch == 0 || s.n == 0) return;
  const int64_t blocks = (s.n + kColumns - 1) / kColumns;
  const int64_t rows_per_piece = std::max<int64_t>(kRowsPerPiece, (s.m + 63) / 64);
  const int64_t pieces = std::max<int64_t>(1, (s.m + rows_per_piece - 1) / rows_per_piece);
  const int64_t columns = s.batch * s.n;
  char* parts = static_cast<char*>(scratch(pieces * columns * wide));
  team_.parallel_for(blocks * pieces * s.batch, grain(kColumns * std::min(rows_per_piece, s.m) * e), 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t task = begin; task < end; ++task) {
                         const int64_t block = task % blocks, p = task / blocks % pieces, b = task / blocks / pieces;
                         const int64_t first = block * kColumns, width = std::min(kColumns, s.n - first);
                         const int64_t row = p * rows_per_piece, rows = std::min(rows_per_piece, s.m - row);
                         k.vector_matrix(input(b) + row * e, matrix(b) + (row * s.n + first) * e, rows, s.n, width,
                                         parts + (p * columns + b * s.n + first) * wide);
                       }
                     });
  if (pieces > 1) isa_.of[element_index(accumulate_of(s.precision))].column_sum(parts, pieces, columns, columns, parts);
  k.round(parts, y, columns);
}

}  // namespace dlbench::cpu
