#include "core/tensor/precision.h"

#include <array>

#include "core/base/error.h"

namespace dlbench {

size_t size_of(DType type) {
  switch (type) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::f16:
      return 2;
    case DType::i32:
      return 4;
    case DType::u8:
      return 1;
  }
  throw Error("size_of: not an element type");
}

std::string_view to_string(DType type) {
  switch (type) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
    case DType::i32:
      return "i32";
    case DType::u8:
      return "u8";
  }
  throw Error("to_string: not an element type");
}

std::string_view to_string(ComputeType type) {
  switch (type) {
    case ComputeType::f64:
      return "f64";
    case ComputeType::f32:
      return "f32";
    case ComputeType::tf32:
      return "tf32";
    case ComputeType::bf16:
      return "bf16";
    case ComputeType::f16:
      return "f16";
  }
  throw Error("to_string: not a compute type");
}

namespace {
constexpr std::array kRows = {
#define DLB_PRECISION(name, storage, compute, accumulate, unit_roundoff, matrix_only)   \
  PrecisionInfo{Precision::name,   #name,         DType::storage, ComputeType::compute, \
                DType::accumulate, unit_roundoff, matrix_only},
#include "core/tensor/precision.def"
#undef DLB_PRECISION
};
}  // namespace

const PrecisionInfo& info(Precision precision) {
  return kRows.at(static_cast<size_t>(precision));
}

std::string_view to_string(Precision precision) {
  return info(precision).name;
}

Precision parse_precision(std::string_view name) {
  std::string known;
  for (const PrecisionInfo& row : kRows) {
    if (row.name == name) return row.precision;
    known += (known.empty() ? "" : ", ") + std::string(row.name);
  }
  throw UsageError("unknown precision '" + std::string(name) + "'; known: " + known);
}

const std::vector<Precision>& all_precisions() {
  static const std::vector<Precision> all = [] {
    std::vector<Precision> list;
    for (const PrecisionInfo& row : kRows) list.push_back(row.precision);
    return list;
  }();
  return all;
}

}  // namespace dlbench
