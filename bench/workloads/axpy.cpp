// axpy: y = a x + y in place; what an SGD step without momentum does to the weights.
//
// y grows by a*x every step. With a = 2^-10 and |x| <= 3.5 (base/random.h) it stays below 3.5 + 3.5*t/1024 after t
// steps: 3,400 after 10^6 of them, far from fp16's 65,504; later 16-bit sums stop growing, because a*x is then less
// than half a unit in the last place of y. Values never shrink towards denormals.
#include "workloads/catalog.h"
#include "workloads/op_workload.h"

namespace dlbench {

namespace {

constexpr float kFactor = 0x1p-10f;

class AxpyWorkload final : public OpWorkload {
 public:
  explicit AxpyWorkload(const Point& point)
      : OpWorkload(Op::axpy, point.precision()),
        spec_{.precision = precision_, .n = point.integer("n"), .batch = point.integer("batch")} {
    add_input("x", {spec_.batch, spec_.n});
    add_input("y", {spec_.batch, spec_.n}, 1.0, BufferRole::state);
    buffers_.back().verified = true;
    declare_work(cost_of(Op::axpy, spec_), spec_.batch, "vectors");
  }
  void step(Device& device, const Binding& b) override { device.ops().axpy(spec_, kFactor, b[0], b[1]); }

 private:
  VectorSpec spec_;
};

}  // namespace

const WorkloadDescriptor& axpy_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "axpy",
      .workload_class = "ops",
      .summary = "y = a x + y in place",
      .sweep_axis = "batch",
      .axes = {{.name = "n", .fallback = int64_t{1} << 20, .summary = "elements of a vector"},
               {.name = "batch", .fallback = int64_t{1}, .summary = "vectors"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> { return std::make_unique<AxpyWorkload>(point); }};
  return descriptor;
}

}  // namespace dlbench
