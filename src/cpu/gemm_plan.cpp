#include "cpu/gemm_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace dlbench::cpu {

namespace {

/// Bound of what the first call of a spec spends on trying plans.
constexpr double kTuningSeconds = 0.05;
/// A plan that comes later in the list must be faster by so much: keeps ties, and noise, from changing the choice.
constexpr double kTieMargin = 0.97;
/// Rate assumed per thread before anything was measured, to decide whether trying is affordable.
constexpr double kAssumedFlopPerSecond = 5e10;
/// OpenBLAS takes unpacked small-matrix kernels up to this m*n*k (0.3.21, cores Cooperlake and SkylakeX).
constexpr int64_t kSmallMatrixLimit = 1000000;
constexpr int64_t kMaxUnitRows = 1024, kMaxUnitColumns = 1024;

/// Up to here a product may be over before another thread has begun: it is tried on one thread as well.
constexpr double kSmallFlops = 4e6;
/// From here on a product is tried in few ways, once each: every trial takes milliseconds.
constexpr double kLargeFlops = 5e8;
/// Floats that the last store into a packed panel may reach beyond it.
constexpr int64_t kStoreSlack = 16;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
int64_t parts_of(int64_t n, int64_t unit) {
  return unit > 0 ? (n + unit - 1) / unit : 0;
}

/// Done by the calling thread without a word to the others.
bool is_one_unit(const GemmSpec& s, const GemmPlan& p) {
  return p.loops != GemmLoops::blas_threads && gemm_unit_count(s, p) == 1;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string_view to_string(GemmLoops loops) {
  switch (loops) {
    case GemmLoops::packed:
      return "packed";
    case GemmLoops::direct:
      return "direct";
    case GemmLoops::outer:
      return "outer";
    case GemmLoops::dot:
      return "dot";
    case GemmLoops::blas:
      return "blas";
    case GemmLoops::blas_threads:
      return "blas_threads";
  }
  return "?";
}

std::string to_string(const GemmPlan& p) {
  return fmt::format("{} in units of {} x {}, panels {} deep", to_string(p.loops), p.unit_rows, p.unit_columns,
                     p.depth);
}

int64_t gemm_unit_count(const GemmSpec& s, const GemmPlan& p) {
  return s.batch * parts_of(s.m, p.unit_rows) * parts_of(s.n, p.unit_columns);
}

GemmUnit gemm_unit(const GemmSpec& s, const GemmPlan& p, int64_t index) {
  const int64_t down = parts_of(s.m, p.unit_rows), across = parts_of(s.n, p.unit_columns);
  const int64_t in_matrix = index % (down * across), row = in_matrix / across * p.unit_rows,
                column = in_matrix % across * p.unit_columns;
  return {index / (down * across), row, std::min(p.unit_rows, s.m - row), column,
          std::min(p.unit_columns, s.n - column)};
}

std::vector<GemmPlan> gemm_candidates(const GemmSpec& s, int threads, int tile_rows, int tile_columns) {
  std::vector<GemmPlan> list;
  const auto add = [&](GemmLoops loops, int64_t rows, int64_t columns, int64_t depth) {
    const GemmPlan plan{loops, std::clamp<int64_t>(rows, 1, std::max<int64_t>(s.m, 1)),
                        std::clamp<int64_t>(columns, 1, std::max<int64_t>(s.n, 1)),
                        std::clamp<int64_t>(depth, 1, std::max<int64_t>(s.k, 1))};
    if (std::find(list.begin(), list.end(), plan) == list.end()) list.push_back(plan);
  };
  // Enough units for every thread; a batch of matrices brings its own.
  const int64_t wanted = s.batch >= threads ? 1 : threads;
  // As many parts as there are threads, or a multiple of it where a part would be too large.
  const auto split = [wanted](int64_t extent, int64_t multiple, int64_t largest) {
    const int64_t parts = wanted * parts_of(parts_of(extent, wanted), largest);
    return round_up(parts_of(extent, std::max<int64_t>(parts, 1)), multiple);
  };
  if (s.precision == Precision::fp64) {
    add(GemmLoops::blas, s.m, round_up(parts_of(s.n, wanted), 8), s.k);
    add(GemmLoops::blas, round_up(parts_of(s.m, wanted), 8), s.n, s.k);
    if (s.batch == 1) add(GemmLoops::blas_threads, s.m, s.n, s.k);
    return list;
  }
  const bool fp32 = s.precision == Precision::fp32;
  const int64_t rows = split(s.m, tile_rows, kMaxUnitRows), columns = split(s.n, tile_columns, kMaxUnitColumns);
  const int64_t all_rows = std::min(s.m, kMaxUnitRows), all_columns = std::min(s.n, kMaxUnitColumns);
  const auto flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
                     static_cast<double>(s.batch);
  if (fp32 && flops > kLargeFlops) {
    if (s.batch == 1) add(GemmLoops::blas_threads, s.m, s.n, s.k);
    add(GemmLoops::packed, all_rows, columns, 256);
    add(GemmLoops::packed, rows, all_columns, 256);
    add(GemmLoops::blas, s.m, round_up(parts_of(s.n, wanted), 16), s.k);
    add(GemmLoops::blas, round_up(parts_of(s.m, wanted), 16), s.n, s.k);
    return list;
  }
  if (flops <= kSmallFlops && s.m <= kMaxUnitRows && s.n <= 4 * kMaxUnitColumns) {
    if (fp32) add(GemmLoops::blas, s.m, s.n, s.k);
    add(GemmLoops::packed, s.m, s.n, s.k);
    if (fp32 && s.trans_b == Transpose::no) {
      add(GemmLoops::direct, s.m, s.n, s.k);
      if (s.k <= 32) add(GemmLoops::outer, s.m, s.n, s.k);
    }
    if (s.trans_a == Transpose::no && s.trans_b == Transpose::yes && s.m <= 128) add(GemmLoops::dot, s.m, s.n, s.k);
  }
  for (const int64_t depth : {256, 512}) {
    add(GemmLoops::packed, all_rows, columns, depth);
    add(GemmLoops::packed, rows, all_columns, depth);
  }
  if (fp32 && s.trans_b == Transpose::no) {
    if (s.k <= 32) {
      add(GemmLoops::outer, rows, s.n, s.k);
      add(GemmLoops::outer, all_rows, columns, s.k);
    }
    add(GemmLoops::direct, all_rows, columns, s.k);
    add(GemmLoops::direct, rows, all_columns, s.k);
    add(GemmLoops::direct, all_rows, columns, 256);
    add(GemmLoops::direct, rows, all_columns, 256);
  }
  if (s.trans_a == Transpose::no && s.trans_b == Transpose::yes && s.m <= 128) {
    add(GemmLoops::dot, s.m, round_up(parts_of(s.n, wanted), 8), s.k);
    if (s.m > 8) add(GemmLoops::dot, round_up(parts_of(s.m, wanted), 8), s.n, s.k);
  }
  if (fp32) {
    add(GemmLoops::blas, s.m, round_up(parts_of(s.n, wanted), 16), s.k);
    add(GemmLoops::blas, round_up(parts_of(s.m, wanted), 16), s.n, s.k);
    const int64_t small_rows = std::min<int64_t>(s.m, 64);
    const int64_t small_columns = kSmallMatrixLimit / std::max<int64_t>(1, small_rows * s.k) / 16 * 16;
    if (small_columns >= 16 && small_columns < s.n) add(GemmLoops::blas, small_rows, small_columns, s.k);
    if (s.batch == 1) add(GemmLoops::blas_threads, s.m, s.n, s.k);
  }
  return list;
}

size_t GemmEngine::Hash::operator()(const GemmSpec& s) const {
  // A few nanoseconds: the smallest products take two hundred. Specs of one program differ in what is mixed here;
  // equality looks at the rest.
  uint64_t h = static_cast<uint64_t>(s.precision) << 16 | static_cast<uint64_t>(s.trans_a) << 9 |
               static_cast<uint64_t>(s.trans_b) << 8 | static_cast<uint64_t>(s.epilogue);
  for (const int64_t v : {s.m, s.n, s.k, s.batch}) h = (h ^ static_cast<uint64_t>(v)) * 0x9E3779B97F4A7C15ull;
  return h ^ h >> 32;
}

GemmEngine::GemmEngine(Team& team, const Blas& blas, int64_t& allocations)
    : team_(team),
      blas_(blas),
      allocations_(allocations),
      kernels_(gemm_kernels()),
      workspaces_(static_cast<size_t>(team.threads())) {}

GemmEngine::~GemmEngine() {
  for (const Workspace& w : workspaces_) std::free(w.a), std::free(w.b), std::free(w.sums);
}

void GemmEngine::grow(float*& memory, size_t& have, size_t floats) {
  if (floats <= have) return;
  std::free(memory);
  have = (floats + 1023) / 1024 * 1024;
  memory = static_cast<float*>(std::aligned_alloc(4096, have * sizeof(float)));
  if (memory == nullptr) throw std::bad_alloc();
  ++allocations_;
}

void GemmEngine::reserve(const GemmSpec& s, const GemmPlan& p) {
  if (p.loops == GemmLoops::blas || p.loops == GemmLoops::blas_threads) return;
  const int64_t rows = round_up(p.unit_rows, kernels_.tile_rows),
                columns = round_up(p.unit_columns, kernels_.tile_columns);
  for (Workspace& w : workspaces_) {
    if (p.loops != GemmLoops::dot) {
      grow(w.a, w.a_floats, static_cast<size_t>(rows * p.depth + kStoreSlack));
      grow(w.b, w.b_floats,
           static_cast<size_t>((p.loops == GemmLoops::packed ? columns : kernels_.tile_columns) * p.depth));
    }
    if (s.precision != Precision::fp32) grow(w.sums, w.sums_floats, static_cast<size_t>(p.unit_rows * p.unit_columns));
  }
}

GemmPlan GemmEngine::tune(const GemmCall& call, const std::vector<GemmPlan>& candidates) {
  const GemmSpec& s = call.spec;
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
                       static_cast<double>(s.batch);
  const double expected = flops / (kAssumedFlopPerSecond * team_.threads());
  if (candidates.size() == 1 || expected > kTuningSeconds) return candidates.front();
  const bool once = flops > kLargeFlops;
  // C of our own: with beta != 0 a trial would change the result.
  const size_t bytes =
      static_cast<size_t>(((s.batch - 1) * s.stride_c + (s.m - 1) * s.ldc + s.n)) * size_of(storage_of(s.precision));
  const auto scratch = std::make_unique<std::byte[]>(bytes);
  const auto scratch_pre = call.pre_activation ? std::make_unique<std::byte[]>(bytes) : nullptr;
  allocations_ += call.pre_activation ? 2 : 1;
  GemmCall trial = call;
  trial.c = scratch.get();
  trial.pre_activation = scratch_pre.get();
  const double begin = seconds_now();
  GemmPlan best = candidates.front();
  double best_seconds = 1e30;
  for (const GemmPlan& plan : candidates) {
    reserve(s, plan);
    double fastest = 1e30;
    const double share_end = seconds_now() + kTuningSeconds / static_cast<double>(candidates.size());
    for (int repeat = 0; repeat < 24; ++repeat) {
      const double start = seconds_now();
      execute(trial, plan);
      const double end = seconds_now();
      // The first run pays for pages and caches, unless it is hopeless already.
      if (once || repeat > 0 || end - start > best_seconds * 3) fastest = std::min(fastest, end - start);
      if (fastest < 1e29 && (end > share_end || fastest > best_seconds * 3)) break;
    }
    if (fastest < best_seconds * (best_seconds < 1e29 ? kTieMargin : 1.0)) best_seconds = fastest, best = plan;
    // On a machine busy with other work everything takes longer; the choice is then as good as the time allows.
    if (seconds_now() - begin > 4 * kTuningSeconds) break;
  }
  return best;
}

const GemmEngine::Entry& GemmEngine::prepare(const GemmSpec& spec, const GemmCall& call) {
  const std::vector<GemmPlan> candidates =
      gemm_candidates(call.spec, team_.threads(), kernels_.tile_rows, kernels_.tile_columns);
  Entry entry{call.spec, tune(call, candidates), false};
  entry.one_unit = is_one_unit(entry.resolved, entry.plan);
  reserve(call.spec, entry.plan);
  ++allocations_;
  return entries_.insert_or_assign(spec, entry).first->second;
}

const GemmPlan* GemmEngine::find_plan(const GemmSpec& spec) const {
  const auto found = entries_.find(spec);
  return found == entries_.end() ? nullptr : &found->second.plan;
}

void GemmEngine::set_plan(const GemmSpec& spec, const GemmPlan& plan) {
  Entry entry{spec.resolved(), plan, false};
  entry.one_unit = is_one_unit(entry.resolved, plan);
  reserve(entry.resolved, plan);
  entries_.insert_or_assign(spec, entry);
}

void GemmEngine::run(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c,
                     void* pre_activation) {
  const auto found = entries_.find(spec);
  GemmCall call{found == entries_.end() ? spec.resolved() : found->second.resolved, a, b, bias, c, pre_activation};
  if (call.spec.m == 0 || call.spec.n == 0 || call.spec.batch == 0) return;
  const Entry& entry = found == entries_.end() ? prepare(spec, call) : found->second;
  if (entry.one_unit)
    execute_unit(call, entry.plan, {0, 0, call.spec.m, 0, call.spec.n}, workspaces_[0]);
  else
    execute(call, entry.plan);
}

}  // namespace dlbench::cpu
