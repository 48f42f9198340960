#include "core/analysis/noise_profile.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "core/base/error.h"
#include "core/result/validate.h"

namespace dlbench {

std::string device_class(const std::string& device) {
  const size_t colon = device.find(':');
  if (colon == std::string::npos || device.starts_with("meta:")) return device;
  return device.substr(0, colon);
}

const DeviceNoise* NoiseProfile::find(const std::string& wanted) const {
  for (const DeviceNoise& d : devices) {
    if (d.device_class == wanted) return &d;
  }
  return nullptr;
}

Json to_json(const NoiseProfile& profile) {
  Json devices = Json::array();
  for (const DeviceNoise& d : profile.devices) {
    Json detectable = Json::array();
    for (const auto& each : d.detectable)
      detectable.push_back({{"processes", each.processes}, {"effect", each.effect}});
    devices.push_back({{"device_class", d.device_class},
                       {"points", d.points},
                       {"between_session_sd", d.between_session_sd},
                       {"prior_variance", d.prior_variance},
                       {"prior_degrees", d.prior_degrees},
                       {"additive_seconds", d.additive_seconds},
                       {"detectable", std::move(detectable)}});
  }
  return {{"schema_version", profile.schema_version},
          {"kind", "noise_profile"},
          {"created_utc", profile.created_utc},
          {"fingerprint", profile.fingerprint},
          {"machine", profile.machine},
          {"config", profile.config},
          {"sessions", profile.sessions},
          {"processes", profile.processes},
          {"tool", profile.tool},
          {"environment", profile.environment},
          {"devices", std::move(devices)},
          {"warnings", profile.warnings}};
}

NoiseProfile noise_profile_from_json(const Json& json, const std::string& origin) {
  if (!json.is_object() || !json.contains("kind") || json["kind"] != "noise_profile") {
    throw InputError(
        fmt::format("{}: not a noise profile (\"kind\": \"noise_profile\"); `dlbench calibrate` writes one", origin));
  }
  // The schema is the one place that says what is allowed; afterwards every member is known to be there.
  if (const auto found = violations(json, FileKind::noise_profile); !found.empty())
    throw InputError(fmt::format("{}: {}: {}", origin, found.front().pointer, found.front().what));
  NoiseProfile profile;
  profile.schema_version = json.at("schema_version").get<std::string>();
  profile.created_utc = json.at("created_utc").get<std::string>();
  profile.fingerprint = json.at("fingerprint").get<std::string>();
  profile.machine = json.at("machine").get<std::string>();
  profile.config = json.at("config").get<std::string>();
  profile.sessions = json.at("sessions").get<int>();
  profile.processes = json.at("processes").get<int>();
  profile.tool = json.at("tool");
  profile.environment = json.at("environment");
  profile.warnings = json.at("warnings").get<std::vector<std::string>>();
  for (const Json& d : json.at("devices")) {
    DeviceNoise noise{.device_class = d.at("device_class").get<std::string>(),
                      .points = d.at("points").get<int>(),
                      .between_session_sd = d.at("between_session_sd").get<double>(),
                      .prior_variance = d.at("prior_variance").get<double>(),
                      .prior_degrees = d.at("prior_degrees").get<double>(),
                      .additive_seconds = d.at("additive_seconds").get<double>(),
                      .detectable = {}};
    for (const Json& each : d.at("detectable"))
      noise.detectable.push_back({each.at("processes").get<int>(), each.at("effect").get<double>()});
    profile.devices.push_back(std::move(noise));
  }
  return profile;
}

NoiseProfile read_noise_profile(const std::string& path) {
  return noise_profile_from_json(read_json_file(path), path == "-" ? "standard input" : path);
}

void write_noise_profile(const NoiseProfile& profile, const std::string& path) {
  write_file_atomic(path, dump_json(to_json(profile)) + "\n");
}

}  // namespace dlbench
