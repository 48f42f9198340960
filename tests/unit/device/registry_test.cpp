// The registry and the plugin loader: a fake plugin for every way in which a backend can be absent.
#include "core/device/registry.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "core/base/error.h"

namespace dlbench {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::filesystem::path fake(const std::string& name) {
  return std::filesystem::path(DLB_FAKE_PLUGINS) / name;
}

Registry registry_of(const std::vector<std::filesystem::path>& folders) {
  return Registry({.search_path = folders, .meta = {}});
}

/// The sentence with which gpu:0 is absent; creating it must throw the same one.
std::string sentence_of(const std::string& name, Absence expected) {
  Registry registry = registry_of({fake(name)});
  const ProbeResult result = registry.look_up("gpu");
  EXPECT_EQ(to_string(result.absence), to_string(expected)) << name << ": " << result.sentence;
  EXPECT_TRUE(result.devices.empty());
  EXPECT_THAT(registry.device_ids(), Not(Contains("gpu:0")));
  try {
    registry.create("gpu:0", {});
    ADD_FAILURE() << name << ": a device was created";
  } catch (const DeviceAbsentError& e) {
    EXPECT_EQ(e.what(), result.sentence);
    EXPECT_EQ(e.exit_code(), ExitCode::kDeviceAbsent);
  }
  return result.sentence;
}

TEST(Registry, GoodPluginGivesItsDevices) {
  Registry registry = registry_of({fake("good")});
  EXPECT_THAT(registry.device_ids(), ElementsAre("gpu:0", "gpu:1", "reference", "meta:cpu", "meta:gpu"));
  const auto device = registry.create("gpu:1", {});
  EXPECT_EQ(device->info().id, "gpu:1");
  EXPECT_EQ(device->info().name, "fake device 1");
  const float x = 3;
  float y = 0;
  device->ops().copy({.n = 1}, &x, &y);
  EXPECT_EQ(y, 3);
}

TEST(Registry, EveryAbsenceHasItsOwnSentence) {
  const std::vector<std::string> sentences{
      sentence_of("nowhere", Absence::plugin_missing),          sentence_of("no_symbol", Absence::plugin_broken),
      sentence_of("null_table", Absence::plugin_broken),        sentence_of("wrong_abi", Absence::plugin_broken),
      sentence_of("wrong_kind", Absence::plugin_broken),        sentence_of("needs_library", Absence::library_missing),
      sentence_of("library_missing", Absence::library_missing), sentence_of("driver_missing", Absence::driver_missing),
      sentence_of("driver_too_old", Absence::driver_too_old),   sentence_of("device_missing", Absence::device_missing),
      sentence_of("no_devices", Absence::device_missing),       sentence_of("probe_throws", Absence::plugin_broken),
  };
  EXPECT_EQ(std::set<std::string>(sentences.begin(), sentences.end()).size(), sentences.size());
}

TEST(Registry, SentencesSayWhatAndWhereAndWhatToDo) {
  EXPECT_THAT(sentence_of("nowhere", Absence::plugin_missing),
              AllOf(HasSubstr("libdlbench_backend_gpu.so"), HasSubstr("nowhere"), HasSubstr("DLBENCH_GPU=ON"),
                    HasSubstr("DLBENCH_PLUGIN_DIR")));
  EXPECT_THAT(sentence_of("no_symbol", Absence::plugin_broken), HasSubstr("no symbol dlbench_backend"));
  EXPECT_THAT(sentence_of("wrong_abi", Absence::plugin_broken),
              AllOf(HasSubstr("dlbench-backend-0/of-another-age"), HasSubstr(DLB_BACKEND_FINGERPRINT)));
  EXPECT_THAT(sentence_of("wrong_kind", Absence::plugin_broken), HasSubstr("of kind cpu, but its name promises gpu"));
  EXPECT_THAT(sentence_of("needs_library", Absence::library_missing), HasSubstr("needs libdlbench_fake_vendor.so"));
  EXPECT_THAT(sentence_of("driver_too_old", Absence::driver_too_old), HasSubstr("fake sentence about driver_too_old"));
  EXPECT_THAT(sentence_of("probe_throws", Absence::plugin_broken), HasSubstr("the fake probe fell over"));
}

TEST(Registry, FileThatIsNoLibraryIsBroken) {
  const auto folder =
      std::filesystem::path(::testing::TempDir()) / ("dlbench_text_plugin_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "libdlbench_backend_gpu.so") << "this is text\n";
  std::ofstream(folder / "libdlbench_backend_.so") << "no kind: not a plugin's name\n";
  Registry registry = registry_of({folder});
  const ProbeResult result = registry.look_up("gpu:0");
  EXPECT_EQ(result.absence, Absence::plugin_broken);
  EXPECT_THAT(result.sentence, HasSubstr("can't be opened"));
  std::filesystem::remove_all(folder);
}

TEST(Registry, CreateThatFailsIsNotAnAbsence) {
  Registry throws = registry_of({fake("create_throws")});
  EXPECT_EQ(throws.look_up("gpu:0").absence, Absence::none);
  try {
    throws.create("gpu:0", {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("gpu:0"), HasSubstr("the fake device fell over")));
  }
  Registry full = registry_of({fake("create_out_of_memory")});
  EXPECT_THROW(full.create("gpu:0", {}), OutOfMemoryError);
  Registry null = registry_of({fake("create_null")});
  EXPECT_THROW(null.create("gpu:0", {}), Error);
}

TEST(Registry, AnotherIndexIsMissingByName) {
  Registry registry = registry_of({fake("good")});
  const ProbeResult result = registry.look_up("gpu:7");
  EXPECT_EQ(result.absence, Absence::device_missing);
  EXPECT_EQ(result.sentence, "there is no gpu:7 here; found: gpu:0, gpu:1");
}

TEST(Registry, FirstFileOfANameWins) {
  EXPECT_EQ(registry_of({fake("driver_too_old"), fake("good")}).look_up("gpu").absence, Absence::driver_too_old);
  EXPECT_EQ(registry_of({fake("nowhere"), fake("good"), fake("driver_too_old")}).look_up("gpu").absence, Absence::none);
}

TEST(Registry, AnyKindIsFoundByItsFileName) {
  Registry registry = registry_of({fake("good"), fake("other_kind")});
  EXPECT_EQ(registry.canonical_id("abacus"), "abacus:0");
  EXPECT_THAT(registry.device_ids(),
              ElementsAre("gpu:0", "gpu:1", "abacus:0", "abacus:1", "reference", "meta:cpu", "meta:gpu"));
}

TEST(Registry, ListsEveryBackendWithItsStatus) {
  Registry registry = registry_of({fake("good")});
  std::vector<std::string> kinds;
  for (const BackendStatus& b : registry.backends()) kinds.push_back(b.kind);
  EXPECT_THAT(kinds, ElementsAre("cpu", "gpu", "reference", "meta"));
  EXPECT_EQ(registry.backends()[0].probe.absence, Absence::plugin_missing);
  EXPECT_THAT(registry.backends()[0].probe.sentence, HasSubstr("libdlbench_backend_cpu.so"));
  EXPECT_EQ(registry.backends()[1].file, fake("good") / "libdlbench_backend_gpu.so");
  EXPECT_EQ(registry.backends()[3].probe.devices.size(), 2u);
}

bool is_loaded(const std::filesystem::path& file) {
  void* handle = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle) ::dlclose(handle);
  return handle != nullptr;
}

/// Exit code of a fresh process: 0 when the plugin was opened by the last call and not before.
[[noreturn]] void ask_step_by_step(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "libdlbench_backend_gpu.so";
  Registry registry = registry_of({folder});
  registry.canonical_id("gpu");
  registry.look_up("cpu");
  registry.create("meta:cpu", {});
  registry.create("reference", {});
  if (is_loaded(file)) std::_Exit(1);
  registry.look_up("gpu:0");
  std::_Exit(is_loaded(file) ? 0 : 2);
}

TEST(Registry, OpensAPluginOnlyWhenItsKindIsAskedFor) {
  ASSERT_EXIT(ask_step_by_step(fake("opened_late")), ::testing::ExitedWithCode(0), "");
}

TEST(Registry, CanonicalIds) {
  const Registry registry = registry_of({fake("good")});
  EXPECT_EQ(registry.canonical_id("cpu"), "cpu");
  EXPECT_EQ(registry.canonical_id("cpu:0"), "cpu");
  EXPECT_EQ(registry.canonical_id("gpu"), "gpu:0");
  EXPECT_EQ(registry.canonical_id("gpu:0"), "gpu:0");
  EXPECT_EQ(registry.canonical_id("gpu:15"), "gpu:15");
  EXPECT_EQ(registry.canonical_id("reference"), "reference");
  EXPECT_EQ(registry.canonical_id("meta:cpu"), "meta:cpu");
  for (const char* wrong : {"", "gpo", "gpu:", "gpu:x", "gpu:-1", "gpu:01", "gpu:0:1", "gpu:123456", "cpu:1", "meta",
                            "meta:tpu", "reference:0", "GPU", " gpu"}) {
    EXPECT_THROW(registry.canonical_id(wrong), UsageError) << '"' << wrong << '"';
  }
  try {
    registry.canonical_id("gpo");
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), AllOf(HasSubstr("unknown device 'gpo'"), HasSubstr("did you mean \"gpu\""),
                                HasSubstr("cpu, gpu, reference")));
  }
}

TEST(Registry, SearchPathBeginsWithTheEnvironment) {
  ASSERT_EQ(::setenv("DLBENCH_PLUGIN_DIR", "/first/one:/second//one/../one", 1), 0);
  const auto path = Registry::default_search_path();
  ::unsetenv("DLBENCH_PLUGIN_DIR");
  ASSERT_GE(path.size(), 4u);
  EXPECT_EQ(path[0], "/first/one");
  EXPECT_EQ(path[1], "/second/one");
  const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(path[2], executable.parent_path());
  EXPECT_EQ(path[3], executable.parent_path().parent_path() / "lib" / "dlbench");
  const auto without = Registry::default_search_path();
  EXPECT_EQ(without[0], executable.parent_path());
  EXPECT_EQ(std::set<std::filesystem::path>(without.begin(), without.end()).size(), without.size());
}

TEST(Registry, BuiltInDevicesNeedNoPlugin) {
  Registry registry = registry_of({"/nowhere"});
  EXPECT_EQ(registry.create("reference", {})->info().id, "reference");
  EXPECT_EQ(registry.create("meta:gpu", {})->info().side, Side::gpu);
  EXPECT_EQ(registry.create("meta:cpu", {.threads = 7})->info().threads, 7);
  EXPECT_THROW(registry.create("cpu", {}), DeviceAbsentError);
}

TEST(Absence, HasANameEach) {
  EXPECT_EQ(to_string(Absence::none), "none");
  EXPECT_EQ(to_string(Absence::plugin_missing), "plugin_missing");
  EXPECT_EQ(to_string(Absence::library_unfit), "library_unfit");
  EXPECT_EQ(to_string(Absence::device_missing), "device_missing");
}

}  // namespace
}  // namespace dlbench
