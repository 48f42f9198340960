#include "core/measure/verify_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/device/reference_device.h"
#include "core/measure/buffers.h"
#include "core/train/model.h"

namespace dlbench {

namespace {

/// What a step may move so that the naive loops of reference do it in seconds.
constexpr double kMostBytes = 1e9;
/// At least this much is computed of each op, so that some rows are.
constexpr double kLeastFlopsPerOp = 1e5;
/// A tensor larger than this is compared in evenly spread pieces: the first, the last, and others between.
constexpr int64_t kComparedBytes = int64_t{8} << 20, kPieceBytes = int64_t{1} << 20;

/// The same buffers in the memory of reference.
class Mirror {
 public:
  Mirror(const Program& program, const ReferenceOptions& options) : device_(make_reference_device(options)) {
    for (const BufferSpec& spec : program.buffers()) {
      memory_.emplace_back(*device_, static_cast<size_t>(byte_count(spec.shape, spec.dtype)));
      binding_.push_back(memory_.back().data());
    }
    int64_t workspace = 0;
    for (const Instruction& instruction : program.instructions()) {
      if (instruction.workspace_bytes) workspace = std::max(workspace, instruction.workspace_bytes(device_->ops()));
    }
    workspace_ = DeviceBuffer(*device_, static_cast<size_t>(std::max<int64_t>(workspace, 1)));
  }
  Ops& ops() { return device_->ops(); }
  const Binding& binding() const { return binding_; }
  void* workspace() const { return workspace_.data(); }

 private:
  std::unique_ptr<Device> device_;
  std::vector<DeviceBuffer> memory_;
  Binding binding_;
  DeviceBuffer workspace_;
};

class ProgramCheck {
 public:
  ProgramCheck(const Program& program, Device& device, uint64_t seed, double flop_cap)
      : program_(program),
        device_(device),
        buffers_(device, program.buffers(), 1, seed),
        mirror_(program, options(flop_cap)) {}

  Verification run() {
    result_.how = "full";
    for (size_t i = 0; i < program_.instructions().size() && result_.message.empty(); ++i) check(i);
    if (result_.message.empty()) result_.message = buffers_.check_guards();
    result_.fraction = total_ ? static_cast<double>(compared_) / static_cast<double>(total_) : 1;
    if (compared_ < total_) result_.how = "sampled";
    if (result_.message.empty() && compared_ == 0) result_.message = "reference computed none of the values";
    result_.ok = result_.message.empty();
    return result_;
  }

 private:
  ReferenceOptions options(double flop_cap) const {
    const double share = flop_cap / static_cast<double>(std::max<size_t>(1, program_.instructions().size()));
    return {.max_flops_per_op = flop_cap > 0 ? std::max(share, kLeastFlopsPerOp) : 0};
  }

  void check(size_t index) {
    const Instruction& instruction = program_.instructions()[index];
    const Binding& binding = buffers_.binding(0);
    for (const Operand& operand : instruction.operands) {
      if (operand.tensor == kNoTensor) continue;
      void* copy = program_.address(operand.tensor, mirror_.binding());
      const auto bytes = static_cast<size_t>(program_.tensor(operand.tensor).bytes());
      if (bytes == 0) continue;
      if (operand.access == Access::write) {
        std::fill_n(static_cast<std::byte*>(copy), bytes, std::byte{BufferSets::kMarkerByte});
      } else {
        device_.copy_to_host(copy, program_.address(operand.tensor, binding), bytes);
      }
    }
    device_.synchronize();
    program_.run_one(index, device_.ops(), binding, program_.arena_address(index, binding));
    program_.run_one(index, mirror_.ops(), mirror_.binding(), mirror_.workspace());
    device_.synchronize();
    for (const Operand& operand : instruction.operands) {
      if (operand.tensor == kNoTensor || operand.access == Access::read || !operand.compared) continue;
      compare(instruction, operand);
      if (!result_.message.empty()) return;
    }
  }

  void compare(const Instruction& instruction, const Operand& operand) {
    const ProgramTensor& tensor = program_.tensor(operand.tensor);
    const int64_t bytes = tensor.bytes(), element = static_cast<int64_t>(size_of(tensor.dtype));
    const auto* mine = static_cast<const std::byte*>(program_.address(operand.tensor, buffers_.binding(0)));
    const auto* right = static_cast<const std::byte*>(program_.address(operand.tensor, mirror_.binding()));
    total_ += bytes / element;
    const int64_t pieces = bytes <= kComparedBytes ? 1 : kComparedBytes / kPieceBytes;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t size = pieces == 1 ? bytes : kPieceBytes;
      const int64_t offset = pieces == 1 ? 0 : (bytes - size) / element * piece / (pieces - 1) * element;
      HostTensor got({size / element}, tensor.dtype), expected({size / element}, tensor.dtype);
      device_.copy_to_host(got.data(), mine + offset, static_cast<size_t>(size));
      device_.synchronize();
      std::copy_n(right + offset, size, static_cast<std::byte*>(expected.data()));
      judge(instruction, operand, tensor, got, expected);
      if (!result_.message.empty()) return;
    }
  }

  void judge(const Instruction& instruction, const Operand& operand, const ProgramTensor& tensor, const HostTensor& got,
             const HostTensor& expected) {
    const std::vector<bool> computed = written(operand, expected);
    const TensorComparison c = compare_tensors(tensor.name, got, expected, &computed, operand.tolerance);
    compared_ += c.compared;
    if (!c.ok) result_.message = fmt::format("{} ({}): {}", instruction.name, to_string(instruction.op), c.message);
    const double badness = c.tolerance > 0 ? c.error / c.tolerance : c.error;
    if (badness <= worst_) return;
    worst_ = badness;
    result_.error = c.error;
    result_.tolerance = c.tolerance;
  }

  /// What reference left alone has no value to compare with: what it didn't sample, and gaps between rows.
  static std::vector<bool> written(const Operand& operand, const HostTensor& expected) {
    std::vector<bool> computed(static_cast<size_t>(expected.size()), true);
    if (operand.access == Access::update || expected.dtype() == DType::u8) return computed;
    const size_t element = size_of(expected.dtype());
    const auto* data = static_cast<const std::byte*>(expected.data());
    for (size_t i = 0; i < computed.size(); ++i) computed[i] = !is_marker(data + i * element, element);
    return computed;
  }

  const Program& program_;
  Device& device_;
  BufferSets buffers_;
  Mirror mirror_;
  Verification result_;
  int64_t compared_ = 0, total_ = 0;
  double worst_ = -1;
};

}  // namespace

Verification verify_program(Workload& workload, Device& device, uint64_t seed, double reference_flop_cap) {
  const std::unique_ptr<Workload> smaller = workload.smaller(kMostBytes);
  Workload& verified = smaller ? *smaller : workload;
  if (smaller) smaller->adapt(device);
  Verification result = ProgramCheck(verified.model()->program, device, seed, reference_flop_cap).run();
  if (smaller) {
    result.how = "sampled";
    result.fraction *= verified.work().samples / workload.work().samples;
  }
  return result;
}

}  // namespace dlbench
