#include "core/analysis/comparability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dlbench {

namespace {

/// The value at a pointer; null where the file doesn't say.
Json at(const Json& json, const std::string& pointer) {
  const Json::json_pointer place(pointer);
  return json.contains(place) ? json[place] : Json(nullptr);
}

std::string shown(const Json& value) {
  if (value.is_null()) return "unknown";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

struct Field {
  const char* pointer;
  const char* name;
};

// What decides how long the same instructions take.
constexpr Field kMachine[] = {{"/cpu/model", "CPU model"},
                              {"/cpu/family", "CPU family"},
                              {"/cpu/model_number", "CPU model number"},
                              {"/cpu/stepping", "CPU stepping"},
                              {"/cpu/isa", "instruction sets of the CPU"},
                              {"/cpu/usable_cpus", "usable CPUs"},
                              {"/cpu/governor", "CPU frequency governor"},
                              {"/cpu/turbo", "turbo"},
                              {"/cpu/max_khz", "highest CPU clock"},
                              {"/cpu/smt", "SMT"},
                              {"/os/architecture", "architecture"},
                              {"/os/hypervisor", "hypervisor"},
                              {"/denormals", "treatment of denormals"}};
constexpr Field kSoftware[] = {{"/os/kernel", "kernel"},
                               {"/os/name", "operating system"},
                               {"/os/libc", "C library"},
                               {"/cpu/microcode", "microcode"},
                               {"/cpu/scaling_driver", "CPU frequency driver"},
                               {"/memory/transparent_huge_pages", "transparent huge pages"}};
constexpr Field kTool[] = {{"/compiler", "compiler"},
                           {"/flags", "compiler flags"},
                           {"/build_type", "build type"},
                           {"/libraries", "libraries"}};
constexpr Field kDevice[] = {{"/kind", "kind"},
                             {"/name", "model"},
                             {"/threads", "threads"},
                             {"/emulated", "emulation"},
                             {"/facts/affinity_cpus", "CPUs of the affinity mask"},
                             {"/facts/cgroup_quota_cpus", "CPU quota"},
                             {"/facts/compute_capability", "compute capability"},
                             {"/facts/power_limit_watts", "power limit"},
                             {"/facts/sm_clock_max_hz", "highest SM clock"},
                             {"/facts/memory_clock_max_hz", "highest memory clock"},
                             {"/facts/ecc", "ECC"},
                             {"/facts/mig", "MIG"}};

class Comparer {
 public:
  Comparer(const std::string& a, const std::string& b) : a_(a), b_(b) {}

  template <size_t N>
  void fields(const Json& x, const Json& y, const Field (&list)[N], const std::string& of,
              std::vector<std::string>& where) {
    for (const Field& f : list) differ(at(x, f.pointer), at(y, f.pointer), of + f.name, where);
  }
  void memory(const Json& x, const Json& y);
  void devices(const Json& x, const Json& y, const std::set<std::string>& ids);

  Differences found;

 private:
  void differ(const Json& x, const Json& y, const std::string& name, std::vector<std::string>& where) {
    if (x != y) where.push_back(fmt::format("{}: {} in {}, {} in {}", name, shown(x), a_, shown(y), b_));
  }
  const std::string &a_, &b_;
};

/// The kernel keeps a little for itself, and how much changes with its version: up to 2 % is the same machine.
void Comparer::memory(const Json& x, const Json& y) {
  const Json m = at(x, "/memory/total_bytes"), n = at(y, "/memory/total_bytes");
  if (m.is_number() && n.is_number()) {
    const double p = m.get<double>(), q = n.get<double>();
    if (std::abs(p - q) <= 0.02 * std::max(p, q)) return;
  }
  differ(m, n, "memory in bytes", found.fatal);
}

const Json* device_of(const Json& environment, const std::string& id) {
  if (!environment.contains("devices") || !environment["devices"].is_array()) return nullptr;
  for (const Json& device : environment["devices"]) {
    if (device.is_object() && device.contains("id") && device["id"] == id) return &device;
  }
  return nullptr;
}

/// Facts of a device beyond those that decide: versions and paths of libraries and drivers.
void Comparer::devices(const Json& x, const Json& y, const std::set<std::string>& ids) {
  for (const std::string& id : ids) {
    const Json *p = device_of(x, id), *q = device_of(y, id);
    if (!p && !q) continue;  // virtual devices stand in no environment
    if (!p || !q) {
      found.fatal.push_back(fmt::format("device {}: not described in {}", id, p ? b_ : a_));
      continue;
    }
    fields(*p, *q, kDevice, id + ": ", found.fatal);
    const Json facts = at(*p, "/facts"), others = at(*q, "/facts");
    if (!facts.is_object() || !others.is_object()) continue;
    std::set<std::string> names;
    for (const auto& [name, value] : facts.items()) names.insert(name);
    for (const auto& [name, value] : others.items()) names.insert(name);
    for (const std::string& name : names) {
      const bool decided = std::any_of(std::begin(kDevice), std::end(kDevice),
                                       [&](const Field& f) { return f.pointer == "/facts/" + name; });
      const bool state = name.find("now") != std::string::npos || name.find("free") != std::string::npos ||
                         name.find("temperature") != std::string::npos || name == "pci_bus_id";
      if (!decided && !state) differ(at(facts, "/" + name), at(others, "/" + name), id + ": " + name, found.warnings);
    }
  }
}

}  // namespace

Differences compare_environments(const Result& first, const std::string& a, const Result& second, const std::string& b,
                                 const std::set<std::string>& devices) {
  Comparer comparer(a, b);
  comparer.fields(first.environment, second.environment, kMachine, "", comparer.found.fatal);
  comparer.memory(first.environment, second.environment);
  comparer.devices(first.environment, second.environment, devices);
  comparer.fields(first.environment, second.environment, kSoftware, "", comparer.found.warnings);
  comparer.fields(first.tool, second.tool, kTool, "", comparer.found.warnings);
  return std::move(comparer.found);
}

}  // namespace dlbench
