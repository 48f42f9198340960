#include "core/measure/loss_check.h"

#include <fmt/format.h>

#include <cmath>

#include "core/train/model.h"

namespace dlbench {

namespace {

double sum_of_losses(const Workload& workload, const BufferSets& buffers) {
  const TrainingModel& model = *workload.model();
  const HostTensor losses = buffers.read(model.program.tensor(model.losses).buffer);
  double sum = 0;
  for (int64_t i = 0; i < losses.size(); ++i) sum += losses.at(i);
  return sum;
}

}  // namespace

bool loss_is_finite(const Workload& workload, const BufferSets& buffers) {
  return !workload.model() || std::isfinite(sum_of_losses(workload, buffers));
}

std::string describe_bad_loss(Workload& workload, Device& device, BufferSets& buffers, int64_t steps) {
  buffers.reset();
  for (int64_t step = 1; step <= steps; ++step) {
    workload.step(device, buffers.binding(static_cast<int>((step - 1) % buffers.sets())));
    device.synchronize();
    const double loss = sum_of_losses(workload, buffers);
    if (std::isfinite(loss)) continue;
    return fmt::format("the loss is {} at step {} from the initial state; timings of it would mean nothing",
                       std::isnan(loss) ? "NaN" : "infinite", step);
  }
  return fmt::format("the loss wasn't finite after {} steps, and is in as many again: this device isn't deterministic",
                     steps);
}

}  // namespace dlbench
