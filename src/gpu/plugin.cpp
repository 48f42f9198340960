// The exported table of the GPU backend: probe and create. Twin: src/cpu/plugin.cpp.
#include "core/device/plugin.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include "core/base/error.h"
#include "gpu/absence.h"
#include "gpu/device.h"

namespace dlbench::gpu {
namespace {

#if !defined(DLB_LOWEST_COMPUTE_CAPABILITY)
#error "DLB_LOWEST_COMPUTE_CAPABILITY: the lowest architecture this backend is compiled for, e.g. 75"
#endif

void observe_driver(ObservedFacts& facts) {
#if defined(DLB_CUDA_EMULATION)
  facts.driver_library = true;
#else
  if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
    facts.driver_library = true;
    dlclose(driver);
  } else {
    facts.driver_library_error = dlerror();
  }
#endif
}

void observe_devices(ObservedFacts& facts) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    facts.insufficient_driver = error == cudaErrorInsufficientDriver;
    facts.device_error = fmt::format("{}: {}", cudaGetErrorName(error), cudaGetErrorString(error));
    return;
  }
  for (int index = 0; index < count; ++index) {
    cudaDeviceProp properties = {};
    if (cudaGetDeviceProperties(&properties, index) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      continue;
    }
    facts.devices.push_back({describe_device(index, properties), properties.major * 10 + properties.minor});
  }
}

ObservedFacts observe() {
  ObservedFacts facts;
  facts.lowest_compute_capability = DLB_LOWEST_COMPUTE_CAPABILITY;
  facts.runtime_version = CUDART_VERSION;
  observe_driver(facts);
  if (!facts.driver_library) return facts;
  static_cast<void>(cudaDriverGetVersion(&facts.driver_version));
  observe_devices(facts);
  if (facts.devices.empty()) return facts;
  const BlasLocation blas = locate_blas();
  facts.blas_found = blas.found;
  facts.blas_missing = blas.problem;
  return facts;
}

ProbeResult probe() {
  try {
    return judge(observe());
  } catch (const std::exception& error) {
    return {Absence::plugin_broken, fmt::format("the GPU backend can't look for devices: {}", error.what()), {}};
  }
}

std::unique_ptr<Device> create(int index, const DeviceOptions&) {
  const ProbeResult found = probe();
  if (found.absence != Absence::none) throw DeviceAbsentError(found.sentence);
  for (const DeviceInfo& info : found.devices) {
    if (info.index == index) return std::make_unique<GpuDevice>(index);
  }
  throw DeviceAbsentError(
      fmt::format("there is no usable gpu:{}; this machine has {} usable CUDA device(s), numbered from 0", index,
                  found.devices.size()));
}

const BackendPlugin kPlugin = {DLB_BACKEND_FINGERPRINT, "gpu", &probe, &create};

}  // namespace
}  // namespace dlbench::gpu

DLB_EXPORT_BACKEND(dlbench::gpu::kPlugin)
