// A backend plugin that behaves as one macro says; each variant becomes its own libdlbench_backend_<kind>.so.
//
// Why: the loader must tell every way of being absent apart, and none of them exists on a healthy machine.
//   DLB_FAKE_KIND            kind it claims to drive; "gpu" unless set
//   DLB_FAKE_NO_SYMBOL       exports nothing
//   DLB_FAKE_NULL_TABLE      the exported function returns nullptr
//   DLB_FAKE_FINGERPRINT     claims this fingerprint; touching anything else of it ends the process
//   DLB_FAKE_ABSENCE         probe reports this Absence with a sentence
//   DLB_FAKE_PROBE_THROWS    probe throws although it must not
//   DLB_FAKE_NO_DEVICES      probe reports success without a device
//   DLB_FAKE_CREATE_THROWS   create throws this exception expression
//   DLB_FAKE_CREATE_NULL     create returns nullptr
//   DLB_FAKE_NEEDS_LIBRARY   calls into a library that isn't found at run time
#include <cstdlib>
#include <stdexcept>

#include "core/base/error.h"
#include "core/device/plugin.h"
#include "core/device/reference_device.h"
#include "support/forwarding_device.h"

#ifndef DLB_FAKE_KIND
#define DLB_FAKE_KIND "gpu"
#endif

#ifdef DLB_FAKE_NEEDS_LIBRARY
extern "C" int dlbench_fake_vendor_function();
#endif

namespace {

using namespace dlbench;

DeviceInfo fake_info(int index) {
  DeviceInfo info;
  info.kind = DLB_FAKE_KIND;
  info.id = info.kind + ":" + std::to_string(index);
  info.side = Side::gpu;
  info.index = index;
  info.name = "fake device " + std::to_string(index);
  info.memory_bytes = 1 << 20;
  return info;
}

[[maybe_unused]] ProbeResult probe() {
#if defined(DLB_FAKE_PROBE_THROWS)
  throw std::runtime_error("the fake probe fell over");
#elif defined(DLB_FAKE_ABSENCE)
  return {Absence::DLB_FAKE_ABSENCE, "fake sentence about " + std::string(to_string(Absence::DLB_FAKE_ABSENCE)), {}};
#elif defined(DLB_FAKE_NO_DEVICES)
  return {};
#elif defined(DLB_FAKE_NEEDS_LIBRARY)
  return {dlbench_fake_vendor_function() ? Absence::none : Absence::device_missing, "", {fake_info(0)}};
#else
  return {Absence::none, "", {fake_info(0), fake_info(1)}};
#endif
}

[[maybe_unused]] std::unique_ptr<Device> create(int index, const DeviceOptions&) {
#if defined(DLB_FAKE_CREATE_THROWS)
  (void)index;
  throw DLB_FAKE_CREATE_THROWS;
#elif defined(DLB_FAKE_CREATE_NULL)
  (void)index;
  return nullptr;
#else
  auto device = std::make_unique<test::ForwardingDevice>(make_reference_device({}));
  device->set_info(fake_info(index));
  return device;
#endif
}

#if defined(DLB_FAKE_FINGERPRINT)
[[noreturn]] ProbeResult must_not_probe() {
  std::abort();
}
[[noreturn]] std::unique_ptr<Device> must_not_create(int, const DeviceOptions&) {
  std::abort();
}
constinit const BackendPlugin table{DLB_FAKE_FINGERPRINT, nullptr, must_not_probe, must_not_create};
#elif !defined(DLB_FAKE_NO_SYMBOL) && !defined(DLB_FAKE_NULL_TABLE)
constinit const BackendPlugin table{DLB_BACKEND_FINGERPRINT, DLB_FAKE_KIND, probe, create};
#endif

}  // namespace

#if defined(DLB_FAKE_NULL_TABLE)
extern "C" __attribute__((visibility("default"))) const dlbench::BackendPlugin* dlbench_backend() {
  return nullptr;
}
#elif !defined(DLB_FAKE_NO_SYMBOL)
DLB_EXPORT_BACKEND(table)
#endif
