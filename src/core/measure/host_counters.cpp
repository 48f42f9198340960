#include "core/measure/host_counters.h"

#include <time.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/usable_cpus.h"

namespace dlbench {

namespace {

std::optional<double> steal() {
  const auto line = first_line("/proc/stat");  // "cpu user nice system idle iowait irq softirq steal …", proc(5)
  if (!line) return std::nullopt;
  std::istringstream words(*line);
  std::string name;
  double ticks[8] = {};
  words >> name;
  for (double& t : ticks) words >> t;
  if (!words || name != "cpu") return std::nullopt;
  return ticks[7] / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::optional<double> throttled() {
  for (const auto& directory : cpu_cgroup_directories()) {
    std::ifstream file(directory / "cpu.stat");
    std::string name;
    for (double value = 0; file >> name >> value;) {
      if (name == "throttled_usec") return value * 1e-6;  // cgroup v2
      if (name == "throttled_time") return value * 1e-9;  // cgroup v1
    }
  }
  return std::nullopt;
}

/// A line "<field>:   <number> kB" of /proc/self/status.
std::optional<int64_t> status_bytes(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(field, 0) == 0) return std::stoll(line.substr(field.size())) * 1024;
  }
  return std::nullopt;
}

std::optional<double> subtract(const std::optional<double>& b, const std::optional<double>& a) {
  if (!a || !b) return std::nullopt;
  return *b - *a;
}

}  // namespace

HostCounters read_host_counters() {
  return {.steal_seconds = steal(), .cgroup_throttled_seconds = throttled()};
}

HostCounters difference(const HostCounters& a, const HostCounters& b) {
  return {.steal_seconds = subtract(b.steal_seconds, a.steal_seconds),
          .cgroup_throttled_seconds = subtract(b.cgroup_throttled_seconds, a.cgroup_throttled_seconds)};
}

std::optional<int64_t> resident_bytes() {
  return status_bytes("VmRSS:");
}

std::optional<int64_t> peak_resident_bytes() {
  return status_bytes("VmHWM:");
}

void reset_peak_resident() {
  std::ofstream("/proc/self/clear_refs") << 5;  // proc(5): sets VmHWM to VmRSS
}

double process_cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void wait_until_idle(double limit_seconds) {
  using Seconds = std::chrono::duration<double>;
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const double cpu = process_cpu_seconds();
    const auto before = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    const auto now = std::chrono::steady_clock::now();
    const double busy = (process_cpu_seconds() - cpu) / Seconds(now - before).count();
    if (busy < 0.5 || Seconds(now - start).count() > limit_seconds) return;
  }
}

}  // namespace dlbench
