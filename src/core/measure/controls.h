// Control kernels: the same small work at the start, middle and end of each process.
//
// Why: a change of a control tells a change of the machine from a change of the code. Work that depends on no config:
// ctrl.cpu_fma, ctrl.cpu_triad (72 MiB) on CPUs; ctrl.gpu_fma, ctrl.gpu_copy (128 MiB), ctrl.launch on GPUs.
#pragma once

#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/result/result.h"

namespace dlbench {

/// Median seconds per call of every control of the device's side that it supports; `placement` is left empty.
std::vector<ControlRow> run_controls(Device& device, const std::string& position, int process);

}  // namespace dlbench
