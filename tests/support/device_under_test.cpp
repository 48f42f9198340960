#include "support/device_under_test.h"

#include <cstdlib>

#include "core/base/error.h"
#include "core/device/reference_device.h"
#include "core/device/registry.h"

namespace dlbench::test {

Device& device_under_test() {
  static Registry registry{Registry::Options{}};
  static const std::unique_ptr<Device> device = [] {
    const char* id = std::getenv("DLBENCH_TEST_DEVICE");
    if (!id) throw Error("DLBENCH_TEST_DEVICE isn't set; set it to the device to test, for example cpu");
    return registry.create(id, {});
  }();
  return *device;
}

Device& oracle() {
  static const std::unique_ptr<Device> device = make_reference_device({});
  return *device;
}

}  // namespace dlbench::test
