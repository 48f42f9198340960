// NVML: clocks, power, energy, throttling and settings of a GPU, from the driver's management library.
//
// Why: opened at run time and declared here, because the header isn't part of every CUDA installation and the library
// exists only with a driver. Source of names and values: NVIDIA Management Library (NVML) API reference, nvml.h.
// Promises: never throws; where the library, a function or a value is missing, the field stays empty.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "core/device/device.h"

namespace dlbench::gpu {

class Nvml {
 public:
  /// The device at a PCI address as cudaDeviceGetPCIBusId writes it; nullptr when NVML isn't usable here.
  static std::unique_ptr<Nvml> open(const std::string& pci_bus_id);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  Telemetry telemetry() const;
  /// driver_version, sm_clock_max_hz, memory_clock_max_hz, power_limit_watts, ecc, mig
  std::map<std::string, std::string> facts() const;

 private:
  struct Functions;
  Nvml();
  std::unique_ptr<Functions> functions_;
  void* library_ = nullptr;
  void* device_ = nullptr;
};

/// Names of the bits of nvmlClocksThrottleReasons that slow a device down; idle isn't one.
std::string throttle_reason_names(unsigned long long bits);

}  // namespace dlbench::gpu
