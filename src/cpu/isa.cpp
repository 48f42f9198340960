// Chooses the table of kernels that this processor can run (see kernels.h).
#include <stdexcept>

#include "core/tensor/precision.h"
#include "cpu/conv_kernels.h"
#include "cpu/gemm_kernels.h"
#include "cpu/image_kernels.h"
#include "cpu/kernels.h"
#include "cpu/peak_kernels.h"
#include "cpu/sequence_kernels.h"

namespace dlbench::cpu {

const IsaKernels& vector_kernels_portable();
const GemmKernels& gemm_kernels_portable();
const SequenceKernels& sequence_kernels_portable(ElementIndex type);
const ConvKernels& conv_kernels_portable();
const ImageKernels& image_kernels_portable();
#if defined(DLB_X86_KERNELS)
const IsaKernels& vector_kernels_avx2();
const IsaKernels& vector_kernels_avx512();
const GemmKernels& gemm_kernels_avx2();
const GemmKernels& gemm_kernels_avx512();
const SequenceKernels& sequence_kernels_avx2(ElementIndex type);
const SequenceKernels& sequence_kernels_avx512(ElementIndex type);
const ConvKernels& conv_kernels_avx2();
const ConvKernels& conv_kernels_avx512();
const ImageKernels& image_kernels_avx2();
const ImageKernels& image_kernels_avx512();
#endif

ElementIndex element_index(DType type) {
  switch (type) {
    case DType::f64:
      return kF64;
    case DType::f32:
      return kF32;
    case DType::bf16:
      return kBF16;
    case DType::f16:
      return kF16;
    case DType::i32:
    case DType::u8:
      break;
  }
  throw std::invalid_argument("cpu: " + std::string(to_string(type)) + " is no floating-point type");
}

bool has_avx2() {
#if defined(DLB_X86_KERNELS)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("bmi2");
#else
  return false;
#endif
}

bool has_avx512() {
#if defined(DLB_X86_KERNELS)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
#else
  return false;
#endif
}

bool has_avx512_bf16() {
#if defined(DLB_X86_KERNELS)
  return has_avx512() && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

const IsaKernels& vector_kernels() {
#if defined(DLB_X86_KERNELS)
  if (has_avx512()) return vector_kernels_avx512();
  if (has_avx2()) return vector_kernels_avx2();
#endif
  return vector_kernels_portable();
}

const GemmKernels& gemm_kernels() {
#if defined(DLB_X86_KERNELS)
  if (has_avx512()) return gemm_kernels_avx512();
  if (has_avx2()) return gemm_kernels_avx2();
#endif
  return gemm_kernels_portable();
}

const SequenceKernels& sequence_kernels(ElementIndex type) {
#if defined(DLB_X86_KERNELS)
  if (has_avx512()) return sequence_kernels_avx512(type);
  if (has_avx2()) return sequence_kernels_avx2(type);
#endif
  return sequence_kernels_portable(type);
}

const ConvKernels& conv_kernels() {
#if defined(DLB_X86_KERNELS)
  if (has_avx512()) return conv_kernels_avx512();
  if (has_avx2()) return conv_kernels_avx2();
#endif
  return conv_kernels_portable();
}

const ImageKernels& image_kernels() {
#if defined(DLB_X86_KERNELS)
  if (has_avx512()) return image_kernels_avx512();
  if (has_avx2()) return image_kernels_avx2();
#endif
  return image_kernels_portable();
}

}  // namespace dlbench::cpu
