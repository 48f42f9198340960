// launch: what it costs to start work that does nothing: an empty kernel on a GPU, an empty parallel loop on the CPU.
//
// Why: this is the floor under every small batch. count=1 is one empty kernel per step; more is a train of them, and
// with launch=graph the train is replayed as one graph.
#include "workloads/catalog.h"

namespace dlbench {

namespace {

class LaunchWorkload final : public Workload {
 public:
  explicit LaunchWorkload(const Point& point) : count_(point.integer("count")) {}

  const std::vector<BufferSpec>& buffers() const override { return buffers_; }
  Work work() const override {
    return {.cost = {}, .samples = static_cast<double>(count_), .sample_unit = "launches", .working_set_bytes = 0};
  }
  Support supported_by(Device& device) const override { return device.ops().supports(Op::noop, Precision::fp32); }
  OutputTolerance tolerance(size_t) const override { return {.op_class = OpClass::exact}; }
  void step(Device& device, const Binding&) override {
    for (int64_t i = 0; i < count_; ++i) device.ops().noop();
  }
  /// There is nothing to compare: right is what returns.
  bool verifiable_by_reference() const override { return false; }

 private:
  int64_t count_;
  std::vector<BufferSpec> buffers_;
};

}  // namespace

const WorkloadDescriptor& launch_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "launch",
      .workload_class = "system",
      .summary = "starting work that does nothing: empty kernels, empty parallel loops",
      .sweep_axis = "count",
      .axes = {{.name = "count",
                .fallback = int64_t{1},
                .high = 65536,
                .summary = "launches of a step: 1 is an empty kernel, more is a train of them"}},
      .precisions = {Precision::fp32},
      .narrowed = {{"data", {"resident"}}, {"cache", {"warm"}}},
      .create = [](const Point& point) -> std::unique_ptr<Workload> {
        return std::make_unique<LaunchWorkload>(point);
      }};
  return descriptor;
}

}  // namespace dlbench
