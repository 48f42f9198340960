#include "core/train/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/train/arena.h"

namespace dlbench {

size_t Program::add_buffer(BufferSpec spec) {
  buffers_.push_back(std::move(spec));
  return buffers_.size() - 1;
}

TensorId Program::add_tensor(ProgramTensor tensor) {
  tensor.bytes();  // throws where it can't be counted
  tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors_.size() - 1);
}

TensorId Program::add_activation(std::string name, Shape shape, DType dtype) {
  if (arena_ == SIZE_MAX) {
    arena_ = add_buffer({.name = "activations", .role = BufferRole::scratch, .shape = {0}, .dtype = DType::u8});
  }
  return add_tensor({.name = std::move(name), .shape = std::move(shape), .dtype = dtype, .buffer = arena_});
}

void Program::add(Instruction instruction) {
  if (instruction.operands.size() > kMostOperands) throw Error(instruction.name + ": too many operands");
  instructions_.push_back(std::move(instruction));
  workspace_offsets_.push_back(-1);
}

void Program::plan(const Ops* ops) {
  std::vector<ArenaTensor> wanted(tensors_.size(), {.bytes = 0, .first = INT64_MAX, .last = -1});
  std::vector<size_t> with_workspace;
  for (size_t i = 0; i < instructions_.size(); ++i) {
    const auto now = static_cast<int64_t>(i);
    for (const Operand& operand : instructions_[i].operands) {
      if (operand.tensor == kNoTensor || tensor(operand.tensor).buffer != arena_) continue;
      ArenaTensor& each = wanted[static_cast<size_t>(operand.tensor)];
      each.bytes = tensor(operand.tensor).bytes();
      each.first = std::min(each.first, now);
      each.last = now;
    }
  }
  std::vector<ArenaTensor> placed;
  std::vector<size_t> owner;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].last < 0) continue;
    placed.push_back(wanted[i]);
    owner.push_back(i);
  }
  for (size_t i = 0; i < instructions_.size(); ++i) {
    workspace_offsets_[i] = -1;
    const int64_t bytes = ops && instructions_[i].workspace_bytes ? instructions_[i].workspace_bytes(*ops) : 0;
    if (bytes <= 0) continue;
    placed.push_back({.bytes = bytes, .first = static_cast<int64_t>(i), .last = static_cast<int64_t>(i)});
    with_workspace.push_back(i);
  }
  const ArenaPlan plan = plan_arena(placed);
  for (size_t i = 0; i < owner.size(); ++i) tensors_[owner[i]].offset_bytes = plan.offsets[i];
  for (size_t i = 0; i < with_workspace.size(); ++i) {
    workspace_offsets_[with_workspace[i]] = plan.offsets[owner.size() + i];
  }
  arena_bytes_ = plan.bytes;
  arena_lower_bound_ = plan.lower_bound;
  if (arena_ != SIZE_MAX) buffers_[arena_].shape = {arena_bytes_};
}

Cost Program::cost() const {
  Cost total;
  for (const Instruction& instruction : instructions_) total += instruction.cost;
  return total;
}

Support Program::supported_by(const Ops& ops, Precision precision) const {
  Support worst;
  for (const Instruction& instruction : instructions_) {
    Support support = ops.supports(instruction.op, precision);
    if (support.level <= worst.level) continue;
    if (support.level == SupportLevel::no) {
      support.reason = fmt::format("{}: {}", to_string(instruction.op), support.reason);
      return support;
    }
    worst = std::move(support);
  }
  return worst;
}

}  // namespace dlbench
