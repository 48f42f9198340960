// Workloads made of a lambda, for tests of the harness.
#pragma once

#include <functional>
#include <utility>

#include "core/train/workload.h"

namespace dlbench::test {

using Step = std::function<void(Device&, const Binding&)>;

class LambdaWorkload : public Workload {
 public:
  LambdaWorkload(std::vector<BufferSpec> buffers, Step step, OutputTolerance tolerance = {})
      : buffers_(std::move(buffers)), step_(std::move(step)), tolerance_(tolerance) {}
  const std::vector<BufferSpec>& buffers() const override { return buffers_; }
  Work work() const override { return {.cost = {}, .samples = 1, .sample_unit = "launches", .working_set_bytes = 0}; }
  Support supported_by(Device&) const override { return {}; }
  OutputTolerance tolerance(size_t) const override { return tolerance_; }
  void step(Device& device, const Binding& buffers) override { step_(device, buffers); }

 private:
  std::vector<BufferSpec> buffers_;
  Step step_;
  OutputTolerance tolerance_;
};

inline BufferSpec buffer(std::string name, BufferRole role, int64_t n, DType type = DType::f32,
                         BufferInit init = BufferInit::normal) {
  BufferSpec spec;
  spec.name = std::move(name);
  spec.role = role;
  spec.shape = {n};
  spec.dtype = type;
  spec.init = init;
  return spec;
}

}  // namespace dlbench::test
