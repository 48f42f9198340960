// The device that a device-independent suite tests, chosen by the environment:
//   DLBENCH_TEST_DEVICE  its id: "cpu", "gpu:0", "reference"
//   DLBENCH_PLUGIN_DIR   where its plugin is
// Each is created once per process. A device that is absent fails the test with the registry's sentence: an absent
// device must never look like a passed suite.
#pragma once

#include <string>

#include "core/device/device.h"

namespace dlbench::test {

/// @throws DeviceAbsentError, or Error when DLBENCH_TEST_DEVICE isn't set.
Device& device_under_test();
/// The reference device, without a limit on cost.
Device& oracle();

}  // namespace dlbench::test
