// Registry: the backends and devices that exist here, found at run time.
//
// Why: no static-initialiser registration, no list of backends to keep: the search path is globbed for
// libdlbench_backend_*.so (see default_search_path), in this order; the first file of a name wins. `reference` and
// `meta` are built in. Promises: looking at a backend never throws; creating a device that isn't there throws
// DeviceAbsentError with the backend's own sentence; a plugin is opened when a device of its kind is asked for, not
// before.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/device/meta_device.h"
#include "core/device/plugin.h"

namespace dlbench {

struct BackendStatus {
  std::string kind;            ///< "cpu", "gpu", "reference", "meta"
  std::filesystem::path file;  ///< empty for built-in ones
  ProbeResult probe;
};

class Registry {
 public:
  struct Options {
    std::vector<std::filesystem::path> search_path;  ///< empty: the default one
    MetaOptions meta;
  };
  explicit Registry(Options options);
  ~Registry();

  /// DLBENCH_PLUGIN_DIR (folders separated by ':'), the executable's folder, <prefix>/lib/dlbench with <prefix> the
  /// parent of the executable's folder, and the folder of libdlbench_core.so (for programs that link an installed
  /// dlbench).
  static std::vector<std::filesystem::path> default_search_path();

  /// Every backend: found plugins, plus "gpu" and "cpu" as `plugin_missing` when no file was found, plus the built-in
  /// ones.
  const std::vector<BackendStatus>& backends();
  /// Ids of the devices that can be created now, e.g. {"cpu", "gpu:0", "reference", "meta:cpu", "meta:gpu"}.
  std::vector<std::string> device_ids();
  /// Canonical id of what a person wrote: "gpu" -> "gpu:0". @throws UsageError for a word that is no kind of device.
  std::string canonical_id(const std::string& written) const;
  /// Absence (with the sentence) of the device `id`; Absence::none when it can be created.
  ProbeResult look_up(const std::string& id);
  /// @throws DeviceAbsentError with the sentence of `look_up`.
  std::unique_ptr<Device> create(const std::string& id, const DeviceOptions& options);

 private:
  struct Backend;
  Options options_;
  std::vector<std::unique_ptr<Backend>> found_;  ///< cpu and gpu first, then other kinds by name
  std::vector<BackendStatus> status_;

  Backend* find(const std::string& kind) const;
  const ProbeResult& probe(Backend& backend);
};

}  // namespace dlbench
