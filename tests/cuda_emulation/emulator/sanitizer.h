// AddressSanitizer, where it is compiled in: poisoned memory and switches between stacks.
//
// Why: ASan must be told that the stack pointer moves to a fibre's stack, or it takes every frame there for an overflow
// (sanitizer/common_interface_defs.h: __sanitizer_start_switch_fiber). Debian's Boost.Context isn't built with its
// support. Promises: without ASan every function does nothing.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace dlbench::cuda_emulation::sanitizer {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kActive = true;
inline void poison(const void* begin, size_t bytes) {
  __asan_poison_memory_region(begin, bytes);
}
inline void unpoison(const void* begin, size_t bytes) {
  __asan_unpoison_memory_region(begin, bytes);
}
/// Before leaving the current stack for the one at [bottom, bottom + size).
inline void leave_for(void** saved, const void* bottom, size_t size) {
  __sanitizer_start_switch_fiber(saved, bottom, size);
}
/// First thing after arriving; tells where one came from.
inline void arrive(void* saved, const void** bottom, size_t* size) {
  __sanitizer_finish_switch_fiber(saved, bottom, size);
}
#else
inline constexpr bool kActive = false;
inline void poison(const void*, size_t) {}
inline void unpoison(const void*, size_t) {}
inline void leave_for(void**, const void*, size_t) {}
inline void arrive(void*, const void**, size_t*) {}
#endif

}  // namespace dlbench::cuda_emulation::sanitizer
