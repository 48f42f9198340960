#include "core/result/environment.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/usable_cpus.h"

namespace dlbench {

namespace fs = std::filesystem;

namespace {

Json or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json number_or_null(const std::optional<std::string>& text) {
  if (!text) return nullptr;
  char* end = nullptr;
  const double value = std::strtod(text->c_str(), &end);
  return end == text->c_str() ? Json(nullptr) : Json(value);
}

/// First value of a "name : value" line of /proc/cpuinfo.
std::optional<std::string> cpuinfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t end = line.find_last_not_of(" \t", colon - 1);
    if (end == std::string::npos || line.substr(0, end + 1) != name) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return std::nullopt;
}

/// The flags of the CPU that decide which kernels run; the rest of the list is noise.
Json isa_flags() {
  static const std::set<std::string> wanted = {
      "sse2",     "sse4_2",   "avx",         "fma",         "f16c",        "avx2",     "avx512f",  "avx512bw",
      "avx512dq", "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16",
      "amx_int8", "asimd",    "asimdhp",     "asimddp",     "sve",         "sve2",     "bf16",     "i8mm"};
  Json list = Json::array();
  const auto text = cpuinfo("flags") ? cpuinfo("flags") : cpuinfo("Features");
  std::istringstream words(text.value_or(""));
  for (std::string word; words >> word;) {
    if (wanted.contains(word)) list.push_back(word);
  }
  return list;
}

Json caches() {
  Json list = Json::array();
  for (int index = 0; index < 8; ++index) {
    const fs::path directory = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}", index);
    const auto level = first_line(directory / "level"), type = first_line(directory / "type");
    const auto size = first_line(directory / "size"), shared = first_line(directory / "shared_cpu_list");
    if (!level || !size) break;
    list.push_back(
        {{"level", std::stoi(*level)}, {"type", or_null(type)}, {"size", *size}, {"shared_cpus", or_null(shared)}});
  }
  return list;
}

/// yes | no | null where the system doesn't tell.
Json turbo() {
  if (const auto off = first_line("/sys/devices/system/cpu/intel_pstate/no_turbo")) return *off == "0" ? "on" : "off";
  if (const auto on = first_line("/sys/devices/system/cpu/cpufreq/boost")) return *on == "1" ? "on" : "off";
  return nullptr;
}

int numa_nodes() {
  int nodes = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/sys/devices/system/node", error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("node", 0) == 0 && name.find_first_not_of("0123456789", 4) == std::string::npos) ++nodes;
  }
  return nodes;
}

Json cpu_record() {
  const UsableCpus usable = usable_cpus();
  const fs::path frequency = "/sys/devices/system/cpu/cpu0/cpufreq";
  return {{"model", or_null(cpuinfo("model name"))},
          {"family", number_or_null(cpuinfo("cpu family"))},
          {"model_number", number_or_null(cpuinfo("model"))},
          {"stepping", number_or_null(cpuinfo("stepping"))},
          {"microcode", or_null(cpuinfo("microcode"))},
          {"isa", isa_flags()},
          {"online_cpus", sysconf(_SC_NPROCESSORS_ONLN)},
          {"affinity_cpus", usable.affinity.size()},
          {"cgroup_quota_cpus", usable.quota_cpus ? Json(*usable.quota_cpus) : Json(nullptr)},
          {"usable_cpus", usable.count},
          {"mhz_now", number_or_null(cpuinfo("cpu MHz"))},
          {"governor", or_null(first_line(frequency / "scaling_governor"))},
          {"scaling_driver", or_null(first_line(frequency / "scaling_driver"))},
          {"max_khz", number_or_null(first_line(frequency / "cpuinfo_max_freq"))},
          {"turbo", turbo()},
          {"smt", or_null(first_line("/sys/devices/system/cpu/smt/control"))},
          {"numa_nodes", numa_nodes()},
          {"caches", caches()}};
}

/// The word in brackets of "always [madvise] never".
std::optional<std::string> chosen_word(const fs::path& path) {
  const auto line = first_line(path);
  if (!line) return std::nullopt;
  const size_t open = line->find('['), close = line->find(']');
  return open == std::string::npos || close == std::string::npos ? line : line->substr(open + 1, close - open - 1);
}

std::optional<int64_t> meminfo_bytes(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(name + ":", 0) == 0) return std::stoll(line.substr(name.size() + 1)) * 1024;
  }
  return std::nullopt;
}

Json memory_record() {
  const auto total = meminfo_bytes("MemTotal"), available = meminfo_bytes("MemAvailable");
  return {{"total_bytes", total ? Json(*total) : Json(nullptr)},
          {"available_bytes", available ? Json(*available) : Json(nullptr)},
          {"transparent_huge_pages", or_null(chosen_word("/sys/kernel/mm/transparent_hugepage/enabled"))}};
}

std::optional<std::string> os_name() {
  std::ifstream file("/etc/os-release");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("PRETTY_NAME=", 0) != 0) continue;
    std::string name = line.substr(12);
    name.erase(std::remove(name.begin(), name.end(), '"'), name.end());
    return name;
  }
  return std::nullopt;
}

/// Vendor of the hypervisor as far as Linux shows it; null on bare metal.
Json hypervisor() {
  const auto flags = cpuinfo("flags");
  const bool guest = flags && (" " + *flags + " ").find(" hypervisor ") != std::string::npos;
  if (const auto type = first_line("/sys/hypervisor/type")) return *type;
  if (!guest) return nullptr;
  return first_line("/sys/class/dmi/id/sys_vendor").value_or("unknown");
}

Json os_record() {
  utsname names{};
  uname(&names);
  double load[1] = {};
  const bool known = getloadavg(load, 1) == 1;
  return {{"system", names.sysname},
          {"kernel", names.release},
          {"architecture", names.machine},
          {"name", or_null(os_name())},
          {"libc", fmt::format("glibc {}", gnu_get_libc_version())},
          {"hypervisor", hypervisor()},
          {"load_average_1_minute", known ? Json(load[0]) : Json(nullptr)}};
}

Json device_record(const BackendStatus& backend, const DeviceInfo& device) {
  Json facts = Json::object();
  for (const auto& [name, value] : device.facts) facts[name] = value;
  return {{"id", device.id},
          {"kind", device.kind},
          {"side", to_string(device.side)},
          {"name", device.name},
          {"memory_bytes", device.memory_bytes},
          {"threads", device.threads},
          {"emulated", device.emulated},
          {"backend_file", backend.file.filename().string()},
          {"facts", facts}};
}

/// Facts that differ from minute to minute say nothing about which machine this is.
Json lasting(Json device) {
  Json facts = Json::object();
  for (const auto& [name, value] : device["facts"].items()) {
    const bool state = name.find("clock") != std::string::npos || name.find("temperature") != std::string::npos ||
                       name.find("free") != std::string::npos || name.find("now") != std::string::npos;
    if (!state) facts[name] = value;
  }
  device["facts"] = facts;
  device.erase("backend_file");
  return device;
}

std::string fingerprint_of(const Json& environment) {
  const Json& cpu = environment.at("cpu");
  Json relevant = {{"model", cpu.at("model")},
                   {"isa", cpu.at("isa")},
                   {"usable_cpus", cpu.at("usable_cpus")},
                   {"memory", environment.at("memory").at("total_bytes")},
                   {"hypervisor", environment.at("os").at("hypervisor")},
                   {"architecture", environment.at("os").at("architecture")},
                   {"devices", Json::array()}};
  for (const Json& device : environment.at("devices")) relevant["devices"].push_back(lasting(device));
  uint64_t hash = 0xCBF29CE484222325ull;  // FNV-1a, 64 bit
  for (const char c : relevant.dump()) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ull;
  return fmt::format("{:016x}", hash);
}

}  // namespace

Json environment_record(Registry& registry) {
  Json record = {{"fingerprint", ""},
                 {"cpu", cpu_record()},
                 {"memory", memory_record()},
                 {"os", os_record()},
                 {"denormals", "flushed to zero"},
                 {"devices", Json::array()},
                 {"absent", Json::object()}};
  for (const BackendStatus& backend : registry.backends()) {
    if (backend.probe.absence != Absence::none) record["absent"][backend.kind] = backend.probe.sentence;
    if (backend.kind == "meta" || backend.kind == "reference") continue;
    for (const DeviceInfo& device : backend.probe.devices) record["devices"].push_back(device_record(backend, device));
  }
  record["fingerprint"] = fingerprint_of(record);
  return record;
}

Json tool_record() {
  return {{"name", "dlbench"},
          {"version", DLBENCH_VERSION},
          {"commit", DLBENCH_COMMIT},
          {"compiler", DLBENCH_COMPILER},
          {"flags", DLBENCH_FLAGS},
          {"build_type", DLBENCH_BUILD_TYPE},
          {"libraries",
           {{"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
            {"google_benchmark", DLBENCH_BENCHMARK_VERSION},
            {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                          NLOHMANN_JSON_VERSION_PATCH)}}}};
}

std::vector<std::string> environment_advice(const Json& environment) {
  std::vector<std::string> advice;
  const Json& cpu = environment.at("cpu");
  const Json& os = environment.at("os");
  if (cpu.at("governor").is_string() && cpu.at("governor") != "performance") {
    advice.push_back(
        fmt::format("the CPU frequency governor is \"{}\": clocks move during a run; as root: cpupower "
                    "frequency-set -g performance",
                    cpu.at("governor").get<std::string>()));
  }
  if (os.at("load_average_1_minute").is_number() && os.at("load_average_1_minute").get<double>() > 0.5) {
    advice.push_back(
        fmt::format("the machine is busy (load average {:.2f} over the last minute): end other work before you "
                    "trust a time",
                    os.at("load_average_1_minute").get<double>()));
  }
  if (cpu.at("cgroup_quota_cpus").is_number() &&
      cpu.at("cgroup_quota_cpus").get<double>() < cpu.at("affinity_cpus").get<double>()) {
    advice.push_back(
        fmt::format("a cgroup allows {:.2f} CPUs of {}: {} threads are used; pin the process (taskset, cpuset) "
                    "for steadier times",
                    cpu.at("cgroup_quota_cpus").get<double>(), cpu.at("affinity_cpus").get<int>(),
                    cpu.at("usable_cpus").get<int>()));
  }
  if (!os.at("hypervisor").is_null()) {
    advice.push_back(
        "this is a virtual machine: its CPUs may be moved during a run; timings carry the label of their placement, "
        "and only equal labels are compared");
  }
  return advice;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace dlbench
