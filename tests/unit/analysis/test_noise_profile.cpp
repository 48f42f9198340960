// A noise profile survives its file, and a file that isn't one is named by the place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/analysis/noise_profile.h"
#include "core/base/error.h"
#include "core/result/validate.h"

namespace dlbench {
namespace {

using ::testing::HasSubstr;

NoiseProfile made_profile() {
  NoiseProfile p;
  p.created_utc = "2026-11-30T20:15:00Z";
  p.fingerprint = "fea54bc6b85f9b52";
  p.machine = "AMD EPYC, 2 CPUs";
  p.config = "ci";
  p.sessions = 6;
  p.processes = 5;
  p.tool = {{"name", "dlbench"}};
  p.environment = {{"fingerprint", p.fingerprint}};
  p.devices.push_back({.device_class = "cpu",
                       .points = 24,
                       .between_session_sd = 0.0071,
                       .prior_variance = 6.5e-5,
                       .prior_degrees = 4.25,
                       .additive_seconds = 2e-7,
                       .detectable = {{5, 0.051}, {10, 0.043}}});
  p.devices.push_back({.device_class = "gpu", .points = 3, .detectable = {}});
  p.warnings = {"the machine is busy"};
  return p;
}

std::string error_of(const Json& json) {
  try {
    noise_profile_from_json(json, "noise.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kUnreadable);
    return error.what();
  }
  return "";
}

TEST(DeviceClass, IsTheDeviceWithoutItsNumber) {
  EXPECT_EQ(device_class("cpu"), "cpu");
  EXPECT_EQ(device_class("gpu:0"), "gpu");
  EXPECT_EQ(device_class("gpu:1"), "gpu");
  EXPECT_EQ(device_class("meta:cpu"), "meta:cpu");
  EXPECT_EQ(device_class("meta:gpu"), "meta:gpu");
}

TEST(NoiseProfile, SurvivesItsFile) {
  const auto path = std::filesystem::path(testing::TempDir()) / "survives.noise.json";
  write_noise_profile(made_profile(), path.string());
  const NoiseProfile back = read_noise_profile(path.string());
  std::filesystem::remove(path);
  EXPECT_EQ(to_json(back), to_json(made_profile()));
  ASSERT_NE(back.find("cpu"), nullptr);
  EXPECT_EQ(back.find("cpu")->between_session_sd, 0.0071);
  EXPECT_EQ(back.find("cpu")->prior().degrees, 4.25);
  EXPECT_EQ(back.find("meta:cpu"), nullptr);
}

TEST(NoiseProfile, NamesWhatIsWrongAndWhere) {
  EXPECT_THAT(error_of({{"kind", "result"}}), HasSubstr("noise.json: not a noise profile"));
  EXPECT_THAT(error_of(Json::array()), HasSubstr("not a noise profile"));
  Json json = to_json(made_profile());
  json["devices"][0]["between_session_sd"] = -0.01;
  EXPECT_THAT(error_of(json), HasSubstr("/devices/0/between_session_sd: -0.01"));
  json = to_json(made_profile());
  json["devices"][0].erase("prior_variance");
  EXPECT_THAT(error_of(json), HasSubstr("/devices/0"));
  json = to_json(made_profile());
  json["colour"] = "red";
  EXPECT_THAT(error_of(json), HasSubstr("colour"));
  json = to_json(made_profile());
  json["schema_version"] = "2.0.0";
  EXPECT_THAT(error_of(json), HasSubstr("/schema_version"));
  json = to_json(made_profile());
  json["devices"][1]["device_class"] = "cpu";
  EXPECT_THAT(error_of(json), HasSubstr("cpu is the device class of /devices/0 as well"));
}

TEST(NoiseProfile, WritesAFileForTheSecondValidator) {
  const char* folder = std::getenv("DLBENCH_WRITTEN_DIR");
  const std::string path = (folder ? std::string(folder) + "/" : testing::TempDir()) + "made.noise_profile.json";
  write_noise_profile(made_profile(), path);
  EXPECT_TRUE(violations(read_json_file(path), FileKind::noise_profile).empty());
}

}  // namespace
}  // namespace dlbench
