#include "core/train/model.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/math/optimizer.h"

namespace dlbench {

namespace {

bool has_master(Precision precision) {
  return storage_of(precision) != accumulate_of(precision);
}
int64_t product(const Shape& shape) {
  return element_count(shape);
}

}  // namespace

ModelBuilder::ModelBuilder(Precision precision, ImageLayout layout, const OptimizerSettings& optimizer) {
  model_.precision = precision;
  model_.layout = layout;
  model_.optimizer = optimizer;
  Program& p = model_.program;
  parameters_ =
      p.add_buffer({.name = "parameters", .role = BufferRole::parameter, .shape = {0}, .dtype = statistics()});
  storage_parameters_ = parameters_;
  if (has_master(precision)) {
    storage_parameters_ =
        p.add_buffer({.name = "rounded parameters", .role = BufferRole::parameter, .shape = {0}, .dtype = storage()});
  }
  gradients_ = p.add_buffer({.name = "gradients", .role = BufferRole::state, .shape = {0}, .dtype = storage()});
  model_.parameter_buffer = parameters_;
  // TrainingState is 16 words of 32 bits: the two scales start as numbers, its counters as zero.
  const float scale = precision == Precision::fp16 ? kInitialLossScale : 1.0f;
  const Shape words{static_cast<int64_t>(sizeof(TrainingState) / sizeof(float))};
  const size_t state = p.add_buffer(
      {.name = "training state",
       .role = BufferRole::state,
       .shape = words,
       .dtype = DType::f32,
       .segments = {
           {.name = "loss_scale", .offset = 0, .count = 1, .init = BufferInit::constant, .scale = scale},
           {.name = "gradient_factor", .offset = 1, .count = 1, .init = BufferInit::constant, .scale = 1.0 / scale}}});
  model_.state = p.add_tensor({.name = "training state", .shape = words, .dtype = DType::f32, .buffer = state});
}

TensorId ModelBuilder::input(const std::string& name, Shape shape, DType dtype, uint32_t bound, TorchView view) {
  Program& p = model_.program;
  const bool indices = dtype == DType::i32;
  const size_t buffer = p.add_buffer({.name = name,
                                      .role = BufferRole::input,
                                      .shape = shape,
                                      .dtype = dtype,
                                      .init = indices ? BufferInit::uniform_index : BufferInit::normal,
                                      .index_bound = bound});
  const TensorId id = p.add_tensor({.name = name, .shape = std::move(shape), .dtype = dtype, .buffer = buffer});
  model_.inputs.push_back({.name = name, .tensor = id, .view = std::move(view)});
  without_gradient_[id] = true;
  return id;
}

ModelParameter ModelBuilder::parameter(const std::string& name, Shape shape, Initial initial, TorchView view) {
  Program& p = model_.program;
  const auto at = [&](size_t buffer, const std::string& what, DType dtype) {
    return p.add_tensor({.name = name + what,
                         .shape = shape,
                         .dtype = dtype,
                         .buffer = buffer,
                         .offset_bytes = flat_count_ * static_cast<int64_t>(size_of(dtype))});
  };
  ModelParameter parameter{.name = name, .count = product(shape), .view = std::move(view)};
  parameter.master = at(parameters_, "", statistics());
  parameter.storage =
      parameters_ == storage_parameters_ ? parameter.master : at(storage_parameters_, " rounded", storage());
  parameter.gradient = at(gradients_, " gradient", storage());
  segments_.push_back(
      {.name = name, .offset = flat_count_, .count = parameter.count, .init = initial.init, .scale = initial.scale});
  const int64_t rounded = (parameter.count + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  if (__builtin_add_overflow(flat_count_, rounded, &flat_count_)) throw Error("more than 2^63 parameters");
  model_.parameter_count += parameter.count;
  model_.parameters.push_back(parameter);
  return parameter;
}

TensorId ModelBuilder::running(const std::string& name, int64_t count, double value) {
  Program& p = model_.program;
  const BufferInit init = value == 0 ? BufferInit::zero : BufferInit::constant;
  const size_t buffer = p.add_buffer(
      {.name = name, .role = BufferRole::state, .shape = {count}, .dtype = statistics(), .init = init, .scale = value});
  const TensorId id = p.add_tensor({.name = name, .shape = {count}, .dtype = statistics(), .buffer = buffer});
  model_.running.push_back({.name = name, .tensor = id});
  return id;
}

OutputTolerance ModelBuilder::tolerance(Op op, int64_t reduction_length) const {
  return {.op_class = class_of(op), .reduction_length = reduction_length, .precision = model_.precision};
}

OutputTolerance ModelBuilder::statistics_tolerance(Op op, int64_t reduction_length) const {
  const bool wide = statistics() == DType::f64;
  return {.op_class = class_of(op),
          .reduction_length = reduction_length,
          .precision = wide ? Precision::fp64 : Precision::fp32};
}

TensorId ModelBuilder::gradient_of(TensorId y) const {
  const auto found = gradients_of_.find(y);
  if (found == gradients_of_.end()) throw Error("nothing gave a gradient of " + model_.program.tensor(y).name);
  return found->second;
}

void ModelBuilder::give_gradient(TensorId x, TensorId dx) {
  if (!needs_gradient(x)) return;
  const auto [known, first] = gradients_of_.emplace(x, dx);
  if (first) return;
  const ProgramTensor& tensor = model_.program.tensor(x);
  const VectorSpec spec{.precision = precision(), .n = product(tensor.shape)};
  emit({.op = Op::axpy,
        .name = tensor.name + " gradient sum",
        .operands = {reads(dx), updates(known->second, tolerance(Op::axpy))},
        .cost = cost_of(Op::axpy, spec),
        .call = [spec](Ops& ops, void* const* p) { ops.axpy(spec, 1.0f, p[0], p[1]); }});
}

void ModelBuilder::write_gradient(TensorId x, const std::function<void(TensorId dx)>& write) {
  if (!needs_gradient(x)) return;
  const ProgramTensor& tensor = model_.program.tensor(x);
  const TensorId dx = activation(tensor.name + " gradient", tensor.shape);
  write(dx);
  give_gradient(x, dx);
}

void ModelBuilder::cross_entropy_loss(TensorId logits, TensorId targets, int64_t rows, int64_t columns,
                                      int64_t row_stride, Shape torch_shape) {
  Program& p = model_.program;
  model_.logits = {.name = "logits",
                   .tensor = logits,
                   .view = {.stored = {rows, row_stride}, .order = {0, 1}, .shape = std::move(torch_shape)}};
  for (size_t i = 0; i < p.instructions().size(); ++i) {
    for (const Operand& operand : p.instructions()[i].operands) {
      if (operand.tensor == logits && operand.access != Access::read) model_.logits_instruction = i;
    }
  }
  const size_t buffer =
      p.add_buffer({.name = "losses", .role = BufferRole::output, .shape = {rows}, .dtype = statistics()});
  model_.losses = p.add_tensor({.name = "losses", .shape = {rows}, .dtype = statistics(), .buffer = buffer});
  const RowsSpec spec{.precision = precision(), .rows = rows, .columns = columns, .row_stride = row_stride};
  require_valid(spec);
  emit({.op = Op::cross_entropy,
        .name = "loss",
        .operands = {updates(logits, tolerance(Op::cross_entropy, columns)), reads(targets), reads(model_.state),
                     writes(model_.losses, statistics_tolerance(Op::cross_entropy, columns))},
        .cost = cost_of(Op::cross_entropy, spec),
        .call = [spec](Ops& ops, void* const* q) {
          ops.cross_entropy(spec, q[0], static_cast<const int32_t*>(q[1]), static_cast<const TrainingState*>(q[2]),
                            q[3], q[0]);
        }});
  gradients_of_[logits] = logits;
}

TrainingModel ModelBuilder::finish() {
  for (auto emit_backward = backward_.rbegin(); emit_backward != backward_.rend(); ++emit_backward) (*emit_backward)();
  emit_update();
  Program& p = model_.program;
  for (const size_t buffer : {parameters_, storage_parameters_}) {
    p.buffer(buffer).shape = {flat_count_};
    p.buffer(buffer).segments = segments_;
  }
  p.buffer(gradients_).shape = {flat_count_};
  return std::move(model_);
}

void ModelBuilder::emit_update() {
  Program& p = model_.program;
  const Shape all{flat_count_};
  const auto flat = [&](const std::string& name, DType dtype, size_t buffer) {
    return p.add_tensor({.name = name, .shape = all, .dtype = dtype, .buffer = buffer});
  };
  const auto state_buffer = [&](const std::string& name) {
    return flat(name, statistics(),
                p.add_buffer({.name = name, .role = BufferRole::state, .shape = all, .dtype = statistics()}));
  };
  const TensorId gradient = flat("all gradients", storage(), gradients_);
  const TensorId master = flat("all parameters", statistics(), parameters_);
  const TensorId rounded =
      parameters_ == storage_parameters_ ? kNoTensor : flat("all rounded parameters", storage(), storage_parameters_);
  const bool fp16 = precision() == Precision::fp16;
  const GradientSpec check{.precision = precision(), .n = flat_count_, .check = fp16, .dynamic_scaling = fp16};
  emit({.op = Op::prepare_update,
        .name = "loss scale and step count",
        .operands = {reads(gradient), {.tensor = model_.state, .access = Access::update, .compared = false}},
        .cost = cost_of(check),
        .workspace_bytes = [check](const Ops& ops) { return ops.update_workspace_bytes(check); },
        .call = [check](Ops& ops,
                        void* const* q) { ops.prepare_update(check, q[0], static_cast<TrainingState*>(q[1]), q[2]); }});
  const OptimizerSettings& o = model_.optimizer;
  const Op op = o.kind == OptimizerKind::sgd ? Op::sgd_step : Op::adamw_step;
  const OutputTolerance wide = statistics_tolerance(op), narrow = tolerance(op);
  if (o.kind == OptimizerKind::sgd) {
    const SgdSpec spec{.precision = precision(),
                       .n = flat_count_,
                       .decayed = flat_count_,
                       .lr = o.lr,
                       .momentum = o.momentum,
                       .weight_decay = o.weight_decay};
    emit({.op = op,
          .name = "SGD",
          .operands = {reads(model_.state), reads(gradient), updates(master, wide),
                       updates(state_buffer("momentum"), wide), writes(rounded, narrow)},
          .cost = cost_of(spec),
          .call = [spec](Ops& ops, void* const* q) {
            ops.sgd_step(spec, static_cast<const TrainingState*>(q[0]), q[1], q[2], q[3], q[4]);
          }});
    return;
  }
  const AdamWSpec spec{.precision = precision(),
                       .n = flat_count_,
                       .decayed = flat_count_,
                       .lr = o.lr,
                       .beta1 = o.beta1,
                       .beta2 = o.beta2,
                       .epsilon = o.epsilon,
                       .weight_decay = o.weight_decay};
  const TensorId m = state_buffer("first moment"), v = state_buffer("second moment");
  emit({.op = op,
        .name = "AdamW",
        .operands = {reads(model_.state), reads(gradient), updates(master, wide), updates(m, wide), updates(v, wide),
                     writes(rounded, narrow)},
        .cost = cost_of(spec),
        .call = [spec](Ops& ops, void* const* q) {
          ops.adamw_step(spec, static_cast<const TrainingState*>(q[0]), q[1], q[2], q[3], q[4], q[5]);
        }});
}

}  // namespace dlbench
