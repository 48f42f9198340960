#include "core/device/reference_elements.h"

#include <string>

#include "core/base/error.h"
#include "core/math/rounding.h"

namespace dlbench {

namespace {

template <typename T>
void load(const void* array, const Run& run, double* out) {
  for (int64_t i = 0; i < run.count; ++i) out[i] = load_element<T>(array, run.first + i * run.step);
}

template <typename T>
void store(void* array, const Run& run, const double* values) {
  for (int64_t i = 0; i < run.count; ++i) store_element<T>(array, run.first + i * run.step, values[i]);
}

[[noreturn]] void no_arithmetic(DType type) {
  throw UnsupportedError("reference: no arithmetic on elements of type " + std::string(to_string(type)));
}

}  // namespace

void load_run(DType type, const void* array, const Run& run, double* out) {
  switch (type) {
    case DType::f64:
      return load<double>(array, run, out);
    case DType::f32:
      return load<float>(array, run, out);
    case DType::bf16:
      return load<bfloat16>(array, run, out);
    case DType::f16:
      return load<float16>(array, run, out);
    case DType::i32:
    case DType::u8:
      break;
  }
  no_arithmetic(type);
}

std::vector<double> load_run(DType type, const void* array, const Run& run) {
  std::vector<double> values(static_cast<size_t>(run.count));
  load_run(type, array, run, values.data());
  return values;
}

void store_run(DType type, void* array, const Run& run, const double* values) {
  switch (type) {
    case DType::f64:
      return store<double>(array, run, values);
    case DType::f32:
      return store<float>(array, run, values);
    case DType::bf16:
      return store<bfloat16>(array, run, values);
    case DType::f16:
      return store<float16>(array, run, values);
    case DType::i32:
    case DType::u8:
      break;
  }
  no_arithmetic(type);
}

}  // namespace dlbench
