#include "core/measure/dump.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/math/optimizer.h"
#include "core/measure/buffers.h"
#include "core/train/model.h"

namespace dlbench {

namespace {

namespace fs = std::filesystem;

/// NumPy's name of an element type; bf16 is widened before.
const char* numpy_type(DType type) {
  switch (type) {
    case DType::f64:
      return "<f8";
    case DType::f32:
    case DType::bf16:
      return "<f4";
    case DType::f16:
      return "<f2";
    case DType::i32:
      return "<i4";
    case DType::u8:
      return "|u1";
  }
  throw Error("numpy_type: not an element type");
}

HostTensor converted(const HostTensor& from, DType type, double factor) {
  HostTensor to(from.shape(), type);
  for (int64_t i = 0; i < from.size(); ++i) to.set(i, from.at(i) * factor);
  return to;
}

}  // namespace

HostTensor torch_tensor(const HostTensor& stored, const TorchView& view) {
  if (view.order.empty()) return stored;
  const size_t rank = view.stored.size();
  Shape extents(rank);
  std::vector<int64_t> strides(rank);
  std::vector<int64_t> dense(rank, 1);
  for (size_t i = rank - 1; i > 0; --i) dense[i - 1] = dense[i] * view.stored[i];
  for (size_t i = 0; i < rank; ++i) {
    extents[i] = view.stored[static_cast<size_t>(view.order[i])];
    strides[i] = dense[static_cast<size_t>(view.order[i])];
  }
  HostTensor result(view.shape, stored.dtype());
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < rank; ++i) outer *= extents[i];
  extents.back() = outer ? result.size() / outer : 0;  // rows of logits end where the vocabulary ends
  const size_t element = size_of(stored.dtype());
  auto* to = static_cast<std::byte*>(result.data());
  for (int64_t i = 0; i < result.size(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t d = rank; d-- > 0;) {
      at += rest % extents[d] * strides[d];
      rest /= extents[d];
    }
    std::memcpy(to + static_cast<size_t>(i) * element,
                static_cast<const std::byte*>(stored.data()) + static_cast<size_t>(at) * element, element);
  }
  return result;
}

std::string npy_bytes(const HostTensor& given) {
  const HostTensor tensor = given.dtype() == DType::bf16 ? converted(given, DType::f32, 1) : given;
  const char* comma = tensor.shape().size() == 1 ? "," : "";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   numpy_type(given.dtype()), fmt::join(tensor.shape(), ", "), comma);
  constexpr size_t kPrefix = 10, kAligned = 64;
  header.resize((kPrefix + header.size() + 1 + kAligned - 1) / kAligned * kAligned - kPrefix - 1, ' ');
  header += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + std::string(static_cast<const char*>(tensor.data()), tensor.bytes());
}

namespace {

/// Writes the tensors of one step and remembers what the manifest says about them.
class StepDump {
 public:
  StepDump(const TrainingModel& model, Device& device, uint64_t seed, fs::path directory)
      : model_(model),
        device_(device),
        buffers_(device, model.program.buffers(), 1, seed),
        directory_(std::move(directory)) {}

  Json run() {
    for (const NamedTensor& t : model_.inputs) write("input", t.name, t.tensor, t.view);
    for (const ModelParameter& p : model_.parameters) write("parameter", p.name, p.master, p.view);
    for (const NamedTensor& t : model_.running) write("buffer", t.name, t.tensor, {});
    const Program& program = model_.program;
    const float loss_scale = read_state().loss_scale;
    const Binding& binding = buffers_.binding(0);
    for (size_t i = 0; i < program.instructions().size(); ++i) {
      program.run_one(i, device_.ops(), binding, program.arena_address(i, binding));
      if (i == model_.logits_instruction) write("output", "logits", model_.logits.tensor, model_.logits.view);
    }
    device_.synchronize();
    for (const ModelParameter& p : model_.parameters) write("gradient", p.name, p.gradient, p.view, 1.0 / loss_scale);
    for (const ModelParameter& p : model_.parameters) write("updated", p.name, p.master, p.view);
    for (const NamedTensor& t : model_.running) write("updated_buffer", t.name, t.tensor, {});
    return std::move(tensors_);
  }

  double loss() {
    const HostTensor losses = read(model_.losses);
    double sum = 0;
    for (int64_t i = 0; i < losses.size(); ++i) sum += losses.at(i);
    return sum / static_cast<double>(losses.size());
  }

 private:
  HostTensor read(TensorId id) {
    const ProgramTensor& t = model_.program.tensor(id);
    HostTensor host(t.shape, t.dtype);
    device_.copy_to_host(host.data(), model_.program.address(id, buffers_.binding(0)), host.bytes());
    device_.synchronize();
    return host;
  }
  TrainingState read_state() {
    const HostTensor words = read(model_.state);
    TrainingState state;
    std::memcpy(&state, words.data(), sizeof state);
    return state;
  }

  void write(const std::string& role, const std::string& name, TensorId id, const TorchView& view, double factor = 1) {
    HostTensor tensor = torch_tensor(read(id), view);
    if (factor != 1) tensor = converted(tensor, DType::f32, factor);  // an unscaled fp16 gradient may be subnormal
    const std::string file = fmt::format("{}.{}.npy", role, name);
    std::ofstream out(directory_ / file, std::ios::binary);
    const std::string bytes = npy_bytes(tensor);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) throw Error(fmt::format("{}: can't be written (is the disk full?)", (directory_ / file).string()));
    tensors_.push_back({{"role", role},
                        {"name", name},
                        {"dtype", to_string(tensor.dtype())},
                        {"shape", tensor.shape()},
                        {"file", file}});
  }

  const TrainingModel& model_;
  Device& device_;
  BufferSets buffers_;
  fs::path directory_;
  Json tensors_ = Json::array();
};

/// The axes of the point, and what a preset stands for.
Json axes_json(const Workload& workload, const Point& point) {
  Json axes = Json::object();
  for (const auto& [name, value] : point.axes) {
    if (const auto* number = std::get_if<int64_t>(&value)) {
      axes[name] = *number;
    } else {
      axes[name] = std::get<std::string>(value);
    }
  }
  for (const auto& [name, value] : workload.model()->shape_facts) axes[name] = value;
  return axes;
}

Json hyperparameters_json(const OptimizerSettings& o) {
  const auto number = [](float value) { return static_cast<double>(value); };  // exactly what the update used
  Json json{{"optimizer", o.kind == OptimizerKind::sgd ? "sgd" : "adamw"}, {"lr", number(o.lr)}};
  json["momentum"] = o.kind == OptimizerKind::sgd ? Json(number(o.momentum)) : Json(nullptr);
  json["weight_decay"] = number(o.weight_decay);
  const bool adamw = o.kind == OptimizerKind::adamw;
  json["beta1"] = adamw ? Json(number(o.beta1)) : Json(nullptr);
  json["beta2"] = adamw ? Json(number(o.beta2)) : Json(nullptr);
  json["eps"] = adamw ? Json(number(o.epsilon)) : Json(nullptr);
  return json;
}

void make_empty_directory(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory, error) && !fs::is_directory(directory, error)) {
    throw UsageError(fmt::format("--dump {}: it is no directory", directory.string()));
  }
  if (fs::is_directory(directory, error) && !fs::is_empty(directory, error)) {
    throw UsageError(
        fmt::format("--dump {}: the directory isn't empty; name a new one, or empty it", directory.string()));
  }
  fs::create_directories(directory, error);
  if (error) throw UsageError(fmt::format("--dump {}: can't be made: {}", directory.string(), error.message()));
}

}  // namespace

void dump_step(Workload& workload, const Point& point, Device& device, uint64_t seed, const fs::path& directory) {
  if (!workload.model()) {
    throw UsageError(
        fmt::format("--dump: {} is no model; only steps of models (class train) can be dumped", point.workload));
  }
  if (device.info().kind == "meta") throw UsageError("--dump: the meta device computes nothing to dump");
  make_empty_directory(directory);
  workload.adapt(device);
  StepDump dump(*workload.model(), device, seed, directory);
  const Json tensors = dump.run();
  const double loss = dump.loss();
  Json manifest{{"key", point.key()},
                {"workload", point.workload},
                {"axes", axes_json(workload, point)},
                {"hyperparameters", hyperparameters_json(workload.model()->optimizer)},
                {"step", 1},
                {"loss", std::isfinite(loss) ? Json(loss) : Json(nullptr)},
                {"tensors", tensors}};
  write_file_atomic(directory / "manifest.json", dump_json(manifest) + '\n');
}

}  // namespace dlbench
