#include "core/device/registry.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/device/plugin_loader.h"
#include "core/device/reference_device.h"

namespace dlbench {

/// A kind of device that comes from a plugin; `file` is empty when there is none.
struct Registry::Backend {
  std::string kind;
  std::filesystem::path file;
  bool opened = false;
  LoadedPlugin plugin;
};

namespace {

std::string listed(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::string> names;
  for (const auto& folder : folders) names.push_back(folder.string());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string kind_of(const std::string& id) {
  return id.substr(0, id.find(':'));
}

/// The folder of the shared library that holds this function.
std::filesystem::path core_folder() {
  Dl_info info{};
  if (!::dladdr(reinterpret_cast<const void*>(&core_folder), &info) || !info.dli_fname) return {};
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::filesystem::path() : file.parent_path();
}

std::string missing_sentence(const std::string& kind, const std::vector<std::filesystem::path>& folders) {
  const char* remedy = kind == "gpu"
                           ? "build dlbench with the CUDA toolkit (-DDLBENCH_GPU=ON) or install the package that has it"
                           : "build or reinstall dlbench";
  return fmt::format(
      "the {0} backend isn't installed: there is no libdlbench_backend_{0}.so in {1}; {2}, or name its folder in "
      "DLBENCH_PLUGIN_DIR",
      kind, listed(folders), remedy);
}

}  // namespace

Registry::Registry(Options options) : options_(std::move(options)) {
  if (options_.search_path.empty()) options_.search_path = default_search_path();
  for (const char* kind : {"cpu", "gpu"}) {
    found_.push_back(std::make_unique<Backend>());
    found_.back()->kind = kind;
  }
  for (const auto& folder : options_.search_path) {
    for (auto& [kind, file] : plugins_in(folder)) {
      Backend* known = find(kind);
      if (!known) {
        found_.push_back(std::make_unique<Backend>());
        known = found_.back().get();
        known->kind = kind;
      }
      if (known->file.empty()) known->file = std::move(file);
    }
  }
  std::sort(found_.begin() + 2, found_.end(), [](const auto& a, const auto& b) { return a->kind < b->kind; });
}

Registry::~Registry() = default;

std::vector<std::filesystem::path> Registry::default_search_path() {
  std::vector<std::filesystem::path> folders;
  const auto add = [&folders](const std::filesystem::path& folder) {
    const std::filesystem::path plain = folder.lexically_normal();
    if (!plain.empty() && std::find(folders.begin(), folders.end(), plain) == folders.end()) folders.push_back(plain);
  };
  if (const char* named = std::getenv("DLBENCH_PLUGIN_DIR")) {
    std::istringstream list(named);
    for (std::string folder; std::getline(list, folder, ':');) add(folder);
  }
  std::error_code error;
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    add(executable.parent_path());
    add(executable.parent_path().parent_path() / "lib" / "dlbench");
  }
  add(core_folder());
  return folders;
}

Registry::Backend* Registry::find(const std::string& kind) const {
  const auto it = std::find_if(found_.begin(), found_.end(), [&kind](const auto& b) { return b->kind == kind; });
  return it == found_.end() ? nullptr : it->get();
}

const ProbeResult& Registry::probe(Backend& backend) {
  if (!backend.opened) {
    backend.opened = true;
    if (backend.file.empty()) {
      backend.plugin.probe = {Absence::plugin_missing, missing_sentence(backend.kind, options_.search_path), {}};
    } else {
      backend.plugin = load_plugin(backend.file, backend.kind);
    }
  }
  return backend.plugin.probe;
}

const std::vector<BackendStatus>& Registry::backends() {
  if (!status_.empty()) return status_;
  for (const auto& backend : found_) {
    const ProbeResult& probed = probe(*backend);
    status_.push_back({backend->kind, backend->file, probed});
  }
  status_.push_back({"reference", {}, look_up("reference")});
  BackendStatus meta{"meta", {}, {}};
  for (const char* id : {"meta:cpu", "meta:gpu"}) meta.probe.devices.push_back(look_up(id).devices.front());
  status_.push_back(std::move(meta));
  return status_;
}

std::vector<std::string> Registry::device_ids() {
  std::vector<std::string> ids;
  for (const BackendStatus& backend : backends()) {
    if (backend.probe.absence != Absence::none) continue;
    for (const DeviceInfo& device : backend.probe.devices) ids.push_back(device.id);
  }
  return ids;
}

std::string Registry::canonical_id(const std::string& written) const {
  if (written == "cpu" || written == "reference" || written == "meta:cpu" || written == "meta:gpu") return written;
  const std::string kind = kind_of(written),
                    index = written.size() > kind.size() ? written.substr(kind.size() + 1) : "";
  const bool has_index = written.size() > kind.size();
  const bool whole = !index.empty() && index.size() <= 4 &&
                     index.find_first_not_of("0123456789") == std::string::npos &&
                     (index.size() == 1 || index[0] != '0');
  if (kind == "meta") {
    throw UsageError(
        fmt::format("'{}' is not a device; the meta device has two sides: meta:cpu and meta:gpu", written));
  }
  if (kind == "cpu" && whole && index == "0") return "cpu";
  if (kind == "cpu" || kind == "reference") {
    throw UsageError(fmt::format("'{}' is not a device; there is one {}, written \"{}\"", written, kind, kind));
  }
  if (find(kind)) {
    if (!has_index) return kind + ":0";
    if (whole) return written;
    throw UsageError(
        fmt::format("'{}' is not a device; write \"{}:\" and a whole number, for example {}:0", written, kind, kind));
  }
  std::vector<std::string> known;
  for (const auto& backend : found_) known.push_back(backend->kind);
  known.insert(known.end(), {"reference", "meta:cpu", "meta:gpu"});
  const std::string nearest = nearest_word(written, known);
  throw UsageError(fmt::format("unknown device '{}'{}; known kinds: {}", written,
                               nearest.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", nearest),
                               fmt::join(known, ", ")));
}

ProbeResult Registry::look_up(const std::string& written) {
  const std::string id = canonical_id(written);
  ProbeResult result;
  if (id == "reference") {
    result.devices.push_back(make_reference_device({})->info());
    return result;
  }
  if (kind_of(id) == "meta") {
    result.devices.push_back(make_meta_device(id == "meta:cpu" ? Side::cpu : Side::gpu, options_.meta)->info());
    return result;
  }
  const ProbeResult& probed = probe(*find(kind_of(id)));
  if (probed.absence != Absence::none) return {probed.absence, probed.sentence, {}};
  std::vector<std::string> present;
  for (const DeviceInfo& device : probed.devices) {
    if (device.id == id) return {Absence::none, "", {device}};
    present.push_back(device.id);
  }
  return {Absence::device_missing, fmt::format("there is no {} here; found: {}", id, fmt::join(present, ", ")), {}};
}

std::unique_ptr<Device> Registry::create(const std::string& written, const DeviceOptions& options) {
  const std::string id = canonical_id(written);
  const ProbeResult found = look_up(id);
  if (found.absence != Absence::none) throw DeviceAbsentError(found.sentence);
  if (id == "reference") return make_reference_device({});
  if (kind_of(id) == "meta")
    return make_meta_device(id == "meta:cpu" ? Side::cpu : Side::gpu, options_.meta, options.threads);
  const BackendPlugin& table = *find(kind_of(id))->plugin.table;
  std::unique_ptr<Device> device;
  try {
    device = table.create(found.devices.front().index, options);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw Error(fmt::format("{}: the {} backend failed to start the device: {}", id, table.kind, e.what()));
  }
  if (!device)
    throw Error(
        fmt::format("{}: the {} backend returned no device; report this as a bug of the backend", id, table.kind));
  return device;
}

}  // namespace dlbench
