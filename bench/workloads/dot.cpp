// dot: the scalar product of pairs of vectors; the smallest reduction, where launch and synchronisation cost most.
#include <cmath>

#include "workloads/catalog.h"
#include "workloads/op_workload.h"

namespace dlbench {

namespace {

class DotWorkload final : public OpWorkload {
 public:
  explicit DotWorkload(const Point& point)
      : OpWorkload(Op::dot, point.precision()),
        spec_{.precision = precision_, .n = point.integer("n"), .batch = point.integer("batch")} {
    add_input("x", {spec_.batch, spec_.n});
    add_input("y", {spec_.batch, spec_.n});
    add_output("out", {spec_.batch}, accumulate_of(precision_));
    reduction_length_ = spec_.n;
    // A sum of n products of independent values of unit variance.
    magnitude_ = std::sqrt(static_cast<double>(spec_.n));
    declare_work(cost_of(Op::dot, spec_), spec_.batch, "vectors");
  }
  void step(Device& device, const Binding& b) override { device.ops().dot(spec_, b[0], b[1], b[2]); }

 private:
  VectorSpec spec_;
};

}  // namespace

const WorkloadDescriptor& dot_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "dot",
      .workload_class = "ops",
      .summary = "scalar products of pairs of vectors",
      .sweep_axis = "batch",
      .axes = {{.name = "n", .fallback = int64_t{1} << 20, .summary = "elements of a vector"},
               {.name = "batch", .fallback = int64_t{1}, .summary = "pairs of vectors"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> { return std::make_unique<DotWorkload>(point); }};
  return descriptor;
}

}  // namespace dlbench
