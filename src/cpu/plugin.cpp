// The symbol by which the program finds the CPU backend. Twin: src/gpu/plugin.cu.
#include "core/device/plugin.h"

#include "core/base/error.h"
#include "cpu/device.h"

namespace {

dlbench::ProbeResult probe() {
  dlbench::ProbeResult result;
  try {
    const dlbench::cpu::Blas& blas = dlbench::cpu::Blas::instance();
    result.absence = blas.absence;
    result.sentence = blas.sentence;
    if (blas.absence == dlbench::Absence::none) result.devices.push_back(dlbench::cpu::describe_cpu(blas, 0));
  } catch (const std::exception& e) {
    result.absence = dlbench::Absence::library_unfit;
    result.sentence = std::string("The CPU backend can't look at OpenBLAS: ") + e.what();
  }
  return result;
}

std::unique_ptr<dlbench::Device> create(int index, const dlbench::DeviceOptions& options) {
  if (index != 0)
    throw dlbench::DeviceAbsentError("cpu:" + std::to_string(index) + " doesn't exist: all CPUs are one device, cpu");
  return std::make_unique<dlbench::cpu::CpuDevice>(options);
}

constexpr dlbench::BackendPlugin kPlugin = {DLB_BACKEND_FINGERPRINT, "cpu", probe, create};

}  // namespace

DLB_EXPORT_BACKEND(kPlugin)
