// Whether training still trains: a loss that isn't finite makes every timing of it meaningless.
#pragma once

#include <cstdint>
#include <string>

#include "core/measure/buffers.h"
#include "core/train/workload.h"

namespace dlbench {

/// True where the workload is no model, or every loss of the last step is finite.
bool loss_is_finite(const Workload& workload, const BufferSets& buffers);

/// Trains again from the initial state to find the first step whose loss isn't finite; `steps` were made before.
/// Returns a sentence with the index of that step, counted from 1. The buffers are left there.
std::string describe_bad_loss(Workload& workload, Device& device, BufferSets& buffers, int64_t steps);

}  // namespace dlbench
