#include "core/device/reference_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "core/base/error.h"
#include "core/device/reference_ops.h"

namespace dlbench {

namespace {

constexpr size_t kAlignment = 256;

DeviceInfo reference_info() {
  DeviceInfo info;
  info.id = info.kind = "reference";
  info.name = "reference (naive loops, sums in double, one thread)";
  info.memory_bytes = int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  return info;
}

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(const ReferenceOptions& options) : info_(reference_info()), ops_(options) {}
  ~ReferenceDevice() override {
    for (const auto& [pointer, bytes] : blocks_) std::free(pointer);
  }

  const DeviceInfo& info() const override { return info_; }
  Ops& ops() override { return ops_; }
  Clock& clock() override { return clock_; }

  void* allocate(size_t bytes) override {
    ++allocations_;
    if (bytes > static_cast<size_t>(free_memory())) refuse(bytes);
    // aligned_alloc wants a multiple of the alignment; an empty buffer still gets an address of its own.
    const size_t rounded = bytes ? (bytes + kAlignment - 1) / kAlignment * kAlignment : kAlignment;
    void* pointer = std::aligned_alloc(kAlignment, rounded);
    if (!pointer) refuse(bytes);
    blocks_.emplace(pointer, bytes);
    used_ += static_cast<int64_t>(bytes);
    return pointer;
  }
  void deallocate(void* pointer) noexcept override {
    const auto block = blocks_.find(pointer);
    if (block == blocks_.end()) return;
    used_ -= static_cast<int64_t>(block->second);
    blocks_.erase(block);
    std::free(pointer);
  }
  void* allocate_host(size_t bytes, HostMemory) override { return allocate(bytes); }
  void deallocate_host(void* pointer, HostMemory) noexcept override { deallocate(pointer); }
  int64_t free_memory() const override { return info_.memory_bytes - used_; }

  void copy_to_device(void* device, const void* host, size_t bytes) override { copy(device, host, bytes); }
  void copy_to_host(void* host, const void* device, size_t bytes) override { copy(host, device, bytes); }
  void copy_on_device(void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }
  void set_bytes(void* device, uint8_t value, size_t bytes) override {
    if (bytes) std::memset(device, value, bytes);
  }

  void synchronize() override {}
  Support supports_graphs() const override { return {SupportLevel::no, "reference has no graphs"}; }
  std::unique_ptr<Graph> capture(const std::function<void(Ops&)>&) override { return nullptr; }
  int64_t allocation_count() const override { return allocations_; }

 private:
  static void copy(void* to, const void* from, size_t bytes) {
    if (bytes) std::memmove(to, from, bytes);
  }
  [[noreturn]] void refuse(size_t bytes) const {
    throw OutOfMemoryError(
        fmt::format("reference: {} bytes were asked for, {} of {} are free", bytes, free_memory(), info_.memory_bytes));
  }

  DeviceInfo info_;
  ReferenceOps ops_;
  SteadyClock clock_;
  std::unordered_map<void*, size_t> blocks_;
  int64_t used_ = 0, allocations_ = 0;
};

}  // namespace

std::unique_ptr<Device> make_reference_device(const ReferenceOptions& options) {
  return std::make_unique<ReferenceDevice>(options);
}

}  // namespace dlbench
