// GemmPlans: what cuBLASLt was asked once per gemm and is replayed at every later call. Twin: the plans of
// src/cpu/gemm.cpp.
//
// Why: creating descriptors and querying the heuristics takes tens of microseconds, more than a small product.
// Promises: an equal spec with equally aligned pointers uses the same algorithm for the life of the device; the choice
// is the first of cuBLASLt's own ranking that fits the workspace and holds sums in the accumulate type, so it is
// deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "core/device/ops.h"
#include "gpu/blas.cuh"

namespace dlbench::gpu {

/// What a plan depends on. `alignment` packs log2 of the byte alignment (at most 256) of a, b, c, bias and
/// pre_activation.
struct GemmKey {
  GemmSpec spec;              ///< resolved
  DType c_type = DType::f32;  ///< of C: the storage type of the precision, or its accumulate type
  uint32_t alignment = 0;
  bool has_pre_activation = false;
  bool operator==(const GemmKey&) const = default;
};

struct GemmKeyHash {
  size_t operator()(const GemmKey& key) const;
};

struct GemmPlan;

class GemmPlans {
 public:
  GemmPlans();
  ~GemmPlans();
  /// The plan of `key`, made at the first call. The pointers are used for their alignment only.
  GemmPlan& find_or_make(const GemmKey& key, const Blas& blas, const void* bias, void* pre_activation);

 private:
  std::unordered_map<GemmKey, std::unique_ptr<GemmPlan>, GemmKeyHash> plans_;
};

}  // namespace dlbench::gpu
