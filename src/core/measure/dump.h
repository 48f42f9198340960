// Dump: one training step as files that NumPy reads: `manifest.json` and one .npy per tensor.
//
// Why: PyTorch is the outside oracle. scripts/verify_pytorch.py recomputes the step from these files alone.
// Promises: names and layouts are PyTorch's (images NCHW, filters KCRS), whatever the device prefers; gradients are
// those of the loss, without loss scale; parameters are the ones that the optimizer updates. bf16 has no NumPy type:
// its values are written as f4, exactly, and `dtype` says bf16. Format: results/README.md.
#pragma once

#include <filesystem>

#include "core/train/workload.h"

namespace dlbench {

/// Runs one step of `workload` on `device` from its initial state and writes it. The folder is made; it must be absent
/// or empty. @throws UsageError when it isn't, or the workload is no model; Error when something can't be written.
void dump_step(Workload& workload, const Point& point, Device& device, uint64_t seed,
               const std::filesystem::path& directory);

/// The shape that PyTorch gives a tensor, and its values in that order. Exposed for its test.
struct TorchView;
HostTensor torch_tensor(const HostTensor& stored, const TorchView& view);

/// NumPy's format 1.0 of a tensor. https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
std::string npy_bytes(const HostTensor& tensor);

}  // namespace dlbench
