// The contract between dlbench and a device backend: one exported C symbol in a shared object.
//
// Why: the program must start and measure the CPU on machines without CUDA; a backend that can't work here must say why
// in one sentence instead of failing to load.
// Promises: `dlbench_backend` is the only symbol looked up; a backend whose fingerprint differs from the program's is
// refused by name before anything else of it is called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace dlbench {

/// Changes whenever the ABI between the program and its backends does: raise the number with any change to a header
/// that device.h, ops.h or this file includes.
#define DLB_BACKEND_ABI_VERSION 2
#define DLB_STRINGIFY_(x) #x
#define DLB_STRINGIFY(x) DLB_STRINGIFY_(x)
#define DLB_BACKEND_FINGERPRINT                                                        \
  "dlbench-backend-" DLB_STRINGIFY(DLB_BACKEND_ABI_VERSION) "/gcc-abi-" DLB_STRINGIFY( \
      __GXX_ABI_VERSION) "/" DLB_STRINGIFY(__cplusplus)

/// Why a backend can't be used here; each is another sentence in `dlbench info`.
enum class Absence : uint8_t {
  none,             ///< usable
  plugin_missing,   ///< no libdlbench_backend_<kind>.so on the search path
  plugin_broken,    ///< the file can't be opened, has no symbol, or has another ABI
  library_missing,  ///< cuBLAS or cuBLASLt (or OpenBLAS) isn't found
  library_unfit,    ///< found, but not fit for use: the serial OpenBLAS variant
  driver_missing,
  driver_too_old,
  device_missing,
};
std::string_view to_string(Absence absence);

struct ProbeResult {
  Absence absence = Absence::none;
  std::string sentence;  ///< what is missing and what to do; empty when usable
  std::vector<DeviceInfo> devices;
};

struct DeviceOptions {
  int threads = 0;  ///< CPU threads; 0: every usable CPU
};

/// A statically allocated table that the exported function returns.
struct BackendPlugin {
  const char* fingerprint;  ///< DLB_BACKEND_FINGERPRINT; first member, so that it can be read whatever follows
  const char* kind;         ///< "cpu", "gpu"
  /// Finds out what is here. Cheap: loads no vendor BLAS unless a device was found. Never throws.
  ProbeResult (*probe)();
  /// @throws DeviceAbsentError, OutOfMemoryError
  std::unique_ptr<Device> (*create)(int index, const DeviceOptions& options);
};

using BackendEntry = const BackendPlugin* (*)();
inline constexpr const char* kBackendSymbol = "dlbench_backend";

}  // namespace dlbench

/// Placed once in a backend's plugin source.
#define DLB_EXPORT_BACKEND(table)                                                                       \
  extern "C" __attribute__((visibility("default"))) const ::dlbench::BackendPlugin* dlbench_backend() { \
    return &(table);                                                                                    \
  }
