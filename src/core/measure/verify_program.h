// Verification of a training step, op by op, at the shapes of the step.
//
// Why not only the end of the step: behind batch norm and ReLU a difference in the last bit can change which gradients
// pass, and two right steps of a deep network may differ by a tenth (shared with any framework). Op by op nothing
// accumulates: before each instruction `reference` gets the very inputs that the device has, both run it, and what it
// writes is compared with the tolerance of its op class (verify.h). Ten whole steps are compared by the tests.
#pragma once

#include "core/measure/verify.h"

namespace dlbench {

/// Runs the step of `workload.model()` once from its initial state. Reference computes a sample of each op's outputs
/// where all of it would cost more than its share of `reference_flop_cap`; a batch whose step moves more bytes than
/// naive loops can do is verified by a smaller one. Then `how` is sampled, and `fraction` the share of compared values.
Verification verify_program(Workload& workload, Device& device, uint64_t seed, double reference_flop_cap);

}  // namespace dlbench
