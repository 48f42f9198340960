// Shared memory of the running block: one arena for arrays of fixed size, one for the dynamic part, both as large as a
// block may have, filled with NaN at the start of each block and guarded by patterns (poisoned under AddressSanitizer).
#include <algorithm>
#include <cstring>

#include "cuda_emulation/emulator/block.h"
#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/sanitizer.h"

namespace dlbench::cuda_emulation {
namespace {

constexpr uint8_t kFresh = 0xFF, kGuard = 0xC5;
constexpr size_t kGuardBytes = 64;
constexpr size_t kArenaBytes = 2 * kMaxSharedBytes;

bool is_guard(const uint8_t* begin) {
  return std::all_of(begin, begin + kGuardBytes, [](uint8_t byte) { return byte == kGuard; });
}

uint8_t* aligned(uint8_t* begin) {
  return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(begin) + 127) & ~uintptr_t{127});
}

}  // namespace

void BlockRunner::reset_shared() {
  if (!static_arena_) {
    static_arena_ = std::make_unique<uint8_t[]>(kArenaBytes);
    dynamic_arena_ = std::make_unique<uint8_t[]>(kMaxSharedBytes + 256 + kGuardBytes);
  }
  sanitizer::poison(static_arena_.get(), kArenaBytes);
  arrays_.clear();
  uint8_t* dynamic = aligned(dynamic_arena_.get());
  sanitizer::unpoison(dynamic, kMaxSharedBytes + kGuardBytes);
  std::memset(dynamic, kFresh, launch_->shared_bytes);
  std::memset(dynamic + launch_->shared_bytes, kGuard, kGuardBytes);
  sanitizer::poison(dynamic + launch_->shared_bytes, kMaxSharedBytes + kGuardBytes - launch_->shared_bytes);
}

void* BlockRunner::static_shared(const void* key, size_t bytes, size_t alignment, const char* name) {
  uint8_t* base = aligned(static_arena_.get());
  for (const SharedArray& a : arrays_) {
    if (a.key == key) return base + a.offset;
  }
  const size_t end = arrays_.empty() ? 0 : arrays_.back().offset + arrays_.back().bytes + kGuardBytes;
  const size_t offset = (end + alignment - 1) / alignment * alignment;
  size_t sum = bytes + launch_->shared_bytes;
  for (const SharedArray& a : arrays_) sum += a.bytes;
  if (sum > kMaxSharedBytes || offset + bytes + kGuardBytes + 128 > kArenaBytes) {
    fail_thread(current_, fmt::format("declares {} bytes of shared memory with `{}`; a block has {}", sum, name,
                                      kMaxSharedBytes));
  }
  sanitizer::unpoison(base + offset, bytes + kGuardBytes);
  std::memset(base + offset, kFresh, bytes);
  std::memset(base + offset + bytes, kGuard, kGuardBytes);
  sanitizer::poison(base + offset + bytes, kGuardBytes);
  arrays_.push_back({key, name, offset, bytes});
  return base + offset;
}

void BlockRunner::check_shared() const {
  if (sanitizer::kActive) return;
  const std::string block =
      fmt::format("kernel {}, block ({},{},{})", launch_->name, blockIdx.x, blockIdx.y, blockIdx.z);
  uint8_t* base = aligned(static_arena_.get());
  for (const SharedArray& a : arrays_) {
    if (!is_guard(base + a.offset + a.bytes)) {
      fail(fmt::format("{} wrote past the end of the shared array `{}` ({} bytes)", block, a.name, a.bytes));
    }
  }
  if (!is_guard(aligned(dynamic_arena_.get()) + launch_->shared_bytes)) {
    fail(fmt::format("{} wrote past the end of its {} bytes of dynamic shared memory", block, launch_->shared_bytes));
  }
}

void* BlockRunner::dynamic_shared() {
  return aligned(dynamic_arena_.get());
}

void* dynamic_shared() {
  return BlockRunner::instance().dynamic_shared();
}

void* static_shared(const void* key, size_t bytes, size_t alignment, const char* name) {
  return BlockRunner::instance().static_shared(key, bytes, alignment, name);
}

}  // namespace dlbench::cuda_emulation
