#include "core/tensor/tensor.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/math/float_types.h"

namespace dlbench {

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) throw Error("shape " + to_string(shape) + " has a negative extent");
    if (__builtin_mul_overflow(count, extent, &count)) throw Error("shape " + to_string(shape) + " has more than 2^63 elements");
  }
  return count;
}

int64_t byte_count(const Shape& shape, DType type) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(element_count(shape), static_cast<int64_t>(size_of(type)), &bytes)) {
    throw Error("shape " + to_string(shape) + " of " + std::string(to_string(type)) + " has more than 2^63 bytes");
  }
  return bytes;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

HostTensor::HostTensor(Shape shape, DType type)
    : shape_(std::move(shape)), dtype_(type), size_(element_count(shape_)),
      storage_(static_cast<size_t>(byte_count(shape_, type))) {}

namespace {
/// Rounds a double to a 16-bit type once: going through float would round twice, so float is made odd-rounded first.
float round_to_odd_float(double value) {
  float f = static_cast<float>(value);
  if (static_cast<double>(f) == value || std::isnan(f)) return f;
  if (std::isinf(f)) return std::copysign(std::numeric_limits<float>::max(), f);
  if (std::fabs(static_cast<double>(f)) > std::fabs(value)) f = std::nextafterf(f, 0.0f);
  uint32_t u = detail::float_bits(f);
  u |= 1u;
  return detail::bits_float(u);
}

template <typename T>
T load(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}
template <typename T>
void store(std::byte* p, T value) {
  std::memcpy(p, &value, sizeof value);
}
}  // namespace

double HostTensor::at(int64_t i) const {
  const std::byte* p = storage_.data() + static_cast<size_t>(i) * size_of(dtype_);
  switch (dtype_) {
    case DType::f64: return load<double>(p);
    case DType::f32: return load<float>(p);
    case DType::bf16: return to_float(load<bfloat16>(p));
    case DType::f16: return to_float(load<float16>(p));
    case DType::i32: return load<int32_t>(p);
    case DType::u8: return load<uint8_t>(p);
  }
  throw Error("HostTensor::at: not an element type");
}

void HostTensor::set(int64_t i, double value) {
  std::byte* p = storage_.data() + static_cast<size_t>(i) * size_of(dtype_);
  switch (dtype_) {
    case DType::f64: return store(p, value);
    case DType::f32: return store(p, static_cast<float>(value));
    case DType::bf16: return store(p, to_bfloat16(std::isinf(value) ? static_cast<float>(value) : round_to_odd_float(value)));
    case DType::f16: return store(p, to_float16(std::isinf(value) ? static_cast<float>(value) : round_to_odd_float(value)));
    case DType::i32: return store(p, static_cast<int32_t>(value));
    case DType::u8: return store(p, static_cast<uint8_t>(value));
  }
  throw Error("HostTensor::set: not an element type");
}

}  // namespace dlbench
