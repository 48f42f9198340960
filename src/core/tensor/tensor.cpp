#include "core/tensor/tensor.h"

#include <cstring>

#include "core/base/error.h"
#include "core/math/rounding.h"

namespace dlbench {

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) throw Error("shape " + to_string(shape) + " has a negative extent");
    if (__builtin_mul_overflow(count, extent, &count))
      throw Error("shape " + to_string(shape) + " has more than 2^63 elements");
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
    : shape_(std::move(shape)),
      dtype_(type),
      size_(element_count(shape_)),
      storage_(static_cast<size_t>(byte_count(shape_, type))) {}

namespace {
template <typename T>
double load_integer(const void* array, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(array) + i * static_cast<int64_t>(sizeof(T)), sizeof value);
  return value;
}
template <typename T>
void store_integer(void* array, int64_t i, double value) {
  const T whole = static_cast<T>(value);
  std::memcpy(static_cast<std::byte*>(array) + i * static_cast<int64_t>(sizeof(T)), &whole, sizeof whole);
}
}  // namespace

double HostTensor::at(int64_t i) const {
  switch (dtype_) {
    case DType::f64:
      return load_element<double>(data(), i);
    case DType::f32:
      return load_element<float>(data(), i);
    case DType::bf16:
      return load_element<bfloat16>(data(), i);
    case DType::f16:
      return load_element<float16>(data(), i);
    case DType::i32:
      return load_integer<int32_t>(data(), i);
    case DType::u8:
      return load_integer<uint8_t>(data(), i);
  }
  throw Error("HostTensor::at: not an element type");
}

void HostTensor::set(int64_t i, double value) {
  switch (dtype_) {
    case DType::f64:
      return store_element<double>(data(), i, value);
    case DType::f32:
      return store_element<float>(data(), i, value);
    case DType::bf16:
      return store_element<bfloat16>(data(), i, value);
    case DType::f16:
      return store_element<float16>(data(), i, value);
    case DType::i32:
      return store_integer<int32_t>(data(), i, value);
    case DType::u8:
      return store_integer<uint8_t>(data(), i, value);
  }
  throw Error("HostTensor::set: not an element type");
}

}  // namespace dlbench
