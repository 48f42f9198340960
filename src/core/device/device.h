// Device: memory, order, time and identity of one piece of hardware (or software) that can run Ops.
//
// Why: the harness allocates, copies, synchronises and times without knowing what it measures.
// Promises: everything is enqueued on one in-order stream; `synchronize` returns when all of it is done; the destructor
// releases what the device owns and logs (never throws).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/device/ops.h"
#include "core/measure/clock.h"

namespace dlbench {

/// Which side of a comparison a device stands on.
enum class Side : uint8_t { cpu, gpu };
std::string_view to_string(Side side);

struct DeviceInfo {
  std::string id;    ///< as in point keys: "cpu", "gpu:0", "reference", "meta:gpu"
  std::string kind;  ///< "cpu", "gpu", "reference", "meta"
  Side side = Side::cpu;
  int index = 0;
  std::string name;                    ///< "AMD EPYC 9654", "NVIDIA H200"
  int64_t memory_bytes = 0;            ///< what a run may use in all
  int64_t last_level_cache_bytes = 0;  ///< 0: unknown; cache=rotate walks through more than twice as much
  int threads = 1;                     ///< cores in use (cpu), multiprocessors (gpu)
  bool emulated = false;               ///< a GPU emulated on the CPU: may be checked, never timed
  /// Facts for the environment record (library versions, OpenBLAS core name, clocks, power limit, ECC, …).
  std::map<std::string, std::string> facts;
};

/// A recorded sequence of ops that is launched as a whole (a CUDA graph). Holds the pointers it was captured with.
class Graph {
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;
};

enum class HostMemory : uint8_t { pageable, pinned };

/// What the hardware was doing around a block of timings; a field is empty where the device can't tell.
struct Telemetry {
  std::optional<double> clock_hz;  ///< core clock (SM clock on GPUs)
  std::optional<double> temperature_c;
  std::optional<double> power_watts;
  std::optional<double> energy_joules;  ///< a counter: subtract two readings
  std::string throttle_reasons;         ///< comma-separated; "" when none or unknown
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;
  virtual Ops& ops() = 0;
  /// The primary clock of timings on this device. The meta device has a virtual one.
  virtual Clock& clock() = 0;

  // Memory: 256-byte aligned. @throws OutOfMemoryError with the size asked for and what was free.
  virtual void* allocate(size_t bytes) = 0;
  virtual void deallocate(void* pointer) noexcept = 0;
  virtual void* allocate_host(size_t bytes, HostMemory kind) = 0;
  virtual void deallocate_host(void* pointer, HostMemory kind) noexcept = 0;
  /// Bytes that can still be allocated.
  virtual int64_t free_memory() const = 0;
  /// Host <-> device; enqueued in order. `host` must stay valid until `synchronize`. From pageable memory the call may
  /// block. On the CPU both are copies by all threads.
  virtual void copy_to_device(void* device, const void* host, size_t bytes) = 0;
  virtual void copy_to_host(void* host, const void* device, size_t bytes) = 0;
  /// Device to device, enqueued in order.
  virtual void copy_on_device(void* to, const void* from, size_t bytes) = 0;
  virtual void set_bytes(void* device, uint8_t value, size_t bytes) = 0;

  // Batches that arrive while the device computes. Two slots, 0 and 1, each with device buffers of its own. The loop:
  //   start_upload(0, batch 0); then per step i with slot s = i % 2:
  //   finish_upload(s); the ops of step i; release_upload(s); start_upload(1 - s, batch i + 1)
  // Where the device has no queue of its own for copies (this default), start_upload copies in the order of the calls
  // and the other two do nothing.
  /// Copies beside the ops, after those that `release_upload(slot)` covered; several copies may share a slot. `host`
  /// must stay valid until the next synchronize. From pageable memory the call may block while it copies, not before
  /// the ops that were enqueued have started.
  virtual void start_upload(int slot, void* device, const void* host, size_t bytes) {
    static_cast<void>(slot);
    copy_to_device(device, host, bytes);
  }
  /// Ops enqueued from here on see what was copied into the slot.
  virtual void finish_upload(int slot) { static_cast<void>(slot); }
  /// The ops enqueued so far were the last to use the slot's buffers; the next upload into it waits for them.
  virtual void release_upload(int slot) { static_cast<void>(slot); }
  /// Whether uploads run beside the ops.
  virtual bool uploads_overlap() const { return false; }

  // Order.
  virtual void synchronize() = 0;
  /// nullptr where the device has no graphs; the reason is in `supports_graphs`.
  virtual Support supports_graphs() const = 0;
  virtual std::unique_ptr<Graph> capture(const std::function<void(Ops&)>& body) = 0;

  // Time on the device itself (CUDA events); secondary to the wall clock. Empty where there is none.
  virtual void start_device_timer() {}
  virtual std::optional<double> stop_device_timer_seconds() { return std::nullopt; }
  virtual Telemetry telemetry() { return {}; }

  /// Allocations made since the start, by anything of this device: the runner asserts that a timed region adds none.
  virtual int64_t allocation_count() const = 0;
};

/// Device memory that frees itself.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device& device, size_t bytes) : device_(&device), data_(device.allocate(bytes)), bytes_(bytes) {}
  DeviceBuffer(DeviceBuffer&& o) noexcept : device_(o.device_), data_(o.data_), bytes_(o.bytes_) { o.data_ = nullptr; }
  DeviceBuffer& operator=(DeviceBuffer&& o) noexcept {
    if (this != &o) {
      release();
      device_ = o.device_, data_ = o.data_, bytes_ = o.bytes_;
      o.data_ = nullptr;
    }
    return *this;
  }
  ~DeviceBuffer() { release(); }
  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  void release() noexcept {
    if (data_) device_->deallocate(data_);
    data_ = nullptr;
  }
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace dlbench
