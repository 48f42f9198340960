// Counters of the operating system around a measurement: time stolen by the hypervisor, time stopped by a cgroup quota,
// resident memory, load. Why: they tell disturbed timings from slow code. Promises: a counter that this system lacks is
// empty, never zero.
#pragma once

#include <cstdint>
#include <optional>

namespace dlbench {

struct HostCounters {
  std::optional<double> steal_seconds;             ///< sum over all CPUs since boot, /proc/stat
  std::optional<double> cgroup_throttled_seconds;  ///< of this process's cgroup since it was made
};
HostCounters read_host_counters();
/// b - a where both are known.
HostCounters difference(const HostCounters& a, const HostCounters& b);

std::optional<int64_t> resident_bytes();
/// Highest resident memory since the start of the process or since `reset_peak_resident`.
std::optional<int64_t> peak_resident_bytes();
void reset_peak_resident();
/// CPU seconds that all threads of this process have used.
double process_cpu_seconds();
/// Waits until the threads of this process are idle (at most `limit_seconds`): BLAS and TBB workers go on spinning for
/// up to 25 ms after their last work and would disturb a probe.
void wait_until_idle(double limit_seconds);

}  // namespace dlbench
