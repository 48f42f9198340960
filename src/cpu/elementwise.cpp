// Element-wise and memory-bound ops. Twin: src/gpu/elementwise.cu.
#include <cstring>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/math/float_types.h"
#include "cpu/ops.h"
#include "cpu/planted.h"

namespace dlbench::cpu {

namespace {

const char* at(const void* p, int64_t byte) {
  return static_cast<const char*>(p) + byte;
}
char* at(void* p, int64_t byte) {
  return static_cast<char*>(p) + byte;
}

int64_t elements_of(const VectorSpec& s, const char* op) {
  if (s.n < 0 || s.batch < 0) throw std::invalid_argument(std::string(op) + ": n and batch must not be negative");
  return s.n * s.batch;
}

template <typename T>
void fill_range(T* x, const FillSpec& s, float factor, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    x[i] = from_float<T>(normal_value(s.seed, s.stream, static_cast<uint64_t>(i), factor));
  }
}

}  // namespace

void CpuOps::noop() {
  team_.run([](int) {});
}

void CpuOps::fill_normal(const FillSpec& s, void* x) {
  const float factor = static_cast<float>(s.scale * kIrwinHallScale);
  team_.parallel_for(s.n, 4096, 64, [&](int64_t begin, int64_t end) {
    switch (s.type) {
      case DType::f64:
        return fill_range(static_cast<double*>(x), s, factor, begin, end);
      case DType::f32:
        return fill_range(static_cast<float*>(x), s, factor, begin, end);
      case DType::bf16:
        return fill_range(static_cast<bfloat16*>(x), s, factor, begin, end);
      case DType::f16:
        return fill_range(static_cast<float16*>(x), s, factor, begin, end);
      case DType::i32:
      case DType::u8:
        break;
    }
    element_index(s.type);  // throws
  });
}

void CpuOps::copy_bytes(const void* from, void* to, int64_t bytes) {
  const bool stream = streams(2 * bytes);
  team_.parallel_for(bytes, grain(2), 64, [&](int64_t begin, int64_t end) {
    isa_.copy(at(from, begin), at(to, begin), end - begin, stream);
  });
}

void CpuOps::copy(const VectorSpec& s, const void* x, void* y) {
  copy_bytes(x, y, elements_of(s, "copy") * static_cast<int64_t>(size_of(storage_of(s.precision))));
}

void CpuOps::triad(const VectorSpec& s, float a, const void* x, const void* y, void* z) {
  const VectorKernels& k = kernels(Op::triad, s.precision);
  const int64_t n = elements_of(s, "triad"), e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const bool stream = streams(3 * n * e);
  team_.parallel_for(n, grain(3 * e), 64, [&](int64_t begin, int64_t end) {
    k.triad(at(x, begin * e), at(y, begin * e), at(z, begin * e), a, end - begin, stream);
  });
}

void CpuOps::axpy(const VectorSpec& s, float a, const void* x, void* y) {
  const VectorKernels& k = kernels(Op::axpy, s.precision);
  const int64_t n = elements_of(s, "axpy"), e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  team_.parallel_for(n, grain(3 * e), 64,
                     [&](int64_t begin, int64_t end) { k.axpy(at(x, begin * e), at(y, begin * e), a, end - begin); });
}

void CpuOps::bias(const MatrixSpec& s, const void* x, const void* bias, void* y) {
  if (s.rows < 0 || s.columns < 0) throw std::invalid_argument("bias: rows and columns must not be negative");
  const VectorKernels& k = kernels(Op::bias, s.precision);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = s.columns * e;
  if (s.rows >= team_.threads()) {
    team_.parallel_for(s.rows, grain(2 * row), 1, [&](int64_t begin, int64_t end) {
      k.bias(at(x, begin * row), bias, at(y, begin * row), end - begin, s.columns, s.columns);
    });
  } else {
    team_.parallel_for(s.columns, grain(2 * e * std::max<int64_t>(s.rows, 1)), 64, [&](int64_t begin, int64_t end) {
      k.bias(at(x, begin * e), at(bias, begin * e), at(y, begin * e), s.rows, end - begin, s.columns);
    });
  }
}

void CpuOps::relu_forward(const VectorSpec& s, const void* x, void* y) {
  const VectorKernels& k = kernels(Op::relu_forward, s.precision);
  const int64_t n = elements_of(s, "relu_forward"), e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const bool stream = x != y && streams(2 * n * e);
  team_.parallel_for(n, grain(2 * e), 64, [&](int64_t begin, int64_t end) {
    k.relu_forward(at(x, begin * e), at(y, begin * e), end - begin, stream);
  });
}

void CpuOps::relu_backward(const VectorSpec& s, const void* dy, const void* y, void* dx) {
  const VectorKernels& k = kernels(Op::relu_backward, s.precision);
  const int64_t n = elements_of(s, "relu_backward"), e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  const bool stream = dx != dy && streams(3 * n * e);
  team_.parallel_for(n, grain(3 * e), 64, [&](int64_t begin, int64_t end) {
    k.relu_backward(at(dy, begin * e), at(y, begin * e), at(dx, begin * e), end - begin, stream);
  });
}

void CpuOps::gelu_forward(const VectorSpec& s, const void* x, void* y) {
  DLB_PLANTED(gelu_forward);
  const VectorKernels& k = kernels(Op::gelu_forward, s.precision);
  const int64_t n = elements_of(s, "gelu_forward"), e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  team_.parallel_for(n, grain(8 * e), 64, [&](int64_t begin, int64_t end) {
    k.gelu_forward(at(x, begin * e), at(y, begin * e), end - begin);
  });
}

void CpuOps::gelu_backward(const VectorSpec& s, const void* dy, const void* x, void* dx) {
  const VectorKernels& k = kernels(Op::gelu_backward, s.precision);
  const int64_t n = elements_of(s, "gelu_backward"), e = static_cast<int64_t>(size_of(storage_of(s.precision)));
  team_.parallel_for(n, grain(8 * e), 64, [&](int64_t begin, int64_t end) {
    k.gelu_backward(at(dy, begin * e), at(x, begin * e), at(dx, begin * e), end - begin);
  });
}

}  // namespace dlbench::cpu
