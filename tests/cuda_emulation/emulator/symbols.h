// The name of a function, from the symbol table of the file it was loaded from.
//
// Why: kernels have internal linkage, so dladdr doesn't know them, and a sentence about a fault must name the kernel.
#pragma once

#include <string>

namespace dlbench::cuda_emulation {

/// Demangled; empty when the file has been stripped or can't be read.
std::string function_name(const void* function);

}  // namespace dlbench::cuda_emulation
