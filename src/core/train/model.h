// TrainingModel: a program with the names that its tensors have in PyTorch; ModelBuilder: how layers put one together.
//
// Why: dumps, the ten-step tests and the PyTorch scripts speak of `layer1.0.conv1.weight`; a step speaks of buffers.
// Promises: all parameters lie in one flat buffer, all gradients in another of the same layout, the optimizer's state
// in others, so that the update is one pass; weight decay applies to all of them, as torch.optim's defaults have it.
// Tensors of the flat buffers start at multiples of kTensorAlignment elements; the gaps stay zero.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/train/program.h"

namespace dlbench {

/// Elements between starts of tensors in the flat buffers: 128 bytes of a 16-bit type, a line of any cache.
inline constexpr int64_t kTensorAlignment = 64;

/// How PyTorch sees a stored tensor: dimension i of it is dimension order[i] of `stored`; then the last one is cut to
/// what `shape` needs, and the whole is read as `shape`. Empty order: as it is stored.
struct TorchView {
  Shape stored{};
  std::vector<int> order{};
  Shape shape{};
};

struct NamedTensor {
  std::string name;
  TensorId tensor = kNoTensor;
  TorchView view{};
};

struct ModelParameter {
  std::string name;
  TensorId storage = kNoTensor;   ///< what forward and backward read
  TensorId master = kNoTensor;    ///< what the optimizer updates; the same tensor unless the storage type is 16-bit
  TensorId gradient = kNoTensor;  ///< storage type, times the loss scale
  int64_t count = 0;              ///< elements
  TorchView view{};
};

enum class OptimizerKind : uint8_t { sgd, adamw };
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::sgd;
  float lr = 0.01f, momentum = 0.9f, weight_decay = 0.0f;
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;  ///< adamw
};

/// Loss scale that fp16 starts with. PyTorch's GradScaler begins at 2^16 and skips its first steps until nothing
/// overflows; this one lets the first step through, and grows.
inline constexpr float kInitialLossScale = 1024.0f;

struct TrainingModel {
  Program program;
  Precision precision = Precision::fp32;
  ImageLayout layout = ImageLayout::nchw;
  OptimizerSettings optimizer;
  std::vector<NamedTensor> inputs;   ///< "x", "y" or "tokens", "targets"
  std::vector<NamedTensor> running;  ///< running statistics, updated by the step
  std::vector<ModelParameter> parameters;
  NamedTensor logits;                  ///< valid from its instruction until the loss's
  size_t logits_instruction = 0;       ///< the one that writes them
  TensorId losses = kNoTensor;         ///< one per row; the loss of the step is their mean
  TensorId state = kNoTensor;          ///< TrainingState
  size_t parameter_buffer = SIZE_MAX;  ///< master parameters
  int64_t parameter_count = 0;
  /// What a preset stands for ("layers", 12), for readers of a dump.
  std::vector<std::pair<std::string, int64_t>> shape_facts;
};

/// How a parameter starts. normal: N(0, scale); constant: all elements are `scale`.
struct Initial {
  BufferInit init = BufferInit::zero;
  double scale = 0;
};

class ModelBuilder {
 public:
  ModelBuilder(Precision precision, ImageLayout layout, const OptimizerSettings& optimizer);

  Precision precision() const { return model_.precision; }
  ImageLayout layout() const { return model_.layout; }
  DType storage() const { return storage_of(model_.precision); }
  DType statistics() const { return accumulate_of(model_.precision); }
  Program& program() { return model_.program; }

  /// Normal values for a storage type, uniform indices below `bound` for i32.
  TensorId input(const std::string& name, Shape shape, DType dtype, uint32_t bound, TorchView view = {});
  ModelParameter parameter(const std::string& name, Shape shape, Initial initial, TorchView view = {});
  /// A running statistic of `count` values that start as `value`.
  TensorId running(const std::string& name, int64_t count, double value);
  TensorId activation(const std::string& name, Shape shape) { return activation(name, std::move(shape), storage()); }
  TensorId activation(const std::string& name, Shape shape, DType dtype) {
    return model_.program.add_activation(name, std::move(shape), dtype);
  }
  void emit(Instruction instruction) { model_.program.add(std::move(instruction)); }
  /// Tolerances of what an op writes, in the storage type and in the statistics type.
  OutputTolerance tolerance(Op op, int64_t reduction_length = 1) const;
  OutputTolerance statistics_tolerance(Op op, int64_t reduction_length = 1) const;

  /// Called in the reverse order of the calls, when the loss is there.
  void on_backward(std::function<void()> emit_backward) { backward_.push_back(std::move(emit_backward)); }
  bool needs_gradient(TensorId x) const { return !without_gradient_.contains(x); }
  bool has_gradient(TensorId y) const { return gradients_of_.contains(y); }
  /// The finished gradient of an activation. @throws Error when nothing gave one.
  TensorId gradient_of(TensorId y) const;
  /// `dx`, written already, is (a part of) the gradient of x; a second part is added to the first.
  void give_gradient(TensorId x, TensorId dx);
  /// The gradient of x, or of a part of it, is what `write` emits into the tensor that it gets.
  void write_gradient(TensorId x, const std::function<void(TensorId dx)>& write);

  /// The loss: mean cross-entropy of logits [rows, columns], rows `row_stride` elements apart, against `targets`.
  /// Its instruction turns the logits into their gradient, in place.
  void cross_entropy_loss(TensorId logits, TensorId targets, int64_t rows, int64_t columns, int64_t row_stride,
                          Shape torch_shape);
  void fact(const std::string& name, int64_t value) { model_.shape_facts.emplace_back(name, value); }
  /// Emits backward pass and update. The program isn't planned yet.
  TrainingModel finish();

 private:
  void emit_update();

  TrainingModel model_;
  size_t parameters_, storage_parameters_, gradients_;  ///< buffers; the first two are one without master weights
  int64_t flat_count_ = 0;
  std::vector<BufferSegment> segments_;
  std::vector<std::function<void()>> backward_;
  std::map<TensorId, TensorId> gradients_of_;
  std::map<TensorId, bool> without_gradient_;
};

inline Operand reads(TensorId tensor) {
  return {.tensor = tensor};
}
inline Operand writes(TensorId tensor, const OutputTolerance& tolerance) {
  return {.tensor = tensor, .access = Access::write, .tolerance = tolerance};
}
inline Operand updates(TensorId tensor, const OutputTolerance& tolerance) {
  return {.tensor = tensor, .access = Access::update, .tolerance = tolerance};
}

}  // namespace dlbench
