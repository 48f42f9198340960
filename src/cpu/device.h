// The CPU as a device: memory, threads and identity. Twin: src/gpu/device.h.
//
// Promises: work is done when the call returns, so `synchronize` does nothing; memory is touched first by the threads
// that will work on it, in huge pages where the kernel gives them, small buffers side by side in them; denormals are
// flushed to zero while the device lives.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/device/device.h"
#include "core/device/plugin.h"
#include "cpu/blas.h"
#include "cpu/ops.h"
#include "cpu/parallel.h"

namespace dlbench::cpu {

/// What `dlbench info` shows: needs no device and starts no thread. @param threads 0: every usable CPU
DeviceInfo describe_cpu(const Blas& blas, int threads);

class CpuDevice final : public Device {
 public:
  /// @throws DeviceAbsentError, UsageError for more threads than usable CPUs
  explicit CpuDevice(const DeviceOptions& options);
  ~CpuDevice() override;

  const DeviceInfo& info() const override { return info_; }
  Ops& ops() override { return *ops_; }
  Clock& clock() override { return clock_; }
  void* allocate(size_t bytes) override;
  void deallocate(void* pointer) noexcept override;
  void* allocate_host(size_t bytes, HostMemory kind) override;
  void deallocate_host(void* pointer, HostMemory kind) noexcept override;
  int64_t free_memory() const override;
  void copy_to_device(void* device, const void* host, size_t bytes) override;
  void copy_to_host(void* host, const void* device, size_t bytes) override;
  void copy_on_device(void* to, const void* from, size_t bytes) override;
  void set_bytes(void* device, uint8_t value, size_t bytes) override;
  void synchronize() override {}
  Support supports_graphs() const override;
  std::unique_ptr<Graph> capture(const std::function<void(Ops&)>& body) override;
  Telemetry telemetry() override;
  int64_t allocation_count() const override { return allocations_; }

  Team& team() { return *team_; }

 private:
  uint32_t floating_point_state_ = 0;
  int64_t allocations_ = 0;
  DeviceInfo info_;
  SteadyClock clock_;
  enum class Origin : uint8_t { heap, slab, mapped };
  struct Given {
    int64_t bytes;
    Origin origin;
  };
  /// Huge pages that small buffers are cut from.
  struct Slab {
    char* begin;
    size_t used;
    int live;  ///< buffers given out
  };
  void* give(void* pointer, size_t bytes, Origin origin);
  void* map_huge_pages(size_t bytes);
  void* from_slab(size_t bytes);
  void back_to_slab(void* pointer);
  void release(void* pointer, const Given& given);
  std::vector<Slab> slabs_;
  std::unordered_map<void*, Given> given_;
  int64_t given_bytes_ = 0, memory_at_start_ = 0;
  std::unique_ptr<Team> team_;
  std::unique_ptr<CpuOps> ops_;
};

}  // namespace dlbench::cpu
