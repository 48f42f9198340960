// How the emulator ends a program that did what CUDA forbids: one sentence on stderr, then abort.
//
// Why: on a GPU these are silent wrong numbers, hangs, or an error reported somewhere else.
// Promises: the sentence names the kernel (or call), block and thread, and the memory. Death tests match it.
#pragma once

#include <fmt/format.h>

#include <string>

namespace dlbench::cuda_emulation {

/// Prints "CUDA emulation: <sentence>" and aborts.
[[noreturn]] void fail(const std::string& sentence);

/// What runs now, e.g. "kernel axpy, block (0,0,0), thread (33,0,0)"; empty when no queued work runs.
std::string running();

/// Installs the handler of SIGSEGV that explains an access to device memory, once; chains to the one before it.
void install_fault_handler();

}  // namespace dlbench::cuda_emulation
