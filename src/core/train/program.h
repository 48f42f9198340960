// Program: a training step as a list of instructions over tensors whose places are known before it runs.
//
// Why: one list serves everything. Running it in order is the step; the first and last use of each tensor give the
// memory plan; the declared costs give the work; and because every instruction names what it reads and writes, each can
// be verified by itself against `reference`, at the shapes of the step and from the device's own inputs.
// Promises: building and planning touch no device memory; `run` allocates nothing and only enqueues.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/train/workload.h"

namespace dlbench {

using TensorId = int32_t;
inline constexpr TensorId kNoTensor = -1;

/// A tensor of the step: a part of one of its buffers.
struct ProgramTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  size_t buffer = 0;
  int64_t offset_bytes = 0;  ///< of an activation: set by `plan`
  int64_t bytes() const { return byte_count(shape, dtype); }
};

/// update: read and written in place.
enum class Access : uint8_t { read, write, update };

struct Operand {
  TensorId tensor = kNoTensor;  ///< kNoTensor: the op gets a null pointer
  Access access = Access::read;
  OutputTolerance tolerance{};  ///< of what is written
  bool compared = true;         ///< false: a control block that no tolerance fits
};

struct Instruction {
  Op op = Op::noop;
  std::string name;  ///< "layer1.0.conv1 weight gradient"
  std::vector<Operand> operands;
  Cost cost;
  /// Scratch memory that the op wants of a device; empty: none.
  std::function<int64_t(const Ops&)> workspace_bytes{};
  /// p[i] points to operand i, p[operands.size()] to the workspace.
  std::function<void(Ops&, void* const* p)> call;
};

class Program {
 public:
  static constexpr size_t kMostOperands = 15;

  size_t add_buffer(BufferSpec spec);
  BufferSpec& buffer(size_t index) { return buffers_[index]; }
  TensorId add_tensor(ProgramTensor tensor);
  /// A tensor in the arena, alive from the first to the last instruction that names it.
  TensorId add_activation(std::string name, Shape shape, DType dtype);
  void add(Instruction instruction);

  /// Places the activations and each instruction's workspace. @param ops nullptr: the device isn't known yet, no
  /// workspace is counted.
  void plan(const Ops* ops);

  const std::vector<BufferSpec>& buffers() const { return buffers_; }
  const std::vector<Instruction>& instructions() const { return instructions_; }
  const ProgramTensor& tensor(TensorId id) const { return tensors_[static_cast<size_t>(id)]; }
  int64_t arena_bytes() const { return arena_bytes_; }
  /// The most bytes of activations and workspace that are needed at once.
  int64_t arena_lower_bound() const { return arena_lower_bound_; }
  Cost cost() const;
  /// The worst answer of the device for any op of the program.
  Support supported_by(const Ops& ops, Precision precision) const;

  void* address(TensorId id, const Binding& binding) const {
    if (id == kNoTensor) return nullptr;
    const ProgramTensor& t = tensor(id);
    return static_cast<std::byte*>(binding[t.buffer]) + t.offset_bytes;
  }
  /// All instructions in order.
  void run(Ops& ops, const Binding& binding) const {
    for (size_t i = 0; i < instructions_.size(); ++i) run_one(i, ops, binding, arena_address(i, binding));
  }
  /// One instruction with a workspace of the caller's.
  void run_one(size_t index, Ops& ops, const Binding& binding, void* workspace) const {
    const Instruction& instruction = instructions_[index];
    std::array<void*, kMostOperands + 1> pointers;
    const size_t count = instruction.operands.size();
    for (size_t i = 0; i < count; ++i) pointers[i] = address(instruction.operands[i].tensor, binding);
    pointers[count] = workspace;
    instruction.call(ops, pointers.data());
  }
  /// Where the plan put the workspace of an instruction; nullptr where it has none.
  void* arena_address(size_t index, const Binding& binding) const {
    const int64_t offset = workspace_offsets_[index];
    return offset < 0 ? nullptr : static_cast<std::byte*>(binding[arena_]) + offset;
  }

 private:
  std::vector<BufferSpec> buffers_;
  std::vector<ProgramTensor> tensors_;
  std::vector<Instruction> instructions_;
  std::vector<int64_t> workspace_offsets_;  ///< per instruction; -1: none
  size_t arena_ = SIZE_MAX;                 ///< buffer of the activations
  int64_t arena_bytes_ = 0, arena_lower_bound_ = 0;
};

}  // namespace dlbench
