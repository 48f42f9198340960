// Batch normalization in training mode. Twin: src/gpu/batch_norm.cu.
//
// Moments: rows in pieces whose number follows from the shape; a piece stays in the cache while its mean and then the
// squares about that mean are taken, and the pieces are combined in double (Chan, Golub & LeVeque 1983, "Algorithms for
// computing the sample variance"). An image in nchw is transposed in thought only: a plane of one channel is a matrix
// whose columns are added at the end.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "core/base/error.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {

constexpr int64_t kPieceRows = 128;

/// x as matrices: nhwc one of [N*H*W, C]; nchw N*C planes of H*W.
struct Shape {
  bool planes;
  int64_t n, c, plane, values;  ///< values: per channel
  int64_t e, wide;
  int type, wide_type;
  explicit Shape(const BatchNormSpec& s)
      : planes(s.layout == ImageLayout::nchw),
        n(s.n),
        c(s.c),
        plane(s.h * s.w),
        values(s.n * s.h * s.w),
        e(static_cast<int64_t>(size_of(storage_of(s.precision)))),
        wide(static_cast<int64_t>(size_of(accumulate_of(s.precision)))),
        type(element_index(storage_of(s.precision))),
        wide_type(element_index(accumulate_of(s.precision))) {}
};

double wide_at(const Shape& s, const void* p, int64_t i) {
  return s.wide_type == kF64 ? static_cast<const double*>(p)[i] : static_cast<double>(static_cast<const float*>(p)[i]);
}
void set_wide(const Shape& s, void* p, int64_t i, double value) {
  if (s.wide_type == kF64)
    static_cast<double*>(p)[i] = value;
  else
    static_cast<float*>(p)[i] = static_cast<float>(value);
}
double storage_at(const IsaKernels& isa, const Shape& s, const void* p, int64_t i) {
  double value = 0;
  isa.convert[s.type][kF64](static_cast<const char*>(p) + i * s.e, &value, 1);
  return value;
}
void set_storage(const IsaKernels& isa, const Shape& s, void* p, int64_t i, double value) {
  isa.convert[kF64][s.type](&value, static_cast<char*>(p) + i * s.e, 1);
}

template <typename P>
P* at(P* p, int64_t bytes) {
  using Byte = std::conditional_t<std::is_const_v<P>, const char, char>;
  return p == nullptr ? nullptr : static_cast<P*>(static_cast<Byte*>(p) + bytes);
}

struct Moments {
  double mean = 0, squares = 0, count = 0;
  void add(double other_mean, double other_squares, double other_count) {
    const double total = count + other_count, delta = other_mean - mean;
    if (other_count == 0) return;
    mean += delta * other_count / total;
    squares += other_squares + delta * delta * count * other_count / total;
    count = total;
  }
};

/// A plane of one channel is seen as rows of so many columns; what is left over is one row of its own.
constexpr int64_t kPlaneColumns = 64;

/// Calls body(row, rows, column, columns, piece) over pieces of a [values, c] matrix.
struct Pieces {
  int64_t rows, columns, row_pieces, column_pieces;
  Pieces(int64_t values, int64_t c)
      : rows(kPieceRows),
        columns(kMaxImageColumns),
        row_pieces(std::max<int64_t>(1, (values + kPieceRows - 1) / kPieceRows)),
        column_pieces((c + kMaxImageColumns - 1) / kMaxImageColumns) {
    // Few rows: narrower pieces, so that there are enough of them.
    while (row_pieces * column_pieces < 16 && columns > 64) columns /= 2, column_pieces = (c + columns - 1) / columns;
  }
  int64_t count() const { return row_pieces * column_pieces; }
};

}  // namespace

void CpuOps::batch_norm_forward(const BatchNormSpec& spec, const void* x, const void* gamma, const void* beta,
                                const void* residual, void* y, void* running_mean, void* running_variance,
                                void* saved_mean, void* saved_rstd) {
  require_valid(spec);
  require_support(supports(Op::batch_norm_forward, spec.precision), Op::batch_norm_forward, spec.precision);
  if (spec.c > 0 && spec.residual != (residual != nullptr))
    throw std::invalid_argument("batch_norm: a residual is needed where spec.residual says so, and only there");
  const Shape s(spec);
  if (s.c == 0) return;
  const Pieces pieces(s.values, s.c);
  // [pieces][mean, squares][c] of the wide type, then the coefficients scale and shift.
  const int64_t parts = s.planes ? 0 : pieces.row_pieces;
  char* memory = static_cast<char*>(scratch((2 * parts + 2) * s.c * s.wide));
  char* scale = memory + 2 * parts * s.c * s.wide;
  char* shift = scale + s.c * s.wide;
  if (!s.planes) {
    team_.parallel_for(pieces.count(), 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t piece = task / pieces.column_pieces, column = task % pieces.column_pieces * pieces.columns;
        const int64_t row = piece * pieces.rows;
        char* mean = memory + (2 * piece * s.c + column) * s.wide;
        images_.moments[s.type](at(x, (row * s.c + column) * s.e), std::min(pieces.rows, s.values - row), s.c,
                                std::min(pieces.columns, s.c - column), mean, mean + s.c * s.wide);
      }
    });
  }
  team_.parallel_for(s.c, s.planes ? 1 : grain(parts * 2 * s.wide * 8), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      Moments total;
      for (int64_t p = 0; p < parts; ++p) {
        total.add(wide_at(s, memory, 2 * p * s.c + c), wide_at(s, memory, (2 * p + 1) * s.c + c),
                  static_cast<double>(std::min(pieces.rows, s.values - p * pieces.rows)));
      }
      for (int64_t n = 0; s.planes && n < s.n; ++n) {
        alignas(64) char mean[kPlaneColumns * 8], squares[kPlaneColumns * 8];
        const void* from = at(x, (n * s.c + c) * s.plane * s.e);
        const int64_t rows = s.plane / kPlaneColumns, left = s.plane % kPlaneColumns;
        if (rows > 0) images_.moments[s.type](from, rows, kPlaneColumns, kPlaneColumns, mean, squares);
        for (int64_t j = 0; rows > 0 && j < kPlaneColumns; ++j)
          total.add(wide_at(s, mean, j), wide_at(s, squares, j), static_cast<double>(rows));
        for (int64_t j = s.plane - left; j < s.plane; ++j) total.add(storage_at(isa_, s, from, j), 0, 1);
      }
      const double count = static_cast<double>(s.values), variance = total.squares / count;
      const double rstd = 1.0 / std::sqrt(variance + static_cast<double>(spec.epsilon));
      const double momentum = static_cast<double>(spec.momentum);
      set_wide(s, saved_mean, c, total.mean);
      set_wide(s, saved_rstd, c, rstd);
      set_wide(s, running_mean, c, (1 - momentum) * wide_at(s, running_mean, c) + momentum * total.mean);
      set_wide(s, running_variance, c,
               (1 - momentum) * wide_at(s, running_variance, c) + momentum * total.squares / (count - 1));
      set_wide(s, scale, c, storage_at(isa_, s, gamma, c) * rstd);
      set_wide(s, shift, c, storage_at(isa_, s, beta, c));
    }
  });
  const int64_t row_bytes = s.c * s.e, operands = residual != nullptr ? 3 : 2;
  NormalizeArgs all{.x = x, .residual = residual, .y = y, .relu = spec.activation == Activation::relu};
  if (!s.planes) {
    team_.parallel_for(s.values, grain(operands * row_bytes), 1, [&](int64_t begin, int64_t end) {
      NormalizeArgs t = all;
      t.x = at(x, begin * row_bytes), t.residual = at(residual, begin * row_bytes), t.y = at(y, begin * row_bytes);
      t.rows = end - begin, t.row_length = t.columns = s.c;
      t.mean = saved_mean, t.scale = scale, t.shift = shift;
      images_.normalize[s.type](t);
    });
    return;
  }
  team_.parallel_for(s.n * s.c, grain(operands * s.plane * s.e), 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      alignas(64) char coefficient[3][kPlaneColumns * 8];
      const int64_t c = plane % s.c;
      for (int64_t j = 0; j < kPlaneColumns; ++j) {
        set_wide(s, coefficient[0], j, wide_at(s, saved_mean, c));
        set_wide(s, coefficient[1], j, wide_at(s, scale, c));
        set_wide(s, coefficient[2], j, wide_at(s, shift, c));
      }
      NormalizeArgs t = all;
      t.mean = coefficient[0], t.scale = coefficient[1], t.shift = coefficient[2];
      const int64_t rows = s.plane / kPlaneColumns, left = s.plane % kPlaneColumns;
      const auto run = [&](int64_t first, int64_t count, int64_t columns) {
        const int64_t bytes = (plane * s.plane + first) * s.e;
        t.x = at(x, bytes), t.residual = at(residual, bytes), t.y = at(y, bytes);
        t.rows = count, t.row_length = kPlaneColumns, t.columns = columns;
        images_.normalize[s.type](t);
      };
      run(0, rows, kPlaneColumns);
      run(rows * kPlaneColumns, 1, left);
    }
  });
}

void CpuOps::batch_norm_backward(const BatchNormSpec& spec, const void* dy, const void* x, const void* y,
                                 const void* gamma, const void* saved_mean, const void* saved_rstd, void* dx,
                                 void* dresidual, void* dgamma, void* dbeta) {
  require_valid(spec);
  require_support(supports(Op::batch_norm_backward, spec.precision), Op::batch_norm_backward, spec.precision);
  if (spec.c > 0 && spec.residual != (dresidual != nullptr))
    throw std::invalid_argument("batch_norm: dresidual is needed where spec.residual says so, and only there");
  if (spec.c > 0 && spec.activation == Activation::relu && y == nullptr)
    throw std::invalid_argument("batch_norm: y is needed where spec.activation is relu");
  const Shape s(spec);
  if (s.c == 0) return;
  if (spec.activation == Activation::none) y = nullptr;
  const Pieces pieces(s.values, s.c);
  const int64_t parts = s.planes ? 0 : pieces.row_pieces;
  // [pieces][sum dy, sum dy*(x-mean)][c] of the wide type, then three coefficients.
  char* memory = static_cast<char*>(scratch((2 * parts + 3) * s.c * s.wide));
  char* dy_factor = memory + 2 * parts * s.c * s.wide;
  char* x_factor = dy_factor + s.c * s.wide;
  char* shift = x_factor + s.c * s.wide;
  NormalizeBackwardArgs all{.dy = dy, .x = x, .y = y, .masked = dresidual, .dx = dx};
  const auto placed = [&](int64_t bytes) {
    NormalizeBackwardArgs t = all;
    t.dy = at(t.dy, bytes), t.x = at(t.x, bytes), t.y = at(t.y, bytes), t.masked = at(t.masked, bytes);
    t.dx = at(t.dx, bytes);
    return t;
  };
  if (!s.planes) {
    team_.parallel_for(pieces.count(), 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const int64_t piece = task / pieces.column_pieces, column = task % pieces.column_pieces * pieces.columns;
        const int64_t row = piece * pieces.rows;
        NormalizeBackwardArgs t = placed((row * s.c + column) * s.e);
        t.rows = std::min(pieces.rows, s.values - row), t.row_length = s.c;
        t.columns = std::min(pieces.columns, s.c - column);
        t.mean = at(saved_mean, column * s.wide);
        char* sums = memory + (2 * piece * s.c + column) * s.wide;
        images_.backward_sums[s.type](t, sums, sums + s.c * s.wide);
      }
    });
  }
  const auto broadcast = [&](char* to, const void* from, int64_t c) {
    for (int64_t j = 0; j < kPlaneColumns; ++j) set_wide(s, to, j, wide_at(s, from, c));
  };
  team_.parallel_for(s.c, s.planes ? 1 : grain(parts * 2 * s.wide * 8), 1, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      double sum = 0, product = 0;
      for (int64_t p = 0; p < parts; ++p) {
        sum += wide_at(s, memory, 2 * p * s.c + c);
        product += wide_at(s, memory, (2 * p + 1) * s.c + c);
      }
      for (int64_t n = 0; s.planes && n < s.n; ++n) {
        alignas(64) char mean[kPlaneColumns * 8], sums[kPlaneColumns * 8], products[kPlaneColumns * 8];
        broadcast(mean, saved_mean, c);
        const int64_t rows = s.plane / kPlaneColumns, left = s.plane % kPlaneColumns;
        const auto run = [&](int64_t first, int64_t count, int64_t columns) {
          NormalizeBackwardArgs t = placed(((n * s.c + c) * s.plane + first) * s.e);
          t.rows = count, t.row_length = kPlaneColumns, t.columns = columns, t.mean = mean;
          images_.backward_sums[s.type](t, sums, products);
          for (int64_t j = 0; j < columns; ++j) sum += wide_at(s, sums, j), product += wide_at(s, products, j);
        };
        run(0, rows, kPlaneColumns);
        run(rows * kPlaneColumns, 1, left);
      }
      const double rstd = wide_at(s, saved_rstd, c), g = storage_at(isa_, s, gamma, c);
      const double count = static_cast<double>(s.values);
      set_storage(isa_, s, dbeta, c, sum);
      set_storage(isa_, s, dgamma, c, product * rstd);
      set_wide(s, dy_factor, c, g * rstd);
      set_wide(s, x_factor, c, -g * rstd * rstd * rstd * product / count);
      set_wide(s, shift, c, -g * rstd * sum / count);
    }
  });
  // What lies behind the activation has been written where there is a residual.
  if (dresidual != nullptr) all.dy = dresidual, all.y = nullptr;
  all.masked = nullptr;
  const int64_t row_bytes = s.c * s.e;
  if (!s.planes) {
    team_.parallel_for(s.values, grain(4 * row_bytes), 1, [&](int64_t begin, int64_t end) {
      NormalizeBackwardArgs t = placed(begin * row_bytes);
      t.rows = end - begin, t.row_length = t.columns = s.c;
      t.mean = saved_mean, t.dy_factor = dy_factor, t.x_factor = x_factor, t.shift = shift;
      images_.backward_gradient[s.type](t);
    });
    return;
  }
  team_.parallel_for(s.n * s.c, grain(4 * s.plane * s.e), 1, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      alignas(64) char coefficient[4][kPlaneColumns * 8];
      const int64_t c = plane % s.c;
      broadcast(coefficient[0], saved_mean, c), broadcast(coefficient[1], dy_factor, c);
      broadcast(coefficient[2], x_factor, c), broadcast(coefficient[3], shift, c);
      const auto run = [&](int64_t first, int64_t count, int64_t columns) {
        NormalizeBackwardArgs t = placed((plane * s.plane + first) * s.e);
        t.rows = count, t.row_length = kPlaneColumns, t.columns = columns;
        t.mean = coefficient[0], t.dy_factor = coefficient[1], t.x_factor = coefficient[2], t.shift = coefficient[3];
        images_.backward_gradient[s.type](t);
      };
      const int64_t rows = s.plane / kPlaneColumns, left = s.plane % kPlaneColumns;
      run(0, rows, kPlaneColumns);
      run(rows * kPlaneColumns, 1, left);
    }
  });
}

}  // namespace dlbench::cpu
