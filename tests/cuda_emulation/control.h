// What tests may ask of the emulator and set; not part of CUDA.
//
// Why: tests need a device with little memory, or with no devices, and want to know why a call was refused.
// Promises: settings last until they are set again; DLBENCH_EMULATION_MEMORY_BYTES and DLBENCH_EMULATION_THREAD_ORDER
// (forward, reverse) set two of them from the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cuda_emulation/emulator/block.h"

namespace dlbench::cuda_emulation {

void set_device_memory_bytes(size_t bytes);
void set_device_count(int count);
void set_thread_order(ThreadOrder order);

/// Why the last refused call was refused, in one sentence.
std::string why();
/// Commands that no one has waited for yet, and those that have run since the start.
size_t queued_commands();
uint64_t commands_run();
/// Device allocations that have not been freed.
size_t live_allocations();

}  // namespace dlbench::cuda_emulation
