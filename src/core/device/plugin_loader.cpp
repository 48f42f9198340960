#include "core/device/plugin_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>

namespace dlbench {

std::string_view to_string(Absence absence) {
  switch (absence) {
    case Absence::none:
      return "none";
    case Absence::plugin_missing:
      return "plugin_missing";
    case Absence::plugin_broken:
      return "plugin_broken";
    case Absence::library_missing:
      return "library_missing";
    case Absence::library_unfit:
      return "library_unfit";
    case Absence::driver_missing:
      return "driver_missing";
    case Absence::driver_too_old:
      return "driver_too_old";
    case Absence::device_missing:
      return "device_missing";
  }
  throw std::invalid_argument("not an absence");
}

namespace {

LoadedPlugin refused(Absence absence, std::string sentence) {
  return {nullptr, {absence, std::move(sentence), {}}};
}

/// glibc's dlerror for a missing dependency: "libcublas.so.13: cannot open shared object file: No such file or
/// directory". Returns the library's name, "" when the message is about something else.
std::string missing_library(const std::string& message, const std::filesystem::path& file) {
  const size_t end = message.find(": cannot open shared object file");
  if (end == std::string::npos) return "";
  const std::string library = message.substr(0, end);
  return library == file.string() ? "" : library;
}

ProbeResult probe_of(const BackendPlugin& table, const std::filesystem::path& file) {
  try {
    ProbeResult result = table.probe();
    if (result.absence == Absence::none && result.devices.empty()) {
      return {
          Absence::device_missing, fmt::format("the {} backend ({}) found no device", table.kind, file.string()), {}};
    }
    return result;
  } catch (const std::exception& e) {
    return {Absence::plugin_broken,
            fmt::format("the {} backend failed while looking for devices: {} ({}); report this as a bug of the backend",
                        table.kind, e.what(), file.string()),
            {}};
  } catch (...) {
    return {Absence::plugin_broken,
            fmt::format("the {} backend failed while looking for devices ({}); report this as a bug of the backend",
                        table.kind, file.string()),
            {}};
  }
}

}  // namespace

LoadedPlugin load_plugin(const std::filesystem::path& file, const std::string& kind) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* error = ::dlerror();
    const std::string message = error ? error : "unknown error";
    if (const std::string library = missing_library(message, file); !library.empty()) {
      return refused(
          Absence::library_missing,
          fmt::format("the {} backend ({}) needs {}, which isn't found; install the library or add its folder to "
                      "LD_LIBRARY_PATH",
                      kind, file.string(), library));
    }
    return refused(Absence::plugin_broken,
                   fmt::format("the {} backend can't be opened: {}; rebuild or reinstall dlbench", kind, message));
  }
  const auto refuse = [handle](std::string sentence) {
    ::dlclose(handle);
    return refused(Absence::plugin_broken, std::move(sentence));
  };
  ::dlerror();
  const auto entry = reinterpret_cast<BackendEntry>(::dlsym(handle, kBackendSymbol));
  if (!entry) {
    return refuse(fmt::format("{} isn't a dlbench backend: it has no symbol {}; remove the file or rebuild it",
                              file.string(), kBackendSymbol));
  }
  const BackendPlugin* table = entry();
  const char* fingerprint = table && table->fingerprint ? table->fingerprint : "(none)";
  if (std::strcmp(fingerprint, DLB_BACKEND_FINGERPRINT) != 0) {
    return refuse(
        fmt::format("{} was built for another dlbench: its interface is {}, this program needs {}; build both from "
                    "the same source with the same compiler",
                    file.string(), fingerprint, DLB_BACKEND_FINGERPRINT));
  }
  if (!table->kind || kind != table->kind) {
    return refuse(fmt::format("{} drives devices of kind {}, but its name promises {}; rename the file", file.string(),
                              table->kind ? table->kind : "(none)", kind));
  }
  return {table, probe_of(*table, file)};
}

std::vector<std::pair<std::string, std::filesystem::path>> plugins_in(const std::filesystem::path& folder) {
  constexpr std::string_view kPrefix = "libdlbench_backend_", kSuffix = ".so";
  std::vector<std::pair<std::string, std::filesystem::path>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) || !name.ends_with(kSuffix))
      continue;
    found.emplace_back(name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()), it->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace dlbench
