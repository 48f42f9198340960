// GpuDevice: memory, order, time and identity of one NVIDIA GPU. Twin: src/cpu/device.h.
//
// Promises: one non-blocking stream, on which everything is enqueued in order, and a second one for uploads that run
// beside it, ordered by events; allocations come straight from
// cudaMalloc, so a buffer lies where the first call put it for its whole life; pinned host memory on request; graphs by
// capturing the stream. Nothing else allocates: workspace and scratch are taken when the device is created. Use it from
// the thread that created it: CUDA's current device belongs to a thread.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <map>
#include <memory>
#include <string>

#include "core/device/device.h"
#include "core/device/plugin.h"
#include "gpu/blas.cuh"
#include "gpu/nvml.h"
#include "gpu/ops.h"

namespace dlbench::gpu {

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  enum class Kind : uint8_t { timed, order_only };
  explicit Event(Kind kind);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class GpuDevice final : public Device {
 public:
  /// @throws DeviceAbsentError, OutOfMemoryError
  explicit GpuDevice(int index);
  ~GpuDevice() override;

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

  void start_upload(int slot, void* device, const void* host, size_t bytes) override;
  void finish_upload(int slot) override;
  void release_upload(int slot) override;
  bool uploads_overlap() const override { return true; }

  void synchronize() override;
  Support supports_graphs() const override { return {}; }
  std::unique_ptr<Graph> capture(const std::function<void(Ops&)>& body) override;

  void start_device_timer() override;
  std::optional<double> stop_device_timer_seconds() override;
  Telemetry telemetry() override;

  int64_t allocation_count() const override { return allocation_count_; }

 private:
  static constexpr size_t kUploadSlots = 2;
  /// @throws std::out_of_range unless the slot is 0 or 1
  static cudaEvent_t at_slot(const std::array<std::unique_ptr<Event>, kUploadSlots>& events, int slot) {
    return events.at(static_cast<size_t>(slot))->get();
  }
  void make_current();
  void make_ops();

  int index_;
  SteadyClock clock_;
  DeviceInfo info_;
  Hardware hardware_;
  int64_t allocation_count_ = 0;
  std::unique_ptr<BlasLibrary> blas_library_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Event> timer_start_, timer_stop_;
  std::unique_ptr<Stream> upload_stream_;
  std::array<std::unique_ptr<Event>, kUploadSlots> uploaded_, released_;  ///< per slot
  bool uploading_ = false;  ///< something was put on the upload stream since the last synchronize
  void* workspace_ = nullptr;
  void* scratch_ = nullptr;
  std::unique_ptr<Blas> blas_;
  std::unique_ptr<GpuOps> ops_;
  std::unique_ptr<Nvml> nvml_;
};

/// What cudaGetDeviceProperties says about a device; used by probe and by the device itself.
DeviceInfo describe_device(int index, const cudaDeviceProp& properties);

}  // namespace dlbench::gpu
