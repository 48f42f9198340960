#include "support/model_run.h"

#include <cmath>

#include "core/base/error.h"

namespace dlbench::test {

namespace {

/// Two stages: deeper ones would normalize over a handful of values, which no two roundings survive.
ResnetConfig small_resnet(bool bottleneck, bool large_stem) {
  ResnetConfig config{.bottleneck = bottleneck, .blocks = {1, 1}, .width = 4, .image = large_stem ? 33 : 11};
  config.large_stem = large_stem;
  config.classes = 10;
  config.optimizer.lr = bottleneck ? 0.02f : 0.03f;
  return config;
}

TrainingModel planned(TrainingModel model, Device& device) {
  model.program.plan(&device.ops());
  return model;
}

}  // namespace

const std::vector<SmallModel>& small_models() {
  static const std::vector<SmallModel> all = {
      {"mlp",
       [](Precision p, ImageLayout l) {
         return make_mlp({.widths = {37, 33, 19, 10}}, 5, p, l);
       }},
      {"cnn",
       [](Precision p, ImageLayout l) {
         return make_cnn({.image = 8, .filters1 = 5, .filters2 = 6, .hidden = 17}, 5, p, l);
       }},
      {"resnet_basic", [](Precision p, ImageLayout l) { return make_resnet(small_resnet(false, false), 5, p, l); }},
      {"resnet_bottleneck", [](Precision p, ImageLayout l) { return make_resnet(small_resnet(true, true), 7, p, l); }},
      {"gpt2", [](Precision p, ImageLayout) {
         return make_gpt2(
             {.layers = 2,
              .heads = 3,
              .channels = 24,
              .vocabulary = 53,
              .positions = 16,
              .optimizer = {.kind = OptimizerKind::adamw, .lr = 3e-3f, .weight_decay = 0.01f, .epsilon = 1e-5f}},
             3, 7, p);
       }}};
  return all;
}

ModelRun::ModelRun(TrainingModel model, Device& device, uint64_t seed)
    : model_(planned(std::move(model), device)), device_(device), buffers_(device, model_.program.buffers(), 1, seed) {}

void ModelRun::set_input(const std::string& name, const Values& values) {
  for (const NamedTensor& input : model_.inputs) {
    if (input.name == name) return write(input.tensor, values);
  }
  throw Error("there is no input " + name);
}

double ModelRun::step() {
  model_.program.run(device_.ops(), buffers_.binding(0));
  device_.synchronize();
  double sum = 0;
  const Values losses = read(model_.losses);
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());
}

Values ModelRun::read(TensorId id) const {
  const ProgramTensor& tensor = model_.program.tensor(id);
  HostTensor host(tensor.shape, tensor.dtype);
  device_.copy_to_host(host.data(), model_.program.address(id, buffers_.binding(0)), host.bytes());
  device_.synchronize();
  Values values(static_cast<size_t>(host.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = host.at(static_cast<int64_t>(i));
  return values;
}

void ModelRun::write(TensorId id, const Values& values) {
  const ProgramTensor& tensor = model_.program.tensor(id);
  HostTensor host(tensor.shape, tensor.dtype);
  if (host.size() != static_cast<int64_t>(values.size())) throw Error(tensor.name + ": another number of values");
  for (size_t i = 0; i < values.size(); ++i) host.set(static_cast<int64_t>(i), values[i]);
  device_.copy_to_device(model_.program.address(id, buffers_.binding(0)), host.data(), host.bytes());
  device_.synchronize();
}

std::map<std::string, Values> ModelRun::state() const {
  std::map<std::string, Values> all;
  for (const ModelParameter& p : model_.parameters) all[p.name] = read(p.master);
  for (const NamedTensor& t : model_.running) all[t.name] = read(t.tensor);
  return all;
}

double relative_distance(const Values& a, const Values& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  if (difference == 0) return 0;
  return std::sqrt(difference) / std::sqrt(norm);
}

}  // namespace dlbench::test
