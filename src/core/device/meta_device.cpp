#include "core/device/meta_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/device/meta_noise.h"
#include "core/device/meta_ops.h"

namespace dlbench {

namespace {

class VirtualClock final : public Clock {
 public:
  double now_seconds() override { return now_; }
  void advance(double seconds) { now_ += seconds; }

 private:
  double now_ = 0;
};

/// Addresses that no process can map (not canonical on x86-64 and aarch64): reading one by mistake ends at once.
class VirtualMemory {
 public:
  explicit VirtualMemory(std::string device, int64_t capacity_bytes)
      : device_(std::move(device)), capacity_(capacity_bytes) {}

  void* allocate(size_t bytes) {
    if (bytes > static_cast<size_t>(free())) {
      throw OutOfMemoryError(
          fmt::format("{}: {} bytes were asked for, {} of {} are free", device_, bytes, free(), capacity_));
    }
    const uintptr_t address = next_;
    next_ += (bytes / kAlignment + 2) * kAlignment;  // a gap between blocks, so that an address belongs to one of them
    blocks_[address] = bytes;
    used_ += static_cast<int64_t>(bytes);
    return reinterpret_cast<void*>(address);
  }
  void deallocate(const void* pointer) {
    const auto block = blocks_.find(reinterpret_cast<uintptr_t>(pointer));
    if (block == blocks_.end()) return;
    used_ -= static_cast<int64_t>(block->second);
    blocks_.erase(block);
  }
  /// @throws Error when the range isn't inside one block: a mistake of the caller.
  void require_inside(const void* pointer, size_t bytes) const {
    const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
    auto block = blocks_.upper_bound(address);
    if (block != blocks_.begin()) {
      --block;
      if (address - block->first <= block->second && bytes <= block->second - (address - block->first)) return;
    }
    throw Error(fmt::format("{}: a copy touches {} bytes at {} that are not allocated", device_, bytes, pointer));
  }
  int64_t free() const { return capacity_ - used_; }

 private:
  static constexpr uintptr_t kAlignment = 256;
  std::string device_;
  int64_t capacity_, used_ = 0;
  uintptr_t next_ = uintptr_t{1} << 60;
  std::map<uintptr_t, size_t> blocks_;
};

DeviceInfo meta_info(Side side, const MetaProfile& profile, int threads) {
  DeviceInfo info;
  info.id = fmt::format("meta:{}", to_string(side));
  info.kind = "meta";
  info.side = side;
  info.name = fmt::format("meta {} (virtual clock, computes nothing)", to_string(side));
  info.memory_bytes = profile.memory_bytes;
  info.threads = threads;
  info.last_level_cache_bytes = profile.last_level_cache_bytes;
  return info;
}

class VirtualDevice final : public MetaDevice {
 public:
  VirtualDevice(Side side, const MetaOptions& options, int threads)
      : options_(options),
        profile_(side == Side::cpu ? options.cpu : options.gpu),
        info_(meta_info(side, profile_, threads > 0 && side == Side::cpu ? threads : profile_.threads)),
        memory_(info_.id, profile_.memory_bytes),
        noise_(options),
        ops_(side, [this](Op op, Precision precision, const Cost& cost, const auto& text) {
          run(op, precision, cost, text);
        }) {
    const double share = std::min(1.0, static_cast<double>(info_.threads) / profile_.threads);
    profile_.flop_per_s *= share;
    profile_.bytes_per_s *= share;
  }

  const DeviceInfo& info() const override { return info_; }
  Ops& ops() override { return ops_; }
  Clock& clock() override { return clock_; }

  void* allocate(size_t bytes) override {
    ++allocations_;
    return memory_.allocate(bytes);
  }
  void deallocate(void* pointer) noexcept override { memory_.deallocate(pointer); }
  void* allocate_host(size_t bytes, HostMemory) override {
    void* pointer = std::calloc(bytes ? bytes : 1, 1);
    if (!pointer) throw OutOfMemoryError(fmt::format("{}: no host memory for {} bytes", info_.id, bytes));
    return pointer;
  }
  void deallocate_host(void* pointer, HostMemory) noexcept override { std::free(pointer); }
  int64_t free_memory() const override { return memory_.free(); }

  void copy_to_device(void* device, const void*, size_t bytes) override {
    memory_.require_inside(device, bytes);
    move("copy_to_device", bytes, static_cast<double>(bytes) / profile_.link_bytes_per_s);
  }
  void copy_to_host(void* host, const void* device, size_t bytes) override {
    memory_.require_inside(device, bytes);
    if (bytes) std::memset(host, 0, bytes);
    move("copy_to_host", bytes, static_cast<double>(bytes) / profile_.link_bytes_per_s);
  }
  void copy_on_device(void* to, const void* from, size_t bytes) override {
    memory_.require_inside(to, bytes);
    memory_.require_inside(from, bytes);
    move("copy_on_device", bytes, 2 * static_cast<double>(bytes) / profile_.bytes_per_s);
  }
  void set_bytes(void* device, uint8_t, size_t bytes) override {
    memory_.require_inside(device, bytes);
    move("set_bytes", bytes, static_cast<double>(bytes) / profile_.bytes_per_s);
  }

  void synchronize() override {
    if (options_.hang_seconds > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options_.hang_seconds));
    if (lost_) lose();
    noise_.next_timing();
  }

  Support supports_graphs() const override {
    if (info_.side == Side::gpu) return {};
    return {SupportLevel::no, "meta:cpu has no graphs, as no CPU has"};
  }
  std::unique_ptr<Graph> capture(const std::function<void(Ops&)>& body) override {
    if (info_.side == Side::cpu) return nullptr;
    std::vector<OpRecord> ops;
    capturing_ = &ops;
    try {
      body(ops_);
    } catch (...) {
      capturing_ = nullptr;
      throw;
    }
    capturing_ = nullptr;
    return std::make_unique<VirtualGraph>(*this, std::move(ops));
  }

  void start_device_timer() override { timer_start_ = busy_seconds_; }
  std::optional<double> stop_device_timer_seconds() override {
    if (info_.side == Side::cpu) return std::nullopt;
    return busy_seconds_ - timer_start_;
  }
  int64_t allocation_count() const override { return allocations_; }

  void record_ops(bool on) override { recording_ = on; }
  std::vector<OpRecord> take_records() override { return std::exchange(records_, {}); }
  Cost total_cost() const override { return total_; }

 private:
  class VirtualGraph final : public Graph {
   public:
    VirtualGraph(VirtualDevice& device, std::vector<OpRecord> ops)
        : device_(device), ops_(std::move(ops)), name_("graph") {
      for (const OpRecord& record : ops_) name_ += "; " + name_of(record);
    }
    void replay() override { device_.replay(ops_, name_); }

   private:
    VirtualDevice& device_;
    std::vector<OpRecord> ops_;
    std::string name_;
  };

  static std::string name_of(const OpRecord& r) {
    return fmt::format("{} {} {}", to_string(r.op), to_string(r.precision), r.spec);
  }
  double work_seconds(const Cost& cost) const {
    return std::max(cost.flops / profile_.flop_per_s, cost.bytes() / profile_.bytes_per_s);
  }

  /// One op of the stream, or one node of a graph that is being captured.
  void run(Op op, Precision precision, const Cost& cost, const std::function<std::string()>& text) {
    if (capturing_) {
      capturing_->push_back({op, precision, text(), cost});
      return;
    }
    count(cost);
    std::string name;
    if (recording_ || noise_.needs_names()) {
      const OpRecord record{op, precision, text(), cost};
      name = name_of(record);
      if (recording_) records_.push_back(record);
    }
    spend(name, work_seconds(cost));
  }

  void replay(const std::vector<OpRecord>& ops, const std::string& name) {
    double seconds = 0;
    for (const OpRecord& record : ops) {
      count(record.cost);
      if (recording_) records_.push_back(record);
      seconds += work_seconds(record.cost);
    }
    spend(name, seconds);
  }

  void move(const char* what, size_t bytes, double seconds) {
    if (lost_) lose();
    spend(noise_.needs_names() ? fmt::format("{} bytes={}", what, bytes) : "", seconds);
  }

  void count(const Cost& cost) {
    if (lost_) lose();
    ++op_count_;
    if (options_.crash_after_ops >= 0 && op_count_ > options_.crash_after_ops) std::abort();
    if (options_.fail_after_ops >= 0 && op_count_ > options_.fail_after_ops) {
      lost_ = true;
      lose();
    }
    total_ += cost;
  }

  void spend(const std::string& name, double seconds) {
    const double factor = noise_.factor(name, clock_.now_seconds());
    busy_seconds_ += seconds * factor;
    clock_.advance((profile_.launch_seconds + seconds) * factor);
  }

  [[noreturn]] void lose() const {
    throw DeviceLostError(
        fmt::format("{}: lost after {} ops, as its options ask for", info_.id, options_.fail_after_ops));
  }

  MetaOptions options_;
  MetaProfile profile_;
  DeviceInfo info_;
  VirtualClock clock_;
  VirtualMemory memory_;
  MetaNoise noise_;
  MetaOps ops_;
  std::vector<OpRecord>* capturing_ = nullptr;
  std::vector<OpRecord> records_;
  Cost total_;
  bool recording_ = false, lost_ = false;
  int64_t op_count_ = 0, allocations_ = 0;
  double busy_seconds_ = 0, timer_start_ = 0;
};

}  // namespace

std::unique_ptr<MetaDevice> make_meta_device(Side side, const MetaOptions& options, int threads) {
  return std::make_unique<VirtualDevice>(side, options, threads);
}

}  // namespace dlbench
