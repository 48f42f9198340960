// The timed region: N steps and one synchronisation, over resident or streamed data, launched call by call or as
// graphs.
//
// Why: what a timing contains is decided here and nowhere else. Promises: between the two clock readings there are only
// the steps, the device timer and the synchronisation; nothing is allocated (the device's own counter is compared).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/measure/buffers.h"

namespace dlbench {

struct StepMode {
  bool graph = false;                  ///< launch=graph: one captured graph per set of buffers
  std::optional<HostMemory> streamed;  ///< the inputs are copied from such host memory inside the step
};

/// From the axes `launch` and `data`; a point without them is launched call by call on resident data.
StepMode step_mode(const Point& point);

class TimedStep {
 public:
  TimedStep(Workload& workload, Device& device, const BufferSets& buffers, const StepMode& mode);
  ~TimedStep();
  TimedStep(const TimedStep&) = delete;
  TimedStep& operator=(const TimedStep&) = delete;

  /// Runs every set of buffers once, so that lazy loading, tuning and graphs are behind us.
  void prepare();

  struct Timing {
    double wall_seconds = 0;               ///< of all steps together
    std::optional<double> device_seconds;  ///< of all steps together
  };
  Timing time(int64_t steps);
  int64_t allocations_in_timed_region() const { return allocations_; }
  /// Steps made so far, those of `prepare` included.
  int64_t steps() const { return steps_; }

 private:
  struct HostCopy;
  void step();

  Workload& workload_;
  Device& device_;
  const BufferSets& buffers_;
  StepMode mode_;
  std::vector<std::unique_ptr<Graph>> graphs_;  ///< per set
  std::vector<HostCopy> host_copies_;           ///< of the inputs, all sets
  int set_ = 0;
  int64_t allocations_ = 0, steps_ = 0;
};

}  // namespace dlbench
