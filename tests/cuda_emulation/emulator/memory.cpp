#include "cuda_emulation/emulator/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/sanitizer.h"

namespace dlbench::cuda_emulation {
namespace {

constexpr size_t kAlignment = 256;    // CUDA C++ Programming Guide, "Device Memory Accesses"
constexpr uint8_t kSlackByte = 0xC5;  // between an allocation and the ends of its pages
constexpr uint8_t kFreshByte = 0xFF;  // an all-ones float of any width is NaN
constexpr size_t kFilledBytes =
    256 << 10;  // of larger allocations the beginning and the end: touching pages costs time
constexpr size_t kFreedKept = 256;
constexpr size_t kDefaultTotalBytes = size_t{2} << 30;

size_t round_up(size_t value, size_t to) {
  return (value + to - 1) / to * to;
}

uintptr_t address_of(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

size_t total_from_environment() {
  const char* text = std::getenv("DLBENCH_EMULATION_MEMORY_BYTES");
  return text ? std::strtoull(text, nullptr, 10) : kDefaultTotalBytes;
}

void protect(const Allocation& a, int protection) {
  if (mprotect(a.pages, a.pages_bytes, protection) != 0) fail("mprotect of device memory failed");
}

const uint8_t* first_changed(const uint8_t* begin, const uint8_t* end) {
  return std::find_if(begin, end, [](uint8_t byte) { return byte != kSlackByte; });
}

}  // namespace

DeviceMemory& DeviceMemory::instance() {
  // Never destroyed: the runtime is used by destructors of static objects, as the real one may be.
  static DeviceMemory* memory = new DeviceMemory;
  return *memory;
}

DeviceMemory::DeviceMemory() : total_(total_from_environment()), page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
  install_fault_handler();
}

void* DeviceMemory::allocate(size_t bytes) {
  const size_t charged = round_up(bytes, kAlignment);
  if (charged < bytes || charged > free_bytes()) return nullptr;
  Allocation a;
  a.bytes = bytes;
  a.pages_bytes = round_up(charged, page_);
  a.mapping_bytes = a.pages_bytes + 2 * page_;
  void* mapping = mmap(nullptr, a.mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  a.number = next_number_++;
  a.mapping = static_cast<uint8_t*>(mapping);
  a.pages = a.mapping + page_;
  a.pointer = a.pages + a.pages_bytes - charged;
  protect(a, PROT_READ | PROT_WRITE);
  std::memset(a.pages, kSlackByte, static_cast<size_t>(a.pointer - a.pages));
  std::memset(a.pointer, kFreshByte, std::min(bytes, kFilledBytes));
  if (bytes > kFilledBytes) std::memset(a.pointer + bytes - kFilledBytes / 2, kFreshByte, kFilledBytes / 2);
  std::memset(a.pointer + bytes, kSlackByte, charged - bytes);
  sanitizer::poison(a.pages, static_cast<size_t>(a.pointer - a.pages));
  sanitizer::poison(a.pointer + bytes, charged - bytes);
  if (depth_ == 0) protect(a, PROT_NONE);
  used_ += charged;
  live_.emplace(address_of(a.mapping), a);
  return a.pointer;
}

bool DeviceMemory::release(void* pointer) {
  const Allocation* found = find(pointer);
  if (!found || found->freed || found->pointer != pointer) return false;
  Allocation a = *found;
  live_.erase(address_of(a.mapping));
  used_ -= round_up(a.bytes, kAlignment);
  protect(a, PROT_NONE);
  sanitizer::unpoison(a.pages, a.pages_bytes);
  madvise(a.pages, a.pages_bytes, MADV_DONTNEED);
  a.freed = true;
  freed_.push_back(a);
  if (freed_.size() > kFreedKept) {
    munmap(freed_.front().mapping, freed_.front().mapping_bytes);
    freed_.pop_front();
  }
  return true;
}

const Allocation* DeviceMemory::find(const void* address) const {
  const auto holds = [&](const Allocation& a) { return address_of(address) - address_of(a.mapping) < a.mapping_bytes; };
  const auto after = live_.upper_bound(address_of(address));
  if (after != live_.begin() && holds(std::prev(after)->second)) return &std::prev(after)->second;
  const auto freed = std::find_if(freed_.begin(), freed_.end(), holds);
  return freed == freed_.end() ? nullptr : &*freed;
}

size_t DeviceMemory::bytes_from(const void* address) const {
  const Allocation* a = find(address);
  if (!a || a->freed || address < a->pointer || address >= a->pointer + a->bytes) return 0;
  return static_cast<size_t>(a->pointer + a->bytes - static_cast<const uint8_t*>(address));
}

void DeviceMemory::open() {
  if (depth_++ > 0) return;
  for (const auto& [start, a] : live_) protect(a, PROT_READ | PROT_WRITE);
}

void DeviceMemory::close() {
  if (--depth_ > 0) return;
  for (const auto& [start, a] : live_) protect(a, PROT_NONE);
}

void DeviceMemory::check_slack(const std::string& culprit) const {
  if (sanitizer::kActive) return;
  for (const auto& [start, a] : live_) {
    if (first_changed(a.pages, a.pointer) != a.pointer) {
      fail(fmt::format("{} wrote {} bytes before the start of device allocation #{} ({} bytes)", culprit,
                       a.pointer - first_changed(a.pages, a.pointer), a.number, a.bytes));
    }
    const uint8_t* end = a.pages + a.pages_bytes;
    const uint8_t* changed = first_changed(a.pointer + a.bytes, end);
    if (changed != end) {
      fail(fmt::format("{} wrote {} bytes past the end of device allocation #{} ({} bytes)", culprit,
                       changed - (a.pointer + a.bytes) + 1, a.number, a.bytes));
    }
  }
}

void* DeviceMemory::allocate_pinned(size_t bytes) {
  void* pointer = std::aligned_alloc(page_, round_up(std::max<size_t>(bytes, 1), page_));
  if (pointer) pinned_.emplace(address_of(pointer), bytes);
  return pointer;
}

bool DeviceMemory::release_pinned(void* pointer) {
  if (pinned_.erase(address_of(pointer)) == 0) return false;
  std::free(pointer);
  return true;
}

bool DeviceMemory::is_pinned(const void* pointer) const {
  const auto after = pinned_.upper_bound(address_of(pointer));
  if (after == pinned_.begin()) return false;
  const auto& [start, bytes] = *std::prev(after);
  return address_of(pointer) - start < std::max<size_t>(bytes, 1);
}

}  // namespace dlbench::cuda_emulation
