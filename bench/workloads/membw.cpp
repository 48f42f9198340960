// membw: bandwidth of the level of the memory hierarchy that `bytes` fits into: read, copy and triad.
//
// Why: the measured bandwidths are the slanted lines of the roofline. `bytes` is everything the step touches (sources
// and destination), so the same value means the same level for the three ops. As in STREAM (McCalpin 1995), but counted
// as compulsory traffic: a write-allocate read isn't counted.
#include <cmath>

#include "workloads/catalog.h"
#include "workloads/op_workload.h"

namespace dlbench {

namespace {

constexpr int64_t kElementBytes = 4;

/// A sum of everything: one read per element and nothing else.
class ReadWorkload final : public OpWorkload {
 public:
  explicit ReadWorkload(int64_t bytes) : OpWorkload(Op::reduce, Precision::fp32) {
    spec_.extent = reduction_length_ = bytes / kElementBytes;
    magnitude_ = std::sqrt(static_cast<double>(spec_.extent));  // of a sum of values of unit variance
    add_input("x", {spec_.extent});
    add_output("sum", {1});
    declare_work(cost_of(spec_), bytes, "bytes");
    work_.samples = work_.cost.bytes();
  }
  void step(Device& device, const Binding& b) override { device.ops().reduce(spec_, b[0], b[1]); }

 private:
  ReduceSpec spec_;
};

class CopyWorkload final : public OpWorkload {
 public:
  explicit CopyWorkload(int64_t bytes)
      : OpWorkload(Op::copy, Precision::fp32), spec_{.n = bytes / (2 * kElementBytes)} {
    add_input("x", {spec_.n});
    add_output("y", {spec_.n});
    declare_work(cost_of(Op::copy, spec_), bytes, "bytes");
    work_.samples = work_.cost.bytes();
  }
  void step(Device& device, const Binding& b) override { device.ops().copy(spec_, b[0], b[1]); }

 private:
  VectorSpec spec_;
};

/// z = x + a*y
class TriadWorkload final : public OpWorkload {
 public:
  explicit TriadWorkload(int64_t bytes)
      : OpWorkload(Op::triad, Precision::fp32), spec_{.n = bytes / (3 * kElementBytes)} {
    add_input("x", {spec_.n});
    add_input("y", {spec_.n});
    add_output("z", {spec_.n});
    declare_work(cost_of(Op::triad, spec_), bytes, "bytes");
    work_.samples = work_.cost.bytes();
  }
  void step(Device& device, const Binding& b) override { device.ops().triad(spec_, 0.5f, b[0], b[1], b[2]); }

 private:
  VectorSpec spec_;
};

std::unique_ptr<Workload> create(const Point& point) {
  const std::string& op = point.word("op");
  const int64_t bytes = point.integer("bytes");
  if (op == "read") return std::make_unique<ReadWorkload>(bytes);
  if (op == "copy") return std::make_unique<CopyWorkload>(bytes);
  return std::make_unique<TriadWorkload>(bytes);
}

}  // namespace

const WorkloadDescriptor& membw_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "membw",
      .workload_class = "system",
      .summary = "memory bandwidth by working set: read, copy and triad",
      .sweep_axis = "bytes",
      .axes = {{.name = "op",
                .kind = AxisKind::word,
                .fallback = "triad",
                .words = {"read", "copy", "triad"},
                .summary = "sum of everything, y = x, z = x + a*y"},
               {.name = "bytes",
                .fallback = int64_t{256} << 20,
                .low = 64,
                .summary = "bytes that a step touches, sources and destination together"}},
      .precisions = {Precision::fp32},
      .narrowed = {{"data", {"resident"}}, {"cache", {"warm"}}},
      .create = create};
  return descriptor;
}

}  // namespace dlbench
