// Precisions (storage + compute + accumulate type) and the element types they are made of.
//
// Why: "fp32" alone says too little: a bf16 product that accumulates in fp32 and a tf32 product are different
// measurements. Promises: the rows come from precision.def only; switches over Precision and DType have no `default:`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlbench {

/// Element type of a tensor in memory.
enum class DType : uint8_t { f64, f32, bf16, f16, i32, u8 };

size_t size_of(DType type);              ///< bytes per element
std::string_view to_string(DType type);  ///< "f32", ...

enum class Precision : uint8_t {
#define DLB_PRECISION(name, storage, compute, accumulate, unit_roundoff, matrix_only) name,
#include "core/tensor/precision.def"
#undef DLB_PRECISION
};

/// Type in which products are formed; tf32 exists as a compute type only.
enum class ComputeType : uint8_t { f64, f32, tf32, bf16, f16 };
std::string_view to_string(ComputeType type);

struct PrecisionInfo {
  Precision precision;
  std::string_view name;
  DType storage;
  ComputeType compute;
  DType accumulate;
  double unit_roundoff;
  bool matrix_only;
};

const PrecisionInfo& info(Precision precision);
std::string_view to_string(Precision precision);
/// @throws UsageError naming the known precisions.
Precision parse_precision(std::string_view name);
const std::vector<Precision>& all_precisions();

inline DType storage_of(Precision p) {
  return info(p).storage;
}
inline DType accumulate_of(Precision p) {
  return info(p).accumulate;
}

}  // namespace dlbench
