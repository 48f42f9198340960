// The decision table of absence.h.
#include "gpu/absence.h"

#include <fmt/format.h>

namespace dlbench::gpu {

std::string cuda_version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

namespace {

ProbeResult absent(Absence absence, std::string sentence) {
  return {absence, std::move(sentence), {}};
}

/// CUDA drivers run programs of every older release and of a newer minor release of the same major one (CUDA
/// Compatibility, "Minor Version Compatibility").
bool driver_too_old(const ObservedFacts& facts) {
  return facts.insufficient_driver || facts.driver_version / 1000 < facts.runtime_version / 1000;
}

}  // namespace

ProbeResult judge(const ObservedFacts& facts) {
  if (!facts.driver_library) {
    return absent(
        Absence::driver_missing,
        fmt::format("no NVIDIA driver: libcuda.so.1 can't be opened ({}); install the NVIDIA driver for CUDA {} or "
                    "newer",
                    facts.driver_library_error, cuda_version_text(facts.runtime_version)));
  }
  if (driver_too_old(facts)) {
    const std::string has = facts.driver_version == 0 ? std::string("the NVIDIA driver reports no CUDA version")
                                                      : fmt::format("the NVIDIA driver is for CUDA {}",
                                                                    cuda_version_text(facts.driver_version));
    return absent(
        Absence::driver_too_old,
        fmt::format("{} and this build of dlbench needs {}.0 or newer; update the driver, or build dlbench with "
                    "an older CUDA toolkit",
                    has, facts.runtime_version / 1000));
  }
  if (facts.devices.empty()) {
    const std::string why = facts.device_error.empty() ? "the driver lists none" : facts.device_error;
    return absent(Absence::device_missing,
                  fmt::format("no CUDA device ({}); check nvidia-smi, the devices given to this container, and "
                              "CUDA_VISIBLE_DEVICES",
                              why));
  }
  ProbeResult result;
  for (const ObservedDevice& device : facts.devices) {
    if (device.compute_capability >= facts.lowest_compute_capability) result.devices.push_back(device.info);
  }
  if (result.devices.empty()) {
    const ObservedDevice& first = facts.devices.front();
    return absent(
        Absence::device_missing,
        fmt::format("{} has compute capability {}.{} and this build of dlbench needs {}.{} or newer; build it with "
                    "-DDLBENCH_CUDA_ARCHITECTURES={} and a CUDA toolkit that still supports it",
                    first.info.name, first.compute_capability / 10, first.compute_capability % 10,
                    facts.lowest_compute_capability / 10, facts.lowest_compute_capability % 10,
                    first.compute_capability));
  }
  if (!facts.blas_found) {
    return absent(Absence::library_missing,
                  fmt::format("{} isn't found beside the GPU backend or on the library path; install cuBLAS of CUDA {} "
                              "(package libcublas-{}-{} of NVIDIA's repository) or add its folder to LD_LIBRARY_PATH",
                              facts.blas_missing, facts.runtime_version / 1000, facts.runtime_version / 1000,
                              facts.runtime_version % 1000 / 10));
  }
  return result;
}

}  // namespace dlbench::gpu
