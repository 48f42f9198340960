// Placement probes: what the machine is like right now, told by the machine itself.
//
// Why: hypervisors move virtual CPUs every few seconds to minutes; work that shares data between threads gets up to 3.6
// times slower, and steal time shows nothing. A ping-pong of a cache line (~1 ms) tells how far two CPUs are apart, a
// multiply-add loop on all of them (~5 ms) whether somebody else uses their cores.
// What the values mean is decided in core/result/placement.h.
#pragma once

#include <span>

#include "core/result/placement.h"

namespace dlbench {

/// Measures once, ~6 ms. Threads are pinned to the first two CPUs of `cpus` (ping-pong) and to each of them
/// (multiply-add).
ProbeValues run_probes(std::span<const int> cpus);

}  // namespace dlbench
