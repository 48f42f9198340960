// NVML by dlopen; see nvml.h.
#include "gpu/nvml.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace dlbench::gpu {

namespace {
// Values of nvml.h.
using NvmlReturn = int;
using NvmlDevice = void*;
constexpr NvmlReturn kSuccess = 0;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kTemperatureGpu = 0;
}  // namespace

struct Nvml::Functions {
  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*handle_by_pci)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*max_clock)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  NvmlReturn (*power)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*throttle_reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*ecc_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*mig_mode)(NvmlDevice, unsigned*, unsigned*) = nullptr;
};

namespace {

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

/// The value that `function(device, arguments..., &value)` gives, or nothing.
template <typename Value, typename... Parameters, typename... Arguments>
std::optional<Value> ask(NvmlReturn (*function)(Parameters...), Arguments... arguments) {
  Value value = 0;
  if (function == nullptr || function(arguments..., &value) != kSuccess) return std::nullopt;
  return value;
}

}  // namespace

std::string throttle_reason_names(unsigned long long bits) {
  struct Reason {
    unsigned long long bit;
    const char* name;
  };
  constexpr Reason kReasons[] = {
      {0x2, "applications_clocks"},  {0x4, "sw_power_cap"},         {0x8, "hw_slowdown"},     {0x10, "sync_boost"},
      {0x20, "sw_thermal_slowdown"}, {0x40, "hw_thermal_slowdown"}, {0x80, "hw_power_brake"}, {0x100, "display_clock"}};
  std::string names;
  for (const Reason& reason : kReasons) {
    if ((bits & reason.bit) != 0) names += (names.empty() ? "" : ",") + std::string(reason.name);
  }
  return names;
}

Nvml::Nvml() : functions_(std::make_unique<Functions>()) {}

std::unique_ptr<Nvml> Nvml::open(const std::string& pci_bus_id) {
  std::unique_ptr<Nvml> nvml(new Nvml);
  nvml->library_ = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml->library_ == nullptr) return nullptr;
  Functions& f = *nvml->functions_;
  resolve(nvml->library_, "nvmlInit_v2", f.init);
  resolve(nvml->library_, "nvmlDeviceGetHandleByPciBusId_v2", f.handle_by_pci);
  if (f.init == nullptr || f.handle_by_pci == nullptr || f.init() != kSuccess) return nullptr;
  resolve(nvml->library_, "nvmlShutdown", f.shutdown);
  if (f.handle_by_pci(pci_bus_id.c_str(), &nvml->device_) != kSuccess) return nullptr;
  resolve(nvml->library_, "nvmlSystemGetDriverVersion", f.driver_version);
  resolve(nvml->library_, "nvmlDeviceGetClockInfo", f.clock);
  resolve(nvml->library_, "nvmlDeviceGetMaxClockInfo", f.max_clock);
  resolve(nvml->library_, "nvmlDeviceGetTemperature", f.temperature);
  resolve(nvml->library_, "nvmlDeviceGetPowerUsage", f.power);
  resolve(nvml->library_, "nvmlDeviceGetEnforcedPowerLimit", f.power_limit);
  resolve(nvml->library_, "nvmlDeviceGetTotalEnergyConsumption", f.energy);
  resolve(nvml->library_, "nvmlDeviceGetCurrentClocksThrottleReasons", f.throttle_reasons);
  resolve(nvml->library_, "nvmlDeviceGetEccMode", f.ecc_mode);
  resolve(nvml->library_, "nvmlDeviceGetMigMode", f.mig_mode);
  return nvml;
}

Nvml::~Nvml() {
  if (functions_->shutdown != nullptr) functions_->shutdown();
  if (library_ != nullptr) dlclose(library_);
}

Telemetry Nvml::telemetry() const {
  const Functions& f = *functions_;
  Telemetry t;
  if (const auto mhz = ask<unsigned>(f.clock, device_, kClockSm)) t.clock_hz = *mhz * 1e6;
  if (const auto celsius = ask<unsigned>(f.temperature, device_, kTemperatureGpu)) t.temperature_c = *celsius;
  if (const auto milliwatts = ask<unsigned>(f.power, device_)) t.power_watts = *milliwatts * 1e-3;
  if (const auto millijoules = ask<unsigned long long>(f.energy, device_)) {
    t.energy_joules = static_cast<double>(*millijoules) * 1e-3;
  }
  if (const auto bits = ask<unsigned long long>(f.throttle_reasons, device_)) {
    t.throttle_reasons = throttle_reason_names(*bits);
  }
  return t;
}

std::map<std::string, std::string> Nvml::facts() const {
  const Functions& f = *functions_;
  std::map<std::string, std::string> facts;
  char version[96] = {};
  if (f.driver_version != nullptr && f.driver_version(version, sizeof version) == kSuccess) {
    facts["driver_version"] = version;
  }
  if (const auto mhz = ask<unsigned>(f.max_clock, device_, kClockSm)) {
    facts["sm_clock_max_hz"] = fmt::format("{}", *mhz * 1000000ull);
  }
  if (const auto mhz = ask<unsigned>(f.max_clock, device_, kClockMemory)) {
    facts["memory_clock_max_hz"] = fmt::format("{}", *mhz * 1000000ull);
  }
  if (const auto milliwatts = ask<unsigned>(f.power_limit, device_)) {
    facts["power_limit_watts"] = fmt::format("{:.1f}", *milliwatts * 1e-3);
  }
  const auto mode = [&](const char* name, NvmlReturn (*function)(NvmlDevice, unsigned*, unsigned*)) {
    unsigned current = 0, pending = 0;
    if (function != nullptr && function(device_, &current, &pending) == kSuccess)
      facts[name] = current != 0 ? "on" : "off";
  };
  mode("ecc", f.ecc_mode);
  mode("mig", f.mig_mode);
  return facts;
}

}  // namespace dlbench::gpu
