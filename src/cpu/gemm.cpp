// The matrix product. Twin: src/gpu/gemm.cu.
//
// A unit of C is computed by one thread: panels of A and B are packed to fp32 (or read where they lie), multiplied tile
// by tile, and the epilogue is applied to a tile while it is in the first-level cache. bf16 and fp16 are widened on the
// way into the panels, summed in fp32 and rounded once.
#include <stdexcept>

#include "core/base/error.h"
#include "core/math/activation.h"
#include "cpu/ops.h"
#include "cpu/planted.h"

namespace dlbench::cpu {

namespace {

/// Packed rows of A that stay in the second-level cache while the panels of B pass (256 deep: 224 KiB).
constexpr int64_t kCacheRows = 224;

TileEpilogue tile_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return TileEpilogue::none;
    case Epilogue::bias:
      return TileEpilogue::bias;
    case Epilogue::bias_relu:
      return TileEpilogue::bias_relu;
    case Epilogue::bias_gelu:
      return TileEpilogue::bias_gelu;
  }
  return TileEpilogue::none;
}

/// Strides in which op(A)(row, p) and op(B)(p, column) lie in memory.
struct Layout {
  int64_t a_row, a_depth, b_depth, b_column;
  explicit Layout(const GemmSpec& s)
      : a_row(s.trans_a == Transpose::no ? s.lda : 1),
        a_depth(s.trans_a == Transpose::no ? 1 : s.lda),
        b_depth(s.trans_b == Transpose::no ? s.ldb : 1),
        b_column(s.trans_b == Transpose::no ? 1 : s.ldb) {}
};

int64_t element_bytes(const GemmSpec& s) {
  return static_cast<int64_t>(size_of(storage_of(s.precision)));
}

const char* a_of(const GemmCall& call, int64_t matrix, int64_t row) {
  return static_cast<const char*>(call.a) +
         (matrix * call.spec.stride_a + row * Layout(call.spec).a_row) * element_bytes(call.spec);
}
const char* b_of(const GemmCall& call, int64_t matrix, int64_t column) {
  return static_cast<const char*>(call.b) +
         (matrix * call.spec.stride_b + column * Layout(call.spec).b_column) * element_bytes(call.spec);
}
char* c_of(const GemmCall& call, int64_t matrix, int64_t row, int64_t column) {
  return static_cast<char*>(call.c) +
         (matrix * call.spec.stride_c + row * call.spec.ldc + column) * element_bytes(call.spec);
}
/// The values before activation lie like C.
char* pre_of(const GemmCall& call, int64_t matrix, int64_t row, int64_t column) {
  if (call.pre_activation == nullptr) return nullptr;
  return static_cast<char*>(call.pre_activation) +
         (matrix * call.spec.stride_c + row * call.spec.ldc + column) * element_bytes(call.spec);
}
const char* bias_of(const GemmCall& call, int64_t column) {
  return call.spec.epilogue == Epilogue::none ? nullptr
                                              : static_cast<const char*>(call.bias) + column * element_bytes(call.spec);
}

bool needs_finish(const GemmCall& call) {
  return call.spec.precision != Precision::fp32 || call.spec.epilogue != Epilogue::none ||
         call.pre_activation != nullptr;
}

void finish_fp64(const GemmCall& call, const GemmUnit& u) {
  const double* bias = reinterpret_cast<const double*>(bias_of(call, u.column));
  for (int64_t i = 0; i < u.rows; ++i) {
    double* c = reinterpret_cast<double*>(c_of(call, u.matrix, u.row + i, u.column));
    double* pre = reinterpret_cast<double*>(pre_of(call, u.matrix, u.row + i, u.column));
    for (int64_t j = 0; j < u.columns; ++j) {
      const double value = bias != nullptr ? c[j] + bias[j] : c[j];
      if (pre != nullptr) pre[j] = value;
      if (call.spec.epilogue == Epilogue::bias_relu)
        c[j] = ReluForward{}(value);
      else if (call.spec.epilogue == Epilogue::bias_gelu)
        c[j] = GeluForward{}(value);
      else
        c[j] = value;
    }
  }
}

}  // namespace

void GemmEngine::finish(const GemmCall& call, const GemmUnit& u, const float* sums, int64_t sums_stride) {
  kernels_.epilogue[element_index(storage_of(call.spec.precision))](
      sums, sums_stride, u.rows, u.columns, tile_epilogue(call.spec.epilogue), bias_of(call, u.column),
      pre_of(call, u.matrix, u.row, u.column), c_of(call, u.matrix, u.row, u.column), call.spec.ldc, call.spec.ldc);
}

void GemmEngine::unit_from_panels(const GemmCall& call, const GemmPlan& plan, const GemmUnit& u, Workspace& w) {
  const GemmSpec& s = call.spec;
  const Layout layout(s);
  const int type = element_index(storage_of(s.precision));
  const int64_t e = element_bytes(s), tile_rows = kernels_.tile_rows, tile_columns = kernels_.tile_columns;
  const bool in_place = s.precision == Precision::fp32, direct = plan.loops != GemmLoops::packed;
  float* sums = in_place ? reinterpret_cast<float*>(c_of(call, u.matrix, u.row, u.column)) : w.sums;
  const int64_t sums_stride = in_place ? s.ldc : u.columns;
  const char* a = a_of(call, u.matrix, u.row);
  const char* b = b_of(call, u.matrix, u.column);
  if (!in_place && s.beta != 0.0f) {
    kernels_.widen[type](c_of(call, u.matrix, u.row, u.column), s.ldc, u.rows, u.columns, sums, sums_stride);
  }
  // With few rows a tile of B is as wide as the registers allow; its ragged end is packed and padded.
  const int64_t step = plan.loops == GemmLoops::outer ? 2 : tile_rows;
  const int64_t width = direct && (u.rows <= tile_rows || step == 2)
                            ? kernels_.narrow_columns(static_cast<int>(std::min(step, u.rows)))
                            : tile_columns;
  const int64_t wide_end = direct && width != tile_columns ? u.columns / width * width : 0;
  const int64_t ragged = direct ? wide_end + (u.columns - wide_end) / tile_columns * tile_columns : 0;

  for (int64_t p = 0; p == 0 || p < s.k; p += plan.depth) {
    const int64_t depth = std::min(plan.depth, s.k - p);
    const bool last = p + depth >= s.k;
    kernels_.pack_a[type](a + p * layout.a_depth * e, layout.a_row, layout.a_depth, u.rows, depth, w.a);
    const char* b_rows = b + p * layout.b_depth * e;
    if (!direct) {
      kernels_.pack_b[type](b_rows, layout.b_depth, layout.b_column, depth, u.columns, w.b);
    } else if (ragged < u.columns) {
      kernels_.pack_b[type](b_rows + ragged * e, layout.b_depth, layout.b_column, depth, u.columns - ragged, w.b);
    }
    const auto compute = [&](int64_t i, int64_t j, int64_t columns, bool wide) {
      TileArgs t;
      t.rows = static_cast<int>(std::min(step, u.rows - i));
      t.columns = columns;
      t.depth = depth;
      t.a = w.a + i / tile_rows * tile_rows * depth + i % tile_rows;
      t.a_stride = tile_rows;
      const bool lies = direct && j < ragged;
      t.b = lies ? reinterpret_cast<const float*>(b_rows) + j : w.b + (direct ? 0 : j * depth);
      t.b_stride = lies ? s.ldb : tile_columns;
      t.c = sums + i * sums_stride + j;
      t.c_stride = sums_stride;
      t.alpha = s.alpha;
      t.beta = p == 0 ? s.beta : 1.0f;
      if (wide)
        kernels_.narrow_tile(t);
      else
        kernels_.tile(t);
      if (last && needs_finish(call)) {
        finish(call, {u.matrix, u.row + i, t.rows, u.column + j, columns}, t.c, sums_stride);
      }
    };
    const auto row_of_tiles = [&](int64_t i) {
      // A single row at the end has a wider tile of its own, which needn't fit: it goes in tiles of the common width.
      const int64_t end = u.rows - i < step && u.rows > 1 ? 0 : wide_end;
      for (int64_t j = 0; j < u.columns;) {
        const bool wide = j < end;
        const int64_t limit = j < wide_end ? wide_end : u.columns;
        const int64_t columns = wide ? width : std::min(tile_columns, limit - j);
        compute(i, j, columns, wide);
        j += columns;
      }
    };
    if (plan.loops == GemmLoops::outer) {
      for (int64_t i = 0; i < u.rows; i += step) row_of_tiles(i);
      continue;
    }
    for (int64_t cache_row = 0; cache_row < u.rows; cache_row += kCacheRows) {
      const int64_t cache_end = std::min(u.rows, cache_row + kCacheRows);
      for (int64_t j = 0; j < u.columns;) {
        const bool wide = j < wide_end;
        const int64_t columns = wide ? width : std::min(tile_columns, u.columns - j);
        for (int64_t i = cache_row; i < cache_end; i += tile_rows) compute(i, j, columns, wide);
        j += columns;
      }
    }
  }
}

void GemmEngine::unit_from_dots(const GemmCall& call, const GemmUnit& u, Workspace& w) {
  const GemmSpec& s = call.spec;
  const int type = element_index(storage_of(s.precision));
  const bool in_place = s.precision == Precision::fp32;
  float* sums = in_place ? reinterpret_cast<float*>(c_of(call, u.matrix, u.row, u.column)) : w.sums;
  const int64_t sums_stride = in_place ? s.ldc : u.columns;
  if (!in_place && s.beta != 0.0f) {
    kernels_.widen[type](c_of(call, u.matrix, u.row, u.column), s.ldc, u.rows, u.columns, sums, sums_stride);
  }
  // A few hundred columns at a time, so that their sums are still in the first-level cache for the epilogue.
  constexpr int64_t kColumns = 240;
  for (int64_t j = 0; j < u.columns; j += kColumns) {
    const int64_t columns = std::min(kColumns, u.columns - j);
    kernels_.dot_rows[type](a_of(call, u.matrix, u.row), s.lda, b_of(call, u.matrix, u.column + j), s.ldb, u.rows,
                            columns, s.k, sums + j, sums_stride, s.alpha, s.beta);
    if (needs_finish(call)) finish(call, {u.matrix, u.row, u.rows, u.column + j, columns}, sums + j, sums_stride);
  }
}

void GemmEngine::unit_from_blas(const GemmCall& call, const GemmUnit& u) {
  const GemmSpec& s = call.spec;
  const bool fp64 = s.precision == Precision::fp64;
  blas_.gemm(fp64, s.trans_a, s.trans_b, u.rows, u.columns, s.k, static_cast<double>(s.alpha),
             a_of(call, u.matrix, u.row), s.lda, b_of(call, u.matrix, u.column), s.ldb, static_cast<double>(s.beta),
             c_of(call, u.matrix, u.row, u.column), s.ldc);
}

void GemmEngine::execute_unit(const GemmCall& call, const GemmPlan& plan, const GemmUnit& unit, Workspace& workspace) {
  switch (plan.loops) {
    case GemmLoops::packed:
    case GemmLoops::direct:
    case GemmLoops::outer:
      return unit_from_panels(call, plan, unit, workspace);
    case GemmLoops::dot:
      return unit_from_dots(call, unit, workspace);
    case GemmLoops::blas:
    case GemmLoops::blas_threads:
      unit_from_blas(call, unit);
      if (call.spec.precision == Precision::fp64) return finish_fp64(call, unit);
      if (needs_finish(call)) {
        finish(call, unit, reinterpret_cast<const float*>(c_of(call, unit.matrix, unit.row, unit.column)),
               call.spec.ldc);
      }
      return;
  }
}

void GemmEngine::execute(const GemmCall& call, const GemmPlan& plan) {
  const int64_t units = gemm_unit_count(call.spec, plan);
  if (plan.loops == GemmLoops::blas_threads) {
    const BlasThreads threads(blas_, team_);
    for (int64_t u = 0; u < units; ++u) execute_unit(call, plan, gemm_unit(call.spec, plan, u), workspaces_[0]);
    return;
  }
  team_.parallel_tasks(units, [&](int64_t unit, int part) {
    execute_unit(call, plan, gemm_unit(call.spec, plan, unit), workspaces_[static_cast<size_t>(part)]);
  });
}

void CpuOps::gemm(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c, void* pre_activation) {
  DLB_PLANTED(gemm);
  require_support(supports(Op::gemm, spec.precision), Op::gemm, spec.precision);
  if ((spec.epilogue != Epilogue::none) != (bias != nullptr)) {
    throw std::invalid_argument("gemm: a bias vector is needed with an epilogue, and only then");
  }
  gemm_->run(spec, a, b, bias, c, pre_activation);
}

std::string CpuOps::describe_gemm(const GemmSpec& spec) const {
  const GemmPlan* plan = gemm_->find_plan(spec);
  return plan == nullptr ? "" : to_string(*plan);
}

void CpuOps::set_gemm_plan(const GemmSpec& spec, const GemmPlan& plan) {
  gemm_->set_plan(spec, plan);
}

}  // namespace dlbench::cpu
