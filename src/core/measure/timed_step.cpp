#include "core/measure/timed_step.h"

#include "core/base/error.h"

namespace dlbench {

/// Where the copies of streamed data come from.
struct TimedStep::HostCopy {
  Device* device;
  HostMemory kind;
  int set;
  void* target;
  size_t bytes;
  void* host;

  HostCopy(Device& d, HostMemory k, int s, void* t, size_t b)
      : device(&d), kind(k), set(s), target(t), bytes(b), host(d.allocate_host(b, k)) {}
  HostCopy(HostCopy&& o) noexcept
      : device(o.device), kind(o.kind), set(o.set), target(o.target), bytes(o.bytes), host(o.host) {
    o.host = nullptr;
  }
  HostCopy& operator=(HostCopy&&) = delete;
  ~HostCopy() {
    if (host) device->deallocate_host(host, kind);
  }
};

StepMode step_mode(const Point& point) {
  StepMode mode;
  const auto word = [&point](const char* axis) {
    const AxisValue* value = point.find(axis);
    return value ? to_string(*value) : std::string();
  };
  mode.graph = word("launch") == "graph";
  if (word("data") == "streamed") mode.streamed = HostMemory::pinned;
  if (word("data") == "streamed_pageable") mode.streamed = HostMemory::pageable;
  return mode;
}

TimedStep::TimedStep(Workload& workload, Device& device, const BufferSets& buffers, const StepMode& mode)
    : workload_(workload), device_(device), buffers_(buffers), mode_(mode) {
  if (!mode_.streamed) return;
  for (int set = 0; set < buffers_.sets(); ++set) {
    for (size_t i = 0; i < workload_.buffers().size(); ++i) {
      const BufferSpec& spec = workload_.buffers()[i];
      const size_t bytes = static_cast<size_t>(byte_count(spec.shape, spec.dtype));
      if (spec.role != BufferRole::input || bytes == 0) continue;
      host_copies_.emplace_back(device_, *mode_.streamed, set, buffers_.binding(set)[i], bytes);
      device_.copy_to_host(host_copies_.back().host, host_copies_.back().target, bytes);
    }
  }
  device_.synchronize();
}

TimedStep::~TimedStep() = default;

void TimedStep::prepare() {
  for (int set = 0; set < buffers_.sets(); ++set) {
    workload_.step(device_, buffers_.binding(set));
    device_.synchronize();
    steps_ += mode_.graph ? 2 : 1;
    if (!mode_.graph) continue;
    graphs_.push_back(device_.capture([&](Ops&) { workload_.step(device_, buffers_.binding(set)); }));
    if (!graphs_.back()) throw UnsupportedError("this device has no graphs: " + device_.supports_graphs().reason);
    graphs_.back()->replay();
    device_.synchronize();
  }
}

void TimedStep::step() {
  for (HostCopy& copy : host_copies_) {
    if (copy.set == set_) device_.copy_to_device(copy.target, copy.host, copy.bytes);
  }
  if (mode_.graph) {
    graphs_[static_cast<size_t>(set_)]->replay();
  } else {
    workload_.step(device_, buffers_.binding(set_));
  }
  if (++set_ == buffers_.sets()) set_ = 0;
}

TimedStep::Timing TimedStep::time(int64_t steps) {
  Clock& clock = device_.clock();
  Timing timing;
  device_.synchronize();
  const int64_t allocations = device_.allocation_count();
  device_.start_device_timer();
  const double start = clock.now_seconds();
  for (int64_t i = 0; i < steps; ++i) step();
  timing.device_seconds = device_.stop_device_timer_seconds();
  device_.synchronize();
  timing.wall_seconds = clock.now_seconds() - start;
  steps_ += steps;
  allocations_ += device_.allocation_count() - allocations;
  return timing;
}

}  // namespace dlbench
