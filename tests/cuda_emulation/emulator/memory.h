// Device memory: pages nobody may touch but queued work while it runs.
//
// Why: on a GPU the host's dereference of a device pointer crashes; in host memory it would quietly work.
// Promises: an allocation ends at the end of its pages (up to its alignment of 256 bytes), with a page that is never
// accessible on either side; the bytes between the allocation and its page ends hold a pattern that is checked after
// every command (with AddressSanitizer they are poisoned instead). Fresh memory is filled with 0xFF, NaN in every float
// type (of allocations above 256 KiB, the beginning and the end). Freed memory stays inaccessible until many later
// allocations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

namespace dlbench::cuda_emulation {

struct Allocation {
  int number = 0;              ///< counts from 1; how sentences name it
  size_t bytes = 0;            ///< as asked for
  uint8_t* pointer = nullptr;  ///< what the caller got
  uint8_t* pages = nullptr;    ///< first accessible byte while work runs
  size_t pages_bytes = 0;
  uint8_t* mapping = nullptr;  ///< guard page, pages, guard page
  size_t mapping_bytes = 0;
  bool freed = false;
};

class DeviceMemory {
 public:
  static DeviceMemory& instance();

  /// nullptr when `bytes` exceeds what is free.
  void* allocate(size_t bytes);
  /// False when `pointer` isn't the start of an allocation.
  bool release(void* pointer);

  size_t total_bytes() const { return total_; }
  size_t free_bytes() const { return total_ - used_; }
  size_t allocation_count() const { return live_.size(); }
  void set_total_bytes(size_t bytes) { total_ = bytes; }

  /// The allocation, live or freed, whose pages or guard pages hold `address`; nullptr when none does.
  const Allocation* find(const void* address) const;
  /// Bytes from `address` to the end of its live allocation; 0 outside of any.
  size_t bytes_from(const void* address) const;

  /// Makes live memory accessible; calls nest.
  void open();
  void close();
  bool is_open() const { return depth_ > 0; }
  /// Ends the program when a byte beside an allocation has changed.
  void check_slack(const std::string& culprit) const;

  /// Pinned host memory: known, so that copies and kernels can be told apart from pageable memory.
  void* allocate_pinned(size_t bytes);
  bool release_pinned(void* pointer);
  bool is_pinned(const void* pointer) const;

 private:
  DeviceMemory();
  std::map<uintptr_t, Allocation> live_;  ///< by the start of the mapping
  std::deque<Allocation> freed_;
  std::map<uintptr_t, size_t> pinned_;
  size_t total_, used_ = 0, page_;
  int depth_ = 0, next_number_ = 1;
};

}  // namespace dlbench::cuda_emulation
