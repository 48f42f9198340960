// Shapes and host tensors.
//
// Why: devices hand out plain memory; what a buffer means (shape, element type) travels beside it. HostTensor is how
// verification, dumps and tests hold a copy of a device buffer on the host.
// Promises: row-major, contiguous; element counts and byte counts that don't fit 63 bits throw instead of wrapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/precision.h"

namespace dlbench {

using Shape = std::vector<int64_t>;

/// Product of the extents; 1 for the empty shape. @throws Error on a negative extent or overflow.
int64_t element_count(const Shape& shape);
/// @throws Error when the size doesn't fit 63 bits.
int64_t byte_count(const Shape& shape, DType type);
std::string to_string(const Shape& shape);  ///< "[64, 784]"

class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(Shape shape, DType type);

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  int64_t size() const { return size_; }
  size_t bytes() const { return storage_.size(); }
  void* data() { return storage_.data(); }
  const void* data() const { return storage_.data(); }

  /// Element `i` widened to double, from any element type.
  double at(int64_t i) const;
  /// Rounds `value` to the element type (to nearest, ties to even).
  void set(int64_t i, double value);

 private:
  Shape shape_;
  DType dtype_ = DType::f32;
  int64_t size_ = 0;
  std::vector<std::byte> storage_;
};

}  // namespace dlbench
