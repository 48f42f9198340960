// The CUDA runtime's functions about memory (CUDA Runtime API, "Memory Management", "API synchronization behavior").
//
// A copy is always queued. To the host it stays queued even when the host memory is pageable, where the real runtime
// waits: a caller that relies on it breaks with pinned memory, and is to be found. From pageable host memory the bytes
// are taken at the call, as the real runtime promises; from pinned memory when the copy runs.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <vector>

#include "cuda_emulation/emulation.h"
#include "cuda_emulation/emulator/api.h"
#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/memory.h"

using namespace dlbench::cuda_emulation;

namespace {

DeviceMemory& memory() {
  return DeviceMemory::instance();
}

cudaError_t refuse_capture(const char* function) {
  return refuse(cudaErrorStreamCaptureUnsupported,
                fmt::format("{} is not permitted while a stream is being captured", function));
}

bool is_device(const void* pointer) {
  return memory().find(pointer) != nullptr;
}

// One sentence when [pointer, pointer + bytes) is not inside one live allocation; empty when it is.
std::string outside(const void* pointer, size_t bytes) {
  const size_t there = memory().bytes_from(pointer);
  if (there >= bytes) return "";
  const Allocation* a = memory().find(pointer);
  if (!a) return fmt::format("{} is no device memory", pointer);
  return fmt::format("{} bytes from byte {} of device allocation #{} ({} bytes{})", bytes,
                     static_cast<const uint8_t*>(pointer) - a->pointer, a->number, a->bytes, a->freed ? ", freed" : "");
}

struct Direction {
  bool from_device, to_device;
};

cudaError_t find_direction(const void* to, const void* from, cudaMemcpyKind kind, Direction* out) {
  const Direction seen{is_device(from), is_device(to)};
  switch (kind) {
    case cudaMemcpyHostToHost:
      *out = {false, false};
      break;
    case cudaMemcpyHostToDevice:
      *out = {false, true};
      break;
    case cudaMemcpyDeviceToHost:
      *out = {true, false};
      break;
    case cudaMemcpyDeviceToDevice:
      *out = {true, true};
      break;
    case cudaMemcpyDefault:
      *out = seen;
      break;
  }
  if (out->from_device != seen.from_device || out->to_device != seen.to_device) {
    return refuse(cudaErrorInvalidValue,
                  fmt::format("the direction of a copy says {} to {}, but the pointers are {} and {} memory",
                              out->from_device ? "device" : "host", out->to_device ? "device" : "host",
                              seen.from_device ? "device" : "host", seen.to_device ? "device" : "host"));
  }
  return cudaSuccess;
}

cudaError_t enqueue_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, CUstream_st* stream) {
  if (bytes == 0) return cudaSuccess;
  Direction direction{};
  if (const cudaError_t error = find_direction(to, from, kind, &direction)) return error;
  if (direction.from_device && !outside(from, bytes).empty()) {
    return refuse(cudaErrorInvalidValue, "cudaMemcpy reads " + outside(from, bytes));
  }
  if (direction.to_device && !outside(to, bytes).empty()) {
    return refuse(cudaErrorInvalidValue, "cudaMemcpy writes " + outside(to, bytes));
  }
  std::shared_ptr<std::vector<uint8_t>> staged;
  if (!direction.from_device && direction.to_device && !memory().is_pinned(from) && !stream->capture) {
    const auto* begin = static_cast<const uint8_t*>(from);
    staged = std::make_shared<std::vector<uint8_t>>(begin, begin + bytes);
  }
  Streams::instance().enqueue(stream, fmt::format("cudaMemcpy of {} bytes", bytes), [=] {
    if (direction.from_device && !outside(from, bytes).empty()) fail("cudaMemcpy reads " + outside(from, bytes));
    if (direction.to_device && !outside(to, bytes).empty()) fail("cudaMemcpy writes " + outside(to, bytes));
    std::memmove(to, staged ? staged->data() : from, bytes);
  });
  return cudaSuccess;
}

cudaError_t enqueue_set(void* to, int value, size_t bytes, CUstream_st* stream) {
  if (bytes == 0) return cudaSuccess;
  if (!outside(to, bytes).empty()) return refuse(cudaErrorInvalidValue, "cudaMemset writes " + outside(to, bytes));
  Streams::instance().enqueue(stream, fmt::format("cudaMemset of {} bytes", bytes), [=] {
    if (!outside(to, bytes).empty()) fail("cudaMemset writes " + outside(to, bytes));
    std::memset(to, value, bytes);
  });
  return cudaSuccess;
}

cudaError_t refuse_stream() {
  return refuse(cudaErrorInvalidResourceHandle, "the handle is no stream");
}

}  // namespace

namespace dlbench::cuda_emulation {

bool is_device_accessible(const void* pointer) {
  if (pointer == nullptr || memory().is_pinned(pointer)) return true;
  const Allocation* a = memory().find(pointer);
  return a && !a->freed;
}

}  // namespace dlbench::cuda_emulation

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  const Call call;
  if (Streams::instance().forbidden_by_capture()) return refuse_capture("cudaMalloc");
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = memory().allocate(bytes);
  if (*pointer) return cudaSuccess;
  return refuse(cudaErrorMemoryAllocation,
                fmt::format("{} bytes asked for, {} of {} free", bytes, memory().free_bytes(), memory().total_bytes()));
}

cudaError_t cudaFree(void* pointer) {
  const Call call;
  if (pointer == nullptr) return cudaSuccess;
  if (Streams::instance().forbidden_by_capture()) return refuse_capture("cudaFree");
  Streams::instance().run_everything();  // cudaFree waits for the device
  if (memory().release(pointer)) return cudaSuccess;
  return refuse(cudaErrorInvalidValue,
                fmt::format("cudaFree: {} is not the start of a live device allocation", pointer));
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const Call call;
  *free = memory().free_bytes();
  *total = memory().total_bytes();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int) {
  const Call call;
  if (Streams::instance().forbidden_by_capture()) return refuse_capture("cudaHostAlloc");
  *pointer = bytes == 0 ? nullptr : memory().allocate_pinned(bytes);
  if (*pointer || bytes == 0) return cudaSuccess;
  return refuse(cudaErrorMemoryAllocation, fmt::format("{} bytes of pinned memory asked for", bytes));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  const Call call;
  if (pointer == nullptr) return cudaSuccess;
  if (Streams::instance().forbidden_by_capture()) return refuse_capture("cudaFreeHost");
  Streams::instance().run_everything();
  if (memory().release_pinned(pointer)) return cudaSuccess;
  return refuse(cudaErrorInvalidValue, fmt::format("cudaFreeHost: {} is no pinned allocation", pointer));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = Streams::instance().resolve(handle);
  return stream ? enqueue_copy(to, from, bytes, kind, stream) : refuse_stream();
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  const Call call;
  if (Streams::instance().forbidden_by_capture()) return refuse_capture("cudaMemcpy");
  CUstream_st* legacy = Streams::instance().resolve(nullptr);
  if (const cudaError_t error = enqueue_copy(to, from, bytes, kind, legacy)) return error;
  if (kind != cudaMemcpyDeviceToDevice) Streams::instance().run_all(legacy);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = Streams::instance().resolve(handle);
  return stream ? enqueue_set(to, value, bytes, stream) : refuse_stream();
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  const Call call;
  if (Streams::instance().forbidden_by_capture()) return refuse_capture("cudaMemset");
  return enqueue_set(to, value, bytes, Streams::instance().resolve(nullptr));
}
