// TrainWorkload: one training step of a model (forward, loss, backward, update on one batch) as a workload.
//
// Why: the models of bench/workloads differ in how they are built and in nothing else.
// Promises: the step is the program of the model, planned for the device that `adapt` or `prepare` saw last.
#pragma once

#include <functional>

#include "core/train/model.h"

namespace dlbench {

class TrainWorkload final : public Workload {
 public:
  /// Builds the step for a batch size and image layout. @throws Error, std::invalid_argument for impossible shapes.
  using Build = std::function<TrainingModel(int64_t batch, ImageLayout layout)>;

  /// @param samples_per_item 1, or the tokens of a sequence
  TrainWorkload(Build build, int64_t batch, std::string sample_unit, int64_t samples_per_item = 1);

  const std::vector<BufferSpec>& buffers() const override { return model_.program.buffers(); }
  Work work() const override;
  Support supported_by(Device& device) const override;
  /// Not asked: the step is verified op by op.
  OutputTolerance tolerance(size_t) const override { return {.precision = model_.precision}; }
  void step(Device& device, const Binding& buffers) override { model_.program.run(device.ops(), buffers); }
  void adapt(Device& device) override;
  void prepare(Device& device) override { adapt(device); }
  const TrainingModel* model() const override { return &model_; }
  /// The same model with a smaller batch, such that a step moves at most `bytes` (or the batch is 1); for verification
  /// by naive loops. nullptr where this one is small enough.
  std::unique_ptr<Workload> smaller(double bytes) const override;

 private:
  Build build_;
  int64_t batch_;
  std::string sample_unit_;
  int64_t samples_per_item_;
  TrainingModel model_;
};

}  // namespace dlbench
