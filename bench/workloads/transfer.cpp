// transfer: bytes from host memory to the device, or back.
//
// Why: a GPU that computes ten times faster may still lose to the time its data needs to get there.
// Promises: the host memory is allocated in `prepare`, never in the timed region; what arrives is compared bit for bit.
#include <cstring>

#include "workloads/catalog.h"

namespace dlbench {

namespace {

/// Host memory of the kind that the point asks for; freed before the device is.
class HostBuffer {
 public:
  HostBuffer(Device& device, size_t bytes, HostMemory kind)
      : device_(device), kind_(kind), data_(device.allocate_host(bytes, kind)) {}
  ~HostBuffer() { device_.deallocate_host(data_, kind_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  void* data() const { return data_; }

 private:
  Device& device_;
  HostMemory kind_;
  void* data_;
};

class TransferWorkload final : public Workload {
 public:
  explicit TransferWorkload(const Point& point)
      : to_device_(point.word("direction") == "to_device"),
        kind_(point.word("host_memory") == "pinned" ? HostMemory::pinned : HostMemory::pageable),
        bytes_(static_cast<size_t>(point.integer("bytes"))) {
    buffers_.push_back({.name = "data",
                        .role = to_device_ ? BufferRole::output : BufferRole::input,
                        .shape = {point.integer("bytes") / static_cast<int64_t>(sizeof(float))},
                        .dtype = DType::f32,
                        .init = to_device_ ? BufferInit::zero : BufferInit::normal});
  }

  const std::vector<BufferSpec>& buffers() const override { return buffers_; }
  /// Every byte crosses the link once: counted as written, not as read and written.
  Work work() const override {
    const auto bytes = static_cast<double>(bytes_);
    return {.cost = {.flops = 0, .bytes_read = 0, .bytes_written = bytes},
            .samples = bytes,
            .sample_unit = "bytes",
            .working_set_bytes = bytes};
  }
  Support supported_by(Device&) const override { return {}; }
  OutputTolerance tolerance(size_t) const override { return {.op_class = OpClass::exact}; }
  HostMemory host_memory() const override { return kind_; }

  void prepare(Device& device) override {
    host_ = std::make_unique<HostBuffer>(device, bytes_, kind_);
    auto* words = static_cast<uint32_t*>(host_->data());
    uint32_t value = 1;
    for (size_t i = 0; i < bytes_ / sizeof *words; ++i) {
      value = value * 1664525u + 1013904223u;  // Numerical Recipes' generator: every word differs from its neighbours
      words[i] = value;
    }
  }

  void step(Device& device, const Binding& b) override {
    if (to_device_) return device.copy_to_device(b[0], host_->data(), bytes_);
    device.copy_to_host(host_->data(), b[0], bytes_);
  }

  bool verifiable_by_reference() const override { return false; }
  std::string verify_self(Device&, const std::vector<HostTensor>& tensors) const override {
    if (std::memcmp(tensors.at(0).data(), host_->data(), bytes_) == 0) return "";
    return "the bytes that arrived differ from the bytes that were sent";
  }

 private:
  bool to_device_;
  HostMemory kind_;
  size_t bytes_;
  std::vector<BufferSpec> buffers_;
  std::unique_ptr<HostBuffer> host_;
};

std::string check(const Point& point) {
  const int64_t bytes = point.integer("bytes");
  return bytes % 4 == 0 ? "" : "bytes: " + std::to_string(bytes) + " is not allowed; must be a multiple of 4";
}

}  // namespace

const WorkloadDescriptor& transfer_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "transfer",
      .workload_class = "system",
      .summary = "copies between host memory and the GPU",
      .sweep_axis = "bytes",
      .axes = {{.name = "direction",
                .kind = AxisKind::word,
                .fallback = "to_device",
                .words = {"to_device", "to_host"},
                .summary = "where the bytes go"},
               {.name = "host_memory",
                .kind = AxisKind::word,
                .fallback = "pinned",
                .words = {"pageable", "pinned"},
                .summary = "kind of host memory"},
               {.name = "bytes", .fallback = int64_t{64} << 20, .low = 4, .summary = "bytes of a copy"}},
      .precisions = {Precision::fp32},
      .narrowed = {{"launch", {"stream"}}, {"data", {"resident"}}, {"cache", {"warm"}}},
      .sides = {Side::gpu},
      .check = check,
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<TransferWorkload>(point);
      }};
  return descriptor;
}

}  // namespace dlbench
