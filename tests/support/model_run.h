// A model on a device, step by step, seen by the names of its tensors.
//
// Why: tests of models speak of losses and of `layer1.0.conv1.weight`, never of buffers.
#pragma once

#include <map>
#include <string>

#include "core/measure/buffers.h"
#include "core/train/models.h"

namespace dlbench::test {

/// A model of each kind, so small that naive loops do a step in milliseconds: odd batches and lengths, a stride of 2,
/// both kinds of residual blocks.
struct SmallModel {
  std::string name;
  TrainingModel (*make)(Precision precision, ImageLayout layout);
};
const std::vector<SmallModel>& small_models();

using Values = std::vector<double>;

class ModelRun {
 public:
  /// Plans the model for the device, and starts from the initial state of `seed`.
  ModelRun(TrainingModel model, Device& device, uint64_t seed);

  /// Replaces an input by values in the order in which it is stored.
  void set_input(const std::string& name, const Values& values);
  /// One step; the mean loss of its batch, before the update.
  double step();
  Values read(TensorId tensor) const;
  void write(TensorId tensor, const Values& values);
  /// Parameters and running statistics by name.
  std::map<std::string, Values> state() const;
  const TrainingModel& model() const { return model_; }

 private:
  TrainingModel model_;
  Device& device_;
  BufferSets buffers_;
};

/// |a - b| / |b| in the L2 norm; 0 for two zeros.
double relative_distance(const Values& a, const Values& b);

}  // namespace dlbench::test
