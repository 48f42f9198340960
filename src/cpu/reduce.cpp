// Sums and maxima along one extent. Twin: src/gpu/reduce.cu.
//
// The order of additions depends on sizes only: work is cut in pieces whose number follows from the shape, each piece
// is summed by one thread, and the pieces are added in their order.
#include <array>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/math/elementwise.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {

/// Pieces of a long vector: whole numbers of this many elements, at most kMaxPieces of them.
constexpr int64_t kPieceElements = 8192;
constexpr int64_t kMaxPieces = 256;

double combine(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::sum:
      return a + b;
    case Reduction::max:
      return MaxOfTwo{}(a, b);
  }
  return a;
}

void store(const VectorKernels& k, Precision precision, double value, char* to) {
  const float narrow = static_cast<float>(value);
  k.round(accumulate_of(precision) == DType::f64 ? static_cast<const void*>(&value) : &narrow, to, 1);
}

}  // namespace

void CpuOps::reduce(const ReduceSpec& s, const void* x, void* y) {
  if (s.outer < 0 || s.extent < 0 || s.inner < 0) throw std::invalid_argument("reduce: extents must not be negative");
  const VectorKernels& k = kernels(Op::reduce, s.precision);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const int64_t wide = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(y);
  const auto row = s.reduction == Reduction::sum ? k.sum : k.max;
  const auto columns = s.reduction == Reduction::sum ? k.column_sum : k.column_max;

  if (s.inner == 1) {
    const int64_t piece = std::max<int64_t>(kPieceElements, ((s.extent + kMaxPieces - 1) / kMaxPieces + 63) / 64 * 64);
    const int64_t pieces = std::max<int64_t>(1, (s.extent + piece - 1) / piece);
    if (s.outer >= 2 * team_.threads() || pieces == 1) {
      team_.parallel_for(s.outer, grain(s.extent * e), 1, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          double total = row(from + o * s.extent * e, std::min(piece, s.extent));
          for (int64_t at = piece; at < s.extent; at += piece) {
            total = combine(s.reduction, total, row(from + (o * s.extent + at) * e, std::min(piece, s.extent - at)));
          }
          store(k, s.precision, total, to + o * e);
        }
      });
      return;
    }
    for (int64_t o = 0; o < s.outer; ++o) {
      std::array<double, kMaxPieces> part;
      team_.parallel_for(pieces, 1, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          part[static_cast<size_t>(p)] =
              row(from + (o * s.extent + p * piece) * e, std::min(piece, s.extent - p * piece));
        }
      });
      double total = part[0];
      for (int64_t p = 1; p < pieces; ++p) total = combine(s.reduction, total, part[static_cast<size_t>(p)]);
      store(k, s.precision, total, to + o * e);
    }
    return;
  }

  // Blocks of columns, and pieces of rows when the columns alone are too few: both counts follow from the shape.
  constexpr int64_t kColumns = 512, kRowsPerPiece = 256;
  const int64_t blocks = (s.inner + kColumns - 1) / kColumns;
  const int64_t rows_per_piece = std::max<int64_t>(kRowsPerPiece, (s.extent + 63) / 64);
  const int64_t pieces = std::max<int64_t>(1, (s.extent + rows_per_piece - 1) / rows_per_piece);
  const int64_t total_columns = s.outer * s.inner;
  if (total_columns == 0) return;
  char* parts = static_cast<char*>(scratch(pieces * total_columns * wide));
  const auto cell = [&](int64_t task) {
    const int64_t block = task % blocks, p = task / blocks % pieces, o = task / blocks / pieces;
    const int64_t first = block * kColumns, width = std::min(kColumns, s.inner - first);
    const int64_t row_begin = p * rows_per_piece, row_end = std::min(s.extent, row_begin + rows_per_piece);
    columns(from + ((o * s.extent + row_begin) * s.inner + first) * e, row_end - row_begin, s.inner, width,
            parts + (p * total_columns + o * s.inner + first) * wide);
  };
  const int64_t tasks = blocks * pieces * s.outer;
  team_.parallel_for(tasks, grain(kColumns * std::min(rows_per_piece, s.extent) * e), 1,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t task = begin; task < end; ++task) cell(task);
                     });
  if (pieces > 1) columns_of_parts(s, parts, pieces, total_columns);
  k.round(parts, to, total_columns);
}

void CpuOps::columns_of_parts(const ReduceSpec& s, char* parts, int64_t pieces, int64_t columns) {
  // The parts are a [pieces, columns] matrix of the accumulate type; its reduction may land on its own first row, which
  // is read before it is written.
  const DType type = accumulate_of(s.precision);
  const VectorKernels& k = isa_.of[element_index(type)];
  (s.reduction == Reduction::sum ? k.column_sum : k.column_max)(parts, pieces, columns, columns, parts);
}

}  // namespace dlbench::cpu
