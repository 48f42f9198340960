// Workload: what is computed, written once against Ops, knowing no device.
//
// Why: the harness plans memory, initialises, verifies and times any workload the same way because a workload
// *declares* its buffers, its work and its tolerance, and only `step` runs in the timed region. Promises: the
// constructor and the declarations touch no device; `step` allocates nothing and only enqueues.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device/device.h"
#include "core/plan/point.h"
#include "core/tensor/tensor.h"

namespace dlbench {

struct TrainingModel;

/// input: read by the step (rotated by cache=rotate, copied by data=streamed). parameter / state: read and written over
/// steps. output: written by the step and verified. scratch: neither kept nor verified.
enum class BufferRole : uint8_t { input, parameter, state, output, scratch };
/// constant: every element is `scale`.
enum class BufferInit : uint8_t { zero, normal, uniform_index, constant };

/// A part of a buffer with its own initial values: a tensor within the flat buffer of all parameters. Its random values
/// depend on its own name.
struct BufferSegment {
  std::string name;
  int64_t offset = 0, count = 0;  ///< elements
  BufferInit init = BufferInit::zero;
  double scale = 1.0;
};

struct BufferSpec {
  std::string name;
  BufferRole role = BufferRole::input;
  Shape shape{};
  DType dtype = DType::f32;
  BufferInit init = BufferInit::zero;
  double scale = 1.0;        ///< of `normal` and `constant`
  uint32_t index_bound = 0;  ///< of `uniform_index`
  /// Not empty: everything outside of them starts as zero, and they as they say (zero, normal or constant).
  std::vector<BufferSegment> segments{};
  /// In place: a state buffer whose value after one step is verified like an output.
  bool verified = false;
};

/// Tolerance of one verified buffer, see core/measure/verify.h.
struct OutputTolerance {
  OpClass op_class = OpClass::reduction;
  int64_t reduction_length = 1;
  Precision precision = Precision::fp32;
  /// Typical size of an exact value, for buffers so small that the root mean square of their values is a matter of luck
  /// (the one value of a dot product: sqrt(n) times the scales of its factors). 0: the root mean square alone decides.
  double magnitude = 0;
};

/// Declared work of one step.
struct Work {
  Cost cost;           ///< FLOPs and compulsory bytes
  double samples = 0;  ///< what throughput counts per step
  std::string
      sample_unit{};  ///< "rows", "matrices", "vectors", "bytes", "launches", "rounds", later "images", "tokens"
  /// Bytes that the step touches again and again: decides which level of the memory hierarchy bounds it.
  double working_set_bytes = 0;
};

/// What a step is bound to: one device pointer per BufferSpec, in the order of `buffers()`.
using Binding = std::vector<void*>;

class Workload {
 public:
  virtual ~Workload() = default;

  virtual const std::vector<BufferSpec>& buffers() const = 0;
  virtual Work work() const = 0;
  /// Ops and precision it needs, to answer `supports` before anything is allocated.
  virtual Support supported_by(Device& device) const = 0;
  virtual OutputTolerance tolerance(size_t buffer) const = 0;
  /// Enqueues one step on `device`. For op workloads one call of the op.
  virtual void step(Device& device, const Binding& buffers) = 0;

  /// Exact work that only the device knows (the FMA chains of `peak`). Called once, after allocation.
  virtual std::optional<Cost> device_cost(Device&) const { return std::nullopt; }
  /// False where `reference` computes another thing (peak's number of lanes): `verify_self` decides instead.
  virtual bool verifiable_by_reference() const { return true; }
  /// Checks host copies of the buffers after one step from the initial state; "" when right, else what is wrong.
  virtual std::string verify_self(Device&, const std::vector<HostTensor>&) const { return ""; }
  /// Called where the device is known and nothing is allocated yet: whatever of `buffers` depends on the device (image
  /// layout, workspace of its ops) takes its size. `prepare` includes it.
  virtual void adapt(Device&) {}
  /// What the step is made of, where it is the step of a model (core/train/model.h): it is then verified op by op, can
  /// be dumped tensor by tensor, and its loss must stay finite. nullptr otherwise.
  virtual const TrainingModel* model() const { return nullptr; }
  /// The same work on fewer samples, such that naive loops can verify a step that moves at most `bytes`; nullptr where
  /// this one is small enough or can't be made smaller.
  virtual std::unique_ptr<Workload> smaller(double /*bytes*/) const { return nullptr; }
  /// Called once per device before its buffers are allocated: buffers whose size the device decides are resized (peak's
  /// outputs), host memory that the step itself needs is allocated (transfer). The workload then dies before the
  /// device.
  virtual void prepare(Device&) {}
  /// Whether the step talks to host memory itself (transfer): it is then timed on both sides of the link.
  virtual HostMemory host_memory() const { return HostMemory::pageable; }
};

/// Everything about a kind of workload that is known without an instance; one static object per file in
/// bench/workloads.
struct WorkloadDescriptor {
  std::string name;              ///< "gemm"
  std::string workload_class;    ///< "ops", "system", "train", …
  std::string summary;           ///< one line for `dlbench list`
  std::string sweep_axis;        ///< x axis of its crossovers: "batch", "bytes", …
  std::vector<AxisSpec> axes{};  ///< its own axes in key order, beside the common ones
  std::vector<Precision> precisions{};
  /// Common axes of which only some words mean something here: a transfer is never replayed as a graph.
  std::vector<std::pair<std::string, std::vector<std::string>>> narrowed{};
  /// Sides that can run it at all; transfer and launch=graph exist on one side only.
  std::vector<Side> sides{Side::cpu, Side::gpu};
  /// "" when the combination of axis values makes sense, else a sentence.
  std::string (*check)(const Point&) = nullptr;
  std::unique_ptr<Workload> (*create)(const Point&) = nullptr;
};

/// Every axis of a workload in key order: its own, then the common ones with only the words that it has.
std::vector<AxisSpec> axes_of(const WorkloadDescriptor& workload);

/// The workloads that exist, in the order of workloads.def.
class WorkloadCatalog {
 public:
  explicit WorkloadCatalog(std::vector<const WorkloadDescriptor*> workloads) : workloads_(std::move(workloads)) {}
  const std::vector<const WorkloadDescriptor*>& all() const { return workloads_; }
  /// nullptr when there is none of this name.
  const WorkloadDescriptor* find(std::string_view name) const;
  std::vector<std::string> names() const;

 private:
  std::vector<const WorkloadDescriptor*> workloads_;
};

}  // namespace dlbench
