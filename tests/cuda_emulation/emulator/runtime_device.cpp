// The CUDA runtime's functions about devices, versions and errors (CUDA Runtime API, "Device Management", "Error
// Handling").
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "cuda_emulation/control.h"
#include "cuda_emulation/emulator/api.h"
#include "cuda_emulation/emulator/memory.h"

namespace dlbench::cuda_emulation {
namespace {

struct State {
  cudaError_t last_error = cudaSuccess;
  std::string why;
  int device_count = 1;
};

State& state() {
  static State* state = new State;
  return *state;
}

// Of the emulated device: every precision of cuBLASLt, and one multiprocessor so that grids stay small.
// One multiprocessor and a small cache: what src/gpu cuts to their size is cut often.
constexpr int kMajor = 9, kMinor = 0, kMultiprocessors = 1, kL2Bytes = 1 << 16;

}  // namespace

cudaError_t refuse(cudaError_t error, const std::string& sentence) {
  state().last_error = error;
  state().why = sentence;
  return error;
}

void set_why(const std::string& sentence) {
  state().why = sentence;
}

std::string why() {
  return state().why;
}
void set_device_memory_bytes(size_t bytes) {
  DeviceMemory::instance().set_total_bytes(bytes);
}
void set_device_count(int count) {
  state().device_count = count;
}
void set_thread_order(ThreadOrder order) {
  BlockRunner::instance().set_order(order);
}
size_t queued_commands() {
  return Streams::instance().queued();
}
uint64_t commands_run() {
  return Streams::instance().commands_run();
}
size_t live_allocations() {
  return DeviceMemory::instance().allocation_count();
}

}  // namespace dlbench::cuda_emulation

using namespace dlbench::cuda_emulation;

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
  const Call call;
  *count = state().device_count;
  return *count > 0 ? cudaSuccess : refuse(cudaErrorNoDevice, "the emulator was told to have no device");
}

static cudaError_t check_device(int device) {
  if (device >= 0 && device < state().device_count) return cudaSuccess;
  return refuse(cudaErrorInvalidDevice,
                fmt::format("there is no device {}; there are {}", device, state().device_count));
}

cudaError_t cudaSetDevice(int device) {
  const Call call;
  return check_device(device);
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  const Call call;
  if (const cudaError_t error = check_device(device)) return error;
  std::snprintf(id, static_cast<size_t>(length), "0000:00:00.0");
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  const Call call;
  if (const cudaError_t error = check_device(device)) return error;
  cudaDeviceProp& p = *properties;
  p = {};
  std::snprintf(p.name, sizeof p.name, "emulated GPU (CUDA on the CPU, for tests only)");
  p.totalGlobalMem = DeviceMemory::instance().total_bytes();
  p.sharedMemPerBlock = p.sharedMemPerMultiprocessor = p.sharedMemPerBlockOptin = kMaxSharedBytes;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = kWarpLanes;
  p.maxThreadsPerBlock = p.maxThreadsPerMultiProcessor = static_cast<int>(kMaxThreadsPerBlock);
  p.maxThreadsDim[0] = p.maxThreadsDim[1] = static_cast<int>(kMaxThreadsPerBlock);
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = INT32_MAX;
  p.maxGridSize[1] = p.maxGridSize[2] = UINT16_MAX;
  p.major = kMajor;
  p.minor = kMinor;
  p.multiProcessorCount = kMultiprocessors;
  p.l2CacheSize = kL2Bytes;
  p.maxBlocksPerMultiProcessor = 32;
  p.concurrentKernels = p.asyncEngineCount = p.unifiedAddressing = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp p;
  if (const cudaError_t error = cudaGetDeviceProperties(&p, device)) return error;
  // The enumeration is CUDA's, of more than a hundred values; those not emulated are refused, so a default is right
  // here.
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = p.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = p.minor;
      return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      *value = p.multiProcessorCount;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = p.maxThreadsPerBlock;
      return cudaSuccess;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = p.maxThreadsPerMultiProcessor;
      return cudaSuccess;
    case cudaDevAttrWarpSize:
      *value = p.warpSize;
      return cudaSuccess;
    case cudaDevAttrL2CacheSize:
      *value = p.l2CacheSize;
      return cudaSuccess;
    default:
      return refuse(cudaErrorInvalidValue,
                    fmt::format("device attribute {} isn't emulated", static_cast<int>(attribute)));
  }
}

cudaError_t cudaGetLastError() {
  const Call call;
  return std::exchange(state().last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return state().last_error;
}

// The errors that the emulator returns; any other value is none of its own.
static const struct {
  cudaError_t error;
  const char *name, *text;
} kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const char* cudaGetErrorName(cudaError_t error) {
  for (const auto& row : kErrors) {
    if (row.error == error) return row.name;
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  for (const auto& row : kErrors) {
    if (row.error == error) return row.text;
  }
  return "unrecognized error code";
}
