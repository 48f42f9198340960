// What the files that implement the CUDA runtime's functions share: the last error, and why it came.
//
// Why: as in the real runtime a failed call also sets the error that cudaGetLastError returns; here a sentence goes
// with it, for the person who debugs the caller.
#pragma once

#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <mutex>
#include <string>

#include "cuda_emulation/emulator/stream.h"

namespace dlbench::cuda_emulation {

/// Sets the last error and the sentence of `why()`; returns `error`.
cudaError_t refuse(cudaError_t error, const std::string& sentence);
void set_why(const std::string& sentence);

/// Locks the emulator for one call of the API.
class Call {
 public:
  Call() : lock_(Streams::instance().mutex) {}

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace dlbench::cuda_emulation
