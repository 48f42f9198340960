// OpWorkload: what the workloads that are one call of one op have in common.
//
// Why: each of them is then its shapes, its declared work and one line of `step`.
// Promises: buffers stand in the order of the op's arguments; the output is the last one, and the only one verified.
#pragma once

#include "core/device/cost.h"
#include "core/train/workload.h"

namespace dlbench {

class OpWorkload : public Workload {
 public:
  const std::vector<BufferSpec>& buffers() const override { return buffers_; }
  Work work() const override { return work_; }
  Support supported_by(Device& device) const override { return device.ops().supports(op_, precision_); }
  OutputTolerance tolerance(size_t) const override {
    return {.op_class = class_of(op_),
            .reduction_length = reduction_length_,
            .precision = precision_,
            .magnitude = magnitude_};
  }

 protected:
  OpWorkload(Op op, Precision precision) : op_(op), precision_(precision) {}

  DType storage() const { return storage_of(precision_); }
  /// Normal values of this scale. An input can be rotated and streamed, a parameter (weights) can't.
  void add_input(std::string name, Shape shape, double scale = 1.0, BufferRole role = BufferRole::input) {
    byte_count(shape, storage());  // throws where it can't be counted, before anything multiplies the extents
    buffers_.push_back({.name = std::move(name),
                        .role = role,
                        .shape = std::move(shape),
                        .dtype = storage(),
                        .init = BufferInit::normal,
                        .scale = scale});
  }
  void add_output(std::string name, Shape shape) { add_output(std::move(name), std::move(shape), storage()); }
  void add_output(std::string name, Shape shape, DType dtype) {
    buffers_.push_back(
        {.name = std::move(name), .role = BufferRole::output, .shape = std::move(shape), .dtype = dtype});
  }
  /// The working set is everything the step touches, which for one op is all of its buffers.
  void declare_work(const Cost& cost, int64_t samples, std::string unit) {
    double bytes = 0;
    for (const BufferSpec& b : buffers_) bytes += static_cast<double>(byte_count(b.shape, b.dtype));
    work_ = {.cost = cost,
             .samples = static_cast<double>(samples),
             .sample_unit = std::move(unit),
             .working_set_bytes = bytes};
  }

  Op op_;
  Precision precision_;
  int64_t reduction_length_ = 1;
  double magnitude_ = 0;  ///< see OutputTolerance
  std::vector<BufferSpec> buffers_;
  Work work_;
};

}  // namespace dlbench
