// Conversion between element types. Twin: src/gpu/convert.cu.
#include <stdexcept>

#include "cpu/ops.h"

namespace dlbench::cpu {

void CpuOps::convert(const ConvertSpec& s, const void* x, void* y) {
  if (s.n < 0) throw std::invalid_argument("convert: n must not be negative");
  const auto kernel = isa_.convert[element_index(s.from)][element_index(s.to)];
  const int64_t from = static_cast<int64_t>(size_of(s.from)), to = static_cast<int64_t>(size_of(s.to));
  team_.parallel_for(s.n, grain(from + to), 64, [&](int64_t begin, int64_t end) {
    kernel(static_cast<const char*>(x) + begin * from, static_cast<char*>(y) + begin * to, end - begin);
  });
}

}  // namespace dlbench::cpu
