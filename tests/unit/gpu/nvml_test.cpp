// NVML is optional: names of throttle reasons, and nothing at all where there is no library.
#include "gpu/nvml.h"

#include <gtest/gtest.h>

namespace dlbench::gpu {
namespace {

TEST(Nvml, names_of_throttle_reasons) {
  EXPECT_EQ(throttle_reason_names(0), "");
  EXPECT_EQ(throttle_reason_names(0x1), "");  // idle
  EXPECT_EQ(throttle_reason_names(0x4), "sw_power_cap");
  EXPECT_EQ(throttle_reason_names(0x4 | 0x40), "sw_power_cap,hw_thermal_slowdown");
}

TEST(Nvml, a_device_that_isnt_there_gives_nothing) {
  EXPECT_EQ(Nvml::open("ffff:ff:1f.7"), nullptr);
}

}  // namespace
}  // namespace dlbench::gpu
