// How a matrix product is cut and which loops do it: chosen per shape, measured once. Only this side needs it: cuBLASLt
// has heuristics of its own.
//
// Why measured: which of packing, streaming B as it lies, dot products of rows or OpenBLAS is fastest depends on m, n,
// k, the transposes, the caches and the number of threads (bench/micro/cpu_gemm shows the choice of each shape).
// Promises: the cut covers every element of C exactly once; a spec is measured on its first call only, for at most
// kTuningSeconds, with C written to memory of the engine's own; a product too large to try out takes the packed loops.
// What one thread computes for an element of C doesn't depend on timing; which loops were chosen may.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/device/ops.h"
#include "cpu/blas.h"
#include "cpu/gemm_kernels.h"
#include "cpu/parallel.h"

namespace dlbench::cpu {

enum class GemmLoops : uint8_t {
  packed,        ///< A and B packed in panels
  direct,        ///< A packed, rows of B read where they lie: fp32, B not transposed
  outer,         ///< as direct, two rows of C at a time from end to end: for short sums, which only write
  dot,           ///< dot products of rows of A and rows of B, nothing packed: A not transposed, B transposed
  blas,          ///< one-thread OpenBLAS call per unit
  blas_threads,  ///< OpenBLAS with its own threads, the team asleep
};
std::string_view to_string(GemmLoops loops);

/// C is cut in units of unit_rows x unit_columns (ragged at the ends), which threads take one after another.
struct GemmPlan {
  GemmLoops loops = GemmLoops::packed;
  int64_t unit_rows = 0, unit_columns = 0;
  int64_t depth = 256;  ///< of a packed panel
  bool operator==(const GemmPlan&) const = default;
};
std::string to_string(const GemmPlan& plan);

/// One unit of C.
struct GemmUnit {
  int64_t matrix, row, rows, column, columns;
};
int64_t gemm_unit_count(const GemmSpec& spec, const GemmPlan& plan);
GemmUnit gemm_unit(const GemmSpec& spec, const GemmPlan& plan, int64_t index);

/// The plans worth trying for a (resolved) spec, the safest first.
std::vector<GemmPlan> gemm_candidates(const GemmSpec& spec, int threads, int tile_rows, int tile_columns);

/// Pointers of one call, with the spec resolved.
struct GemmCall {
  GemmSpec spec;
  const void* a;
  const void* b;
  const void* bias;
  void* c;
  void* pre_activation;
};

class GemmEngine {
 public:
  GemmEngine(Team& team, const Blas& blas, int64_t& allocations);
  ~GemmEngine();

  void run(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c, void* pre_activation);
  /// nullptr before the first call with this spec.
  const GemmPlan* find_plan(const GemmSpec& spec) const;
  void set_plan(const GemmSpec& spec, const GemmPlan& plan);

 private:
  struct Hash {
    size_t operator()(const GemmSpec& spec) const;
  };
  struct Entry {
    GemmSpec resolved;
    GemmPlan plan;
    bool one_unit;
  };
  /// Packed panels and fp32 sums of one thread.
  struct Workspace {
    float *a = nullptr, *b = nullptr, *sums = nullptr;
    size_t a_floats = 0, b_floats = 0, sums_floats = 0;
  };

  const Entry& prepare(const GemmSpec& spec, const GemmCall& call);
  GemmPlan tune(const GemmCall& call, const std::vector<GemmPlan>& candidates);
  void reserve(const GemmSpec& spec, const GemmPlan& plan);
  void grow(float*& memory, size_t& have, size_t floats);
  void execute(const GemmCall& call, const GemmPlan& plan);
  void execute_unit(const GemmCall& call, const GemmPlan& plan, const GemmUnit& unit, Workspace& workspace);
  void unit_from_panels(const GemmCall& call, const GemmPlan& plan, const GemmUnit& unit, Workspace& workspace);
  void unit_from_dots(const GemmCall& call, const GemmUnit& unit, Workspace& workspace);
  void unit_from_blas(const GemmCall& call, const GemmUnit& unit);
  void finish(const GemmCall& call, const GemmUnit& unit, const float* sums, int64_t sums_stride);

  Team& team_;
  const Blas& blas_;
  int64_t& allocations_;
  const GemmKernels& kernels_;
  std::vector<Workspace> workspaces_;
  std::unordered_map<GemmSpec, Entry, Hash> entries_;
};

}  // namespace dlbench::cpu
