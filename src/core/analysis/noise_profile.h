// NoiseProfile: what `dlbench calibrate` learnt about the noise of a machine, per device class, and `compare` uses.
//
// Why: two sessions of the same binary differ by more than their processes do, and only repeated sessions can say by
// how much. Kept as a file (`kind: "noise_profile"`, results/schema/noise_profile.schema.json).
// Promises: reading is strict (unknown fields, wrong types and impossible values are named by their place); a profile
// belongs to one machine, named by the fingerprint of its environment.
#pragma once

#include <string>
#include <vector>

#include "core/analysis/moderation.h"
#include "core/base/json.h"

namespace dlbench {

inline constexpr const char* kNoiseProfileSchemaVersion = "1.0.0";

/// Points share their noise within a device class: "cpu", "gpu", "reference", "meta:cpu", "meta:gpu".
/// @param device id of a device: "cpu", "gpu:0", "meta:gpu".
std::string device_class(const std::string& device);

struct DeviceNoise {
  std::string device_class;
  int points = 0;                 ///< that the figures come from
  double between_session_sd = 0;  ///< tau, of ln(seconds)
  double prior_variance = 0;      ///< s0^2 between processes, of ln(seconds)
  double prior_degrees = 0;       ///< d0; 0: fewer than 10 points; kMaxPriorDegrees: all points vary alike
  double additive_seconds = 0;    ///< a change of a step by less than this is noise whatever its ratio
  struct Detectable {
    int processes = 0;  ///< per side, one session a side
    double effect = 0;  ///< smallest relative slowdown found with 80 % probability: 0.04 is 4 %
  };
  std::vector<Detectable> detectable;  ///< ascending processes

  SampleVariance prior() const { return {prior_variance, prior_degrees}; }
};

struct NoiseProfile {
  std::string schema_version = kNoiseProfileSchemaVersion;
  std::string created_utc;
  std::string fingerprint;            ///< of the environment it was measured in
  std::string machine;                ///< for people: "AMD EPYC, 2 CPUs"
  std::string config;                 ///< name of the config whose points were measured
  int sessions = 0;                   ///< A/A sessions
  int processes = 0;                  ///< of each session
  Json tool = Json::object();         ///< as in a result
  Json environment = Json::object();  ///< as in a result
  std::vector<DeviceNoise> devices;   ///< one per device class
  std::vector<std::string> warnings;

  /// nullptr when the class wasn't measured.
  const DeviceNoise* find(const std::string& device_class) const;
};

Json to_json(const NoiseProfile& profile);
/// @throws InputError naming file, place and what is allowed there.
NoiseProfile noise_profile_from_json(const Json& json, const std::string& origin);
NoiseProfile read_noise_profile(const std::string& path);
/// Atomic.
void write_noise_profile(const NoiseProfile& profile, const std::string& path);

}  // namespace dlbench
