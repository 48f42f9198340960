// TrainingOpWorkload: what the workloads of the ops of training have in common beside OpWorkload.
//
// Why: these ops write several outputs, each with its own tolerance, and ask the device for a workspace.
// Promises: every output is verified; the workspace, where there is one, is the last buffer and takes its size when the
// device is known (`adapt`).
#pragma once

#include <algorithm>
#include <cmath>

#include "workloads/op_workload.h"

namespace dlbench {

class TrainingOpWorkload : public OpWorkload {
 public:
  OutputTolerance tolerance(size_t buffer) const override {
    return buffer < tolerances_.size() ? tolerances_[buffer] : OutputTolerance{};
  }
  void adapt(Device& device) override {
    set_layout(device.ops().preferred_image_layout());
    const int64_t bytes = workspace_bytes(device.ops());
    if (!has_workspace_ && bytes == 0) return;
    if (!has_workspace_) buffers_.push_back({.name = "workspace", .role = BufferRole::scratch, .dtype = DType::u8});
    has_workspace_ = true;
    buffers_.back().shape = {bytes};
  }
  void prepare(Device& device) override { adapt(device); }

 protected:
  using OpWorkload::OpWorkload;

  /// What the op asks this device for, in bytes.
  virtual int64_t workspace_bytes(const Ops&) const { return 0; }
  /// Called with the layout that the device prefers; ops over images follow it unless the point fixes one.
  virtual void set_layout(ImageLayout) {}

  /// Means, losses and optimizer state.
  DType statistics() const { return accumulate_of(precision_); }
  /// An output in the storage type. @param magnitude typical size of an exact value; 0: what the values show
  void add_result(std::string name, Shape shape, int64_t reduction_length, double magnitude = 0) {
    add_output(std::move(name), std::move(shape));
    set_tolerance(reduction_length, magnitude, precision_);
  }
  /// An output in the statistics type, made of inputs as they are.
  void add_statistics(std::string name, Shape shape, int64_t reduction_length, double magnitude = 0) {
    add_output(std::move(name), std::move(shape), statistics());
    set_tolerance(reduction_length, magnitude, statistics_precision());
  }
  /// Read and written; verified after one step.
  void add_state(std::string name, Shape shape, DType dtype, BufferInit init, double scale, int64_t reduction_length) {
    byte_count(shape, dtype);
    buffers_.push_back({.name = std::move(name),
                        .role = BufferRole::state,
                        .shape = std::move(shape),
                        .dtype = dtype,
                        .init = init,
                        .scale = scale,
                        .verified = true});
    set_tolerance(reduction_length, 1, dtype == statistics() ? statistics_precision() : precision_);
  }
  void add_statistics_input(std::string name, Shape shape, BufferInit init, double scale) {
    byte_count(shape, statistics());
    buffers_.push_back(
        {.name = std::move(name), .shape = std::move(shape), .dtype = statistics(), .init = init, .scale = scale});
  }
  /// Whole numbers from 0 to bound - 1.
  void add_indices(std::string name, Shape shape, DType dtype, uint32_t bound) {
    byte_count(shape, dtype);
    buffers_.push_back({.name = std::move(name),
                        .shape = std::move(shape),
                        .dtype = dtype,
                        .init = BufferInit::uniform_index,
                        .index_bound = bound});
  }
  void* workspace(const Binding& b) const {
    return has_workspace_ && buffers_.back().shape.front() > 0 ? b.back() : nullptr;
  }

  /// Of the buffer that was added last.
  void set_tolerance(int64_t reduction_length, double magnitude, Precision precision) {
    tolerances_.resize(buffers_.size());
    tolerances_.back() = {.op_class = class_of(op_),
                          .reduction_length = reduction_length,
                          .precision = precision,
                          .magnitude = magnitude};
  }

 private:
  Precision statistics_precision() const { return statistics() == DType::f64 ? Precision::fp64 : Precision::fp32; }
  std::vector<OutputTolerance> tolerances_;  ///< by buffer
  bool has_workspace_ = false;
};

/// The axes that most of them have.
inline AxisSpec forward_backward_axis() {
  return {.name = "pass",
          .kind = AxisKind::word,
          .fallback = "forward",
          .words = {"forward", "backward"},
          .summary = "the op or its gradient"};
}
inline AxisSpec layout_axis() {
  return {.name = "layout",
          .kind = AxisKind::word,
          .fallback = "preferred",
          .words = {"preferred", "nchw", "nhwc"},
          .summary = "order of images in memory; preferred: what the device says is fast"};
}
inline AxisSpec extent_axis(std::string name, int64_t fallback, std::string summary, AxisCondition only_when = {},
                            int64_t low = 1) {
  return {.name = std::move(name),
          .fallback = fallback,
          .low = low,
          .high = int64_t{1} << 31,
          .summary = std::move(summary),
          .only_when = std::move(only_when)};
}
/// The layout that a point asks for, where it isn't the device's choice.
inline bool fixes_layout(const Point& point, ImageLayout& layout) {
  const std::string& word = point.word("layout");
  if (word == "preferred") return false;
  layout = word == "nhwc" ? ImageLayout::nhwc : ImageLayout::nchw;
  return true;
}

}  // namespace dlbench
