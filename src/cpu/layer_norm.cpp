// Layer normalization. Twin: src/gpu/layer_norm.cu.
//
// The sums over rows of the backward pass are taken in pieces of rows whose number follows from the shape, and the
// pieces are added in their order.
#include <algorithm>
#include <cstddef>

#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {
constexpr int64_t kRowsPerPiece = 16, kMaxPieces = 128;

const char* at(const void* p, int64_t byte) {
  return p == nullptr ? nullptr : static_cast<const char*>(p) + byte;
}
char* at(void* p, int64_t byte) {
  return p == nullptr ? nullptr : static_cast<char*>(p) + byte;
}
}  // namespace

void CpuOps::layer_norm_forward(const LayerNormSpec& s, const void* x, const void* residual, const void* gamma,
                                const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::layer_norm_forward, s.precision);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = s.columns * e;
  const int64_t wide = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  // The sum goes the way of y: it must not be x then, and lie at cache lines as well.
  const bool stream =
      s.residual ? sum != x && streams_rows(4 * s.rows * row, y, row) && streams_rows(4 * s.rows * row, sum, row)
                 : streams_rows(2 * s.rows * row, y, row);
  team_.parallel_for(s.rows, grain(4 * row), 1, [&](int64_t begin, int64_t end) {
    k.layer_norm_forward({.x = at(x, begin * row),
                          .residual = s.residual ? at(residual, begin * row) : nullptr,
                          .gamma = gamma,
                          .beta = beta,
                          .sum = s.residual ? at(sum, begin * row) : nullptr,
                          .y = at(y, begin * row),
                          .mean = at(saved_mean, begin * wide),
                          .rstd = at(saved_rstd, begin * wide),
                          .rows = end - begin,
                          .columns = s.columns,
                          .epsilon = s.epsilon,
                          .stream = stream});
  });
}

void CpuOps::layer_norm_backward(const LayerNormSpec& s, const void* dy, const void* x, const void* gamma,
                                 const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx,
                                 void* dgamma, void* dbeta) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::layer_norm_backward, s.precision);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = s.columns * e;
  const DType accumulate = accumulate_of(s.precision);
  const int64_t wide = static_cast<int64_t>(size_of(accumulate));
  const int64_t rows_per_piece = std::max(kRowsPerPiece, (s.rows + kMaxPieces - 1) / kMaxPieces);
  const int64_t pieces = (s.rows + rows_per_piece - 1) / rows_per_piece, row_of_parts = 2 * s.columns;
  const bool stream = dx_add != dx && streams_rows((dx_add == nullptr ? 3 : 4) * s.rows * row, dx, row);
  // [piece][dgamma, dbeta][columns]
  char* parts = static_cast<char*>(scratch(pieces * row_of_parts * wide));
  team_.parallel_for(pieces, grain(6 * row * rows_per_piece), 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * rows_per_piece;
      char* part = parts + piece * row_of_parts * wide;
      k.layer_norm_backward({.dy = at(dy, first * row),
                             .x = at(x, first * row),
                             .gamma = gamma,
                             .mean = at(saved_mean, first * wide),
                             .rstd = at(saved_rstd, first * wide),
                             .dx_add = at(dx_add, first * row),
                             .dx = at(dx, first * row),
                             .dgamma = part,
                             .dbeta = part + s.columns * wide,
                             .rows = std::min(rows_per_piece, s.rows - first),
                             .columns = s.columns,
                             .stream = stream});
    }
  });
  const VectorKernels &sums = isa_.of[element_index(accumulate)],
                      &store = isa_.of[element_index(storage_of(s.precision))];
  for (int which = 0; which < 2; ++which) {
    void* to = which == 0 ? dgamma : dbeta;
    team_.parallel_for(s.columns, grain(pieces * wide), 64, [&](int64_t begin, int64_t end) {
      constexpr int64_t kColumns = 256;
      alignas(64) std::byte total[kColumns * static_cast<int64_t>(sizeof(double))];
      for (int64_t column = begin; column < end; column += kColumns) {
        const int64_t width = std::min(kColumns, end - column);
        sums.column_sum(parts + (which * s.columns + column) * wide, pieces, row_of_parts, width, total);
        store.round(total, at(to, column * e), width);
      }
    });
  }
}

}  // namespace dlbench::cpu
