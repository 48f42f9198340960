// Blocks of elements in their arithmetic type and back: what all files compiled once per instruction set share.
//
// Why (no twin on the GPU side, see kernels.h): a loop over 16-bit elements widens a block, computes, and narrows it.
// Promises: everything here is inlined or local to the file that includes it, so that no function compiled for one
// instruction set is ever called by a file compiled for another.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "core/math/float_types.h"

#define DLB_ALWAYS_INLINE inline __attribute__((always_inline))

namespace dlbench::cpu {
namespace {

constexpr int64_t kBlock = 64;

/// Arithmetic and accumulate type of an element type.
template <typename T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename W>
DLB_ALWAYS_INLINE W multiply_add(W a, W b, W c) {
#if defined(__FMA__) || defined(__aarch64__)
  if constexpr (std::is_same_v<W, double>)
    return __builtin_fma(a, b, c);
  else
    return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// A block of elements in the wide type and back ------------------------------------------------------------------

template <typename T>
DLB_ALWAYS_INLINE void widen(const T* x, Wide<T>* out) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    std::memcpy(out, x, kBlock * sizeof(T));
  } else {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float16>) {
      for (int j = 0; j < kBlock; j += 16) {
        _mm512_storeu_ps(out + j, _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + j))));
      }
      return;
    }
#elif defined(__F16C__)
    if constexpr (std::is_same_v<T, float16>) {
      for (int j = 0; j < kBlock; j += 8) {
        _mm256_storeu_ps(out + j, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x + j))));
      }
      return;
    }
#endif
    for (int j = 0; j < kBlock; ++j) out[j] = to_float(x[j]);
  }
}

template <typename T>
DLB_ALWAYS_INLINE void narrow(const Wide<T>* x, T* out) {
  if constexpr (std::is_same_v<T, Wide<T>>) {
    std::memcpy(out, x, kBlock * sizeof(T));
  } else {
#if defined(__AVX512F__)
    if constexpr (std::is_same_v<T, float16>) {
      for (int j = 0; j < kBlock; j += 16) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + j),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + j), _MM_FROUND_TO_NEAREST_INT));
      }
      return;
    }
#elif defined(__F16C__)
    if constexpr (std::is_same_v<T, float16>) {
      for (int j = 0; j < kBlock; j += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + j), _MM_FROUND_TO_NEAREST_INT));
      }
      return;
    }
#endif
    for (int j = 0; j < kBlock; ++j) out[j] = from_float<T>(x[j]);
  }
}

template <typename T>
DLB_ALWAYS_INLINE void widen_part(const T* x, int64_t n, Wide<T>* out) {
  T part[kBlock] = {};
  std::memcpy(static_cast<void*>(part), x, static_cast<size_t>(n) * sizeof(T));
  widen(part, out);
}
template <typename T>
DLB_ALWAYS_INLINE void narrow_part(const Wide<T>* x, int64_t n, T* out) {
  T part[kBlock];
  narrow(x, part);
  std::memcpy(static_cast<void*>(out), part, static_cast<size_t>(n) * sizeof(T));
}

/// Bytes of one block, written past the caches. `out` is aligned to 64 bytes.
DLB_ALWAYS_INLINE void stream_bytes(const void* from, void* out, int64_t bytes) {
#if defined(__AVX512F__)
  for (int64_t j = 0; j < bytes; j += 64) {
    _mm512_stream_si512(reinterpret_cast<__m512i*>(static_cast<char*>(out) + j),
                        _mm512_loadu_si512(static_cast<const char*>(from) + j));
  }
#elif defined(__AVX2__)
  for (int64_t j = 0; j < bytes; j += 32) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(static_cast<char*>(out) + j),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(static_cast<const char*>(from) + j)));
  }
#elif defined(__SSE2__)
  for (int64_t j = 0; j < bytes; j += 16) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(static_cast<char*>(out) + j),
                     _mm_loadu_si128(reinterpret_cast<const __m128i*>(static_cast<const char*>(from) + j)));
  }
#else
  std::memcpy(out, from, static_cast<size_t>(bytes));
#endif
}

DLB_ALWAYS_INLINE void end_stream() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

inline bool aligned_to_line(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 64 == 0;
}

template <typename T>
DLB_ALWAYS_INLINE const T* in(const void* p) {
  return static_cast<const T*>(p);
}
template <typename T>
DLB_ALWAYS_INLINE T* out(void* p) {
  return static_cast<T*>(p);
}

}  // namespace
}  // namespace dlbench::cpu
