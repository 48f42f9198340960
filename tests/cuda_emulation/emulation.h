// The CUDA kernel language for a host compiler: what a kernel of src/gpu may say, and how it is launched.
//
// Why: outside nvcc the toolkit's headers declare the runtime's functions but not threadIdx, __syncthreads and the
// like. src/gpu/launch.cuh includes this file when it is compiled with -DDLB_CUDA_EMULATION. Promises: kernels run with
// CUDA's semantics for barriers, warp collectives and shared memory; what CUDA leaves undefined (a barrier that not all
// threads reach, a shuffle from a lane that isn't there) ends the program with one sentence.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <source_location>
#include <type_traits>
#include <utility>

// Written by the emulator whenever it switches to another thread of a block.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace dlbench::cuda_emulation {

// Launching ---------------------------------------------------------------------------------------------------------

/// Enqueues a kernel. `thread_body` is called once per thread of the grid.
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes, const char* kernel_name,
                   std::function<void()> thread_body);

/// Whether a kernel may use `pointer`: null, device memory or pinned memory.
bool is_device_accessible(const void* pointer);
/// The name of the function at `kernel`, or `otherwise` where the symbol table doesn't have it.
const char* kernel_name(const void* kernel, const char* otherwise);
/// Ends the program: `argument` (from 0) of the kernel is a pointer to host memory.
[[noreturn]] void refuse_host_pointer(const char* kernel_name, int argument, const void* pointer);

/// As above, from a kernel and its arguments: also refuses pointers to memory that the device doesn't have.
template <typename... Parameters>
cudaError_t launch_kernel(cudaStream_t stream, dim3 grid, dim3 block, size_t shared_bytes, const char* otherwise,
                          void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  const char* name = kernel_name(reinterpret_cast<const void*>(kernel), otherwise);
  [[maybe_unused]] int position = 0;
  [[maybe_unused]] auto check = [&](const auto& value) {
    if constexpr (std::is_pointer_v<std::remove_cvref_t<decltype(value)>>) {
      if (!is_device_accessible(value)) refuse_host_pointer(name, position, value);
    }
    ++position;
  };
  (check(arguments), ...);
  return launch(stream, grid, block, shared_bytes, name, [kernel, arguments...]() { kernel(arguments...); });
}

// Shared memory -----------------------------------------------------------------------------------------------------

/// The dynamic shared memory of the running block, 16-byte aligned.
void* dynamic_shared();
/// The array of the running block that belongs to `key` (one key per declaration and instantiation).
void* static_shared(const void* key, size_t bytes, size_t alignment, const char* name);

// Synchronisation ---------------------------------------------------------------------------------------------------

enum class WarpOp : uint8_t { sync, shuffle, ballot, any, all };
enum class BarrierOp : uint8_t { sync, count, both, either };

/// Waits for the block; the combined predicate.
int block_barrier(BarrierOp op, int predicate, const std::source_location& where);
/// Waits for the lanes of `mask`; the value of lane `source` (shuffle) or the combined predicate.
uint64_t warp_collective(WarpOp op, uint32_t mask, uint64_t value, int source, const std::source_location& where);
int lane_index();
uint32_t live_lanes();

template <typename T>
T shuffle(uint32_t mask, T value, int source, const std::source_location& where) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp_collective(WarpOp::shuffle, mask, bits, source, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace dlbench::cuda_emulation

// Shared memory of the block as `type name[count]`: filled with a pattern when a block starts, its ends guarded.
#define DLB_SHARED(type, name, count)                                                 \
  auto& name = *static_cast<type(*)[count]>(::dlbench::cuda_emulation::static_shared( \
      []() -> const void* {                                                           \
        static const char key = 0;                                                    \
        return &key;                                                                  \
      }(),                                                                            \
      sizeof(type[count]), alignof(type) > 16 ? alignof(type) : 16, #name))

// A plain __shared__ could be neither filled nor guarded, nor found at all in a template: it doesn't compile.
#undef __shared__
#define __shared__ DLB_SHARED_must_be_used_instead

using dlb_where = std::source_location;

// Barriers
inline void __syncthreads(const dlb_where& where = dlb_where::current()) {
  dlbench::cuda_emulation::block_barrier(dlbench::cuda_emulation::BarrierOp::sync, 0, where);
}
inline int __syncthreads_count(int predicate, const dlb_where& where = dlb_where::current()) {
  return dlbench::cuda_emulation::block_barrier(dlbench::cuda_emulation::BarrierOp::count, predicate, where);
}
inline int __syncthreads_and(int predicate, const dlb_where& where = dlb_where::current()) {
  return dlbench::cuda_emulation::block_barrier(dlbench::cuda_emulation::BarrierOp::both, predicate, where);
}
inline int __syncthreads_or(int predicate, const dlb_where& where = dlb_where::current()) {
  return dlbench::cuda_emulation::block_barrier(dlbench::cuda_emulation::BarrierOp::either, predicate, where);
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Warps (CUDA C++ Programming Guide, "Warp Shuffle Functions", "Warp Vote Functions")
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, const dlb_where& where = dlb_where::current()) {
  dlbench::cuda_emulation::warp_collective(dlbench::cuda_emulation::WarpOp::sync, mask, 0, 0, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, const dlb_where& where = dlb_where::current()) {
  return static_cast<unsigned>(dlbench::cuda_emulation::warp_collective(dlbench::cuda_emulation::WarpOp::ballot, mask,
                                                                        predicate != 0, 0, where));
}
inline int __any_sync(unsigned mask, int predicate, const dlb_where& where = dlb_where::current()) {
  return dlbench::cuda_emulation::warp_collective(dlbench::cuda_emulation::WarpOp::any, mask, predicate != 0, 0,
                                                  where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, const dlb_where& where = dlb_where::current()) {
  return dlbench::cuda_emulation::warp_collective(dlbench::cuda_emulation::WarpOp::all, mask, predicate != 0, 0,
                                                  where) != 0;
}
inline unsigned __activemask() {
  return dlbench::cuda_emulation::live_lanes();
}

// The segment of `width` lanes that a lane belongs to keeps its values to itself: a source outside it is the lane
// itself.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, const dlb_where& where = dlb_where::current()) {
  const int lane = dlbench::cuda_emulation::lane_index();
  return dlbench::cuda_emulation::shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)), where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  const dlb_where& where = dlb_where::current()) {
  const int lane = dlbench::cuda_emulation::lane_index();
  const int source = lane ^ lane_mask;
  // A source in a later segment is the lane itself; one in an earlier segment is read.
  return dlbench::cuda_emulation::shuffle(mask, value, source >= (lane & ~(width - 1)) + width ? lane : source, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   const dlb_where& where = dlb_where::current()) {
  const int lane = dlbench::cuda_emulation::lane_index();
  const int source = lane + static_cast<int>(delta);
  return dlbench::cuda_emulation::shuffle(mask, value, source >= (lane & ~(width - 1)) + width ? lane : source, where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 const dlb_where& where = dlb_where::current()) {
  const int lane = dlbench::cuda_emulation::lane_index();
  const int source = lane - static_cast<int>(delta);
  return dlbench::cuda_emulation::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, where);
}

// Atomics: one thread runs at a time, and none is interrupted between two synchronisations.
template <typename T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  const T old = *address;
  *address = value;
  return old;
}
template <typename T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, static_cast<T>(*address + value));
}
template <typename T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, *address < value ? value : *address);
}
template <typename T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  return atomicExch(address, value < *address ? value : *address);
}
template <typename T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  return atomicExch(address, *address == compare ? value : *address);
}

// Memory and arithmetic with a stated rounding (to nearest, ties to even, as the host rounds)
template <typename T>
T __ldg(const T* address) {
  return *address;
}
inline float __fmaf_rn(float a, float b, float c) {
  return std::fma(a, b, c);
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fsub_rn(float a, float b) {
  return a - b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __fsqrt_rn(float a) {
  return std::sqrt(a);
}
inline double __fma_rn(double a, double b, double c) {
  return std::fma(a, b, c);
}
inline int __ffs(int bits) {
  return __builtin_ffs(bits);
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
