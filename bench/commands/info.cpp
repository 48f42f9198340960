// `dlbench info`: what is found on this machine, and why the rest isn't.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "commands/command_line.h"
#include "core/base/json.h"
#include "core/base/usable_cpus.h"
#include "core/device/registry.h"

namespace dlbench {

namespace {

std::string gibibytes(int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

Json to_json(const DeviceInfo& device) {
  return Json{{"id", device.id},
              {"kind", device.kind},
              {"side", to_string(device.side)},
              {"name", device.name},
              {"memory_bytes", device.memory_bytes},
              {"threads", device.threads},
              {"emulated", device.emulated},
              {"facts", device.facts}};
}

Json info_json(const std::vector<BackendStatus>& backends, const UsableCpus& cpus) {
  Json json{{"version", program_version()}};
  Json& usable = json["usable_cpus"];
  usable = Json{{"count", cpus.count}, {"affinity", cpus.affinity}, {"quota_cpus", nullptr}, {"quota_source", nullptr}};
  if (cpus.quota_cpus) {
    usable["quota_cpus"] = *cpus.quota_cpus;
    usable["quota_source"] = cpus.quota_source;
  }
  json["backends"] = Json::array();
  for (const BackendStatus& backend : backends) {
    Json devices = Json::array();
    for (const DeviceInfo& device : backend.probe.devices) devices.push_back(to_json(device));
    json["backends"].push_back(Json{{"kind", backend.kind},
                                    {"file", backend.file.empty() ? Json(nullptr) : Json(backend.file.string())},
                                    {"usable", backend.probe.absence == Absence::none},
                                    {"absence", to_string(backend.probe.absence)},
                                    {"sentence", backend.probe.sentence},
                                    {"devices", std::move(devices)}});
  }
  return json;
}

void print_device(std::ostream& out, const DeviceInfo& device) {
  out << fmt::format("  {:<10} {}{}\n", device.id, device.name,
                     device.emulated ? " (emulated: checks only, no timing)" : "");
  const char* unit = device.kind == "gpu" ? "multiprocessors" : device.threads == 1 ? "thread" : "threads";
  out << fmt::format("  {:<10} {} {}, {} of memory\n", "", device.threads, unit, gibibytes(device.memory_bytes));
  for (const auto& [name, value] : device.facts) out << fmt::format("  {:<10} {}: {}\n", "", name, value);
}

void print_info(std::ostream& out, const std::vector<BackendStatus>& backends, const UsableCpus& cpus) {
  out << fmt::format("dlbench {}\n\nUsable CPUs: {} ({} in the affinity mask", program_version(), cpus.count,
                     cpus.affinity.size());
  if (cpus.quota_cpus)
    out << fmt::format(", quota of {:.2f} set by {})\n", *cpus.quota_cpus, cpus.quota_source);
  else
    out << ", no quota)\n";

  out << "\nBackends\n";
  for (const BackendStatus& backend : backends) {
    const std::string where = backend.file.empty() ? "built in" : backend.file.string();
    const bool usable = backend.probe.absence == Absence::none;
    out << fmt::format("  {:<10} {}\n", backend.kind,
                       usable ? "usable, " + where : "not usable: " + backend.probe.sentence);
  }

  out << "\nDevices\n";
  for (const BackendStatus& backend : backends)
    for (const DeviceInfo& device : backend.probe.devices) print_device(out, device);
}

}  // namespace

void add_info_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command =
      app.add_subcommand("info", "Say which backends and devices are usable here, and why others aren't");
  command->footer("Example: dlbench info --json | python3 -m json.tool");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([&program, &action, json] {
    action = [&program, json] {
      Registry registry({});
      const auto& backends = registry.backends();
      const UsableCpus cpus = usable_cpus();
      if (*json)
        program.out << dump_json(info_json(backends, cpus)) << '\n';
      else
        print_info(program.out, backends, cpus);
      return ExitCode::kOk;
    };
  });
}

}  // namespace dlbench
