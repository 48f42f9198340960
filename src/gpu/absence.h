// Why there is no usable GPU here: observed facts in, one sentence out.
//
// Why: the decision is a pure function, so that every absence is tested on a machine that has none of it.
// Promises: the absences are looked for in the order of their cause (driver, its age, devices, library); each sentence
// says what is missing and what to do.
#pragma once

#include <string>
#include <vector>

#include "core/device/plugin.h"

namespace dlbench::gpu {

struct ObservedDevice {
  DeviceInfo info;
  int compute_capability = 0;  ///< 10 * major + minor
};

struct ObservedFacts {
  bool driver_library = false;       ///< libcuda.so.1 could be opened
  std::string driver_library_error;  ///< what the loader said if not
  int driver_version = 0;            ///< as cudaDriverGetVersion: 1000 * major + 10 * minor; 0: none
  int runtime_version = 0;           ///< the CUDA runtime inside this backend
  bool insufficient_driver = false;  ///< the runtime itself refused the driver
  std::string device_error;          ///< name and text of the error of cudaGetDeviceCount, "" when it worked
  std::vector<ObservedDevice> devices;
  int lowest_compute_capability = 0;  ///< that this backend has code for
  bool blas_found = false;            ///< looked for only when there are devices
  std::string blas_missing;           ///< file that wasn't found
};

/// The devices that can be used, or why none can.
ProbeResult judge(const ObservedFacts& facts);

/// "12.4" from 12040.
std::string cuda_version_text(int version);

}  // namespace dlbench::gpu
