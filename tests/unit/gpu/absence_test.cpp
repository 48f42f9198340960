// Each reason why there is no usable GPU is told apart, in the order of their causes.
#include "gpu/absence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace dlbench::gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

ObservedDevice device(int index, const char* name, int compute_capability) {
  ObservedDevice d;
  d.info.id = "gpu:" + std::to_string(index);
  d.info.index = index;
  d.info.name = name;
  d.compute_capability = compute_capability;
  return d;
}

ObservedFacts everything_is_here() {
  ObservedFacts facts;
  facts.driver_library = true;
  facts.driver_version = 13000;
  facts.runtime_version = 13000;
  facts.devices = {device(0, "NVIDIA H200", 90)};
  facts.lowest_compute_capability = 75;
  facts.blas_found = true;
  return facts;
}

TEST(Absence, everything_is_here) {
  const ProbeResult result = judge(everything_is_here());
  EXPECT_EQ(result.absence, Absence::none);
  EXPECT_EQ(result.sentence, "");
  ASSERT_EQ(result.devices.size(), 1u);
  EXPECT_EQ(result.devices[0].name, "NVIDIA H200");
}

TEST(Absence, driver_missing) {
  ObservedFacts facts = everything_is_here();
  facts.driver_library = false;
  facts.driver_library_error = "libcuda.so.1: cannot open shared object file";
  const ProbeResult result = judge(facts);
  EXPECT_EQ(result.absence, Absence::driver_missing);
  EXPECT_THAT(result.sentence, AllOf(HasSubstr("libcuda.so.1: cannot open"), HasSubstr("install the NVIDIA driver")));
  EXPECT_TRUE(result.devices.empty());
}

TEST(Absence, driver_too_old_names_both_versions) {
  ObservedFacts facts = everything_is_here();
  facts.driver_version = 12040;
  const ProbeResult result = judge(facts);
  EXPECT_EQ(result.absence, Absence::driver_too_old);
  EXPECT_THAT(result.sentence, AllOf(HasSubstr("12.4"), HasSubstr("13.0"), HasSubstr("update the driver")));
}

TEST(Absence, the_runtime_may_refuse_a_driver_whose_version_looks_right) {
  ObservedFacts facts = everything_is_here();
  facts.insufficient_driver = true;
  EXPECT_EQ(judge(facts).absence, Absence::driver_too_old);
}

TEST(Absence, a_driver_of_the_same_major_version_will_do) {
  ObservedFacts facts = everything_is_here();
  facts.runtime_version = 13020;
  EXPECT_EQ(judge(facts).absence, Absence::none);
}

TEST(Absence, a_newer_driver_will_do) {
  ObservedFacts facts = everything_is_here();
  facts.runtime_version = 12040;
  EXPECT_EQ(judge(facts).absence, Absence::none);
}

TEST(Absence, device_missing) {
  ObservedFacts facts = everything_is_here();
  facts.devices.clear();
  facts.device_error = "cudaErrorNoDevice: no CUDA-capable device is detected";
  const ProbeResult result = judge(facts);
  EXPECT_EQ(result.absence, Absence::device_missing);
  EXPECT_THAT(result.sentence, AllOf(HasSubstr("cudaErrorNoDevice"), HasSubstr("nvidia-smi")));
}

TEST(Absence, a_device_older_than_this_build_isnt_usable_but_others_are) {
  ObservedFacts facts = everything_is_here();
  facts.devices = {device(0, "Tesla P100", 60), device(1, "NVIDIA L4", 89)};
  const ProbeResult result = judge(facts);
  EXPECT_EQ(result.absence, Absence::none);
  ASSERT_EQ(result.devices.size(), 1u);
  EXPECT_EQ(result.devices[0].id, "gpu:1");
}

TEST(Absence, only_devices_older_than_this_build) {
  ObservedFacts facts = everything_is_here();
  facts.devices = {device(0, "Tesla P100", 60)};
  const ProbeResult result = judge(facts);
  EXPECT_EQ(result.absence, Absence::device_missing);
  EXPECT_THAT(result.sentence, AllOf(HasSubstr("Tesla P100"), HasSubstr("6.0"), HasSubstr("7.5")));
}

TEST(Absence, library_missing_names_the_file_and_the_package) {
  ObservedFacts facts = everything_is_here();
  facts.blas_found = false;
  facts.blas_missing = "libcublasLt.so.13";
  const ProbeResult result = judge(facts);
  EXPECT_EQ(result.absence, Absence::library_missing);
  EXPECT_THAT(result.sentence, AllOf(HasSubstr("libcublasLt.so.13"), HasSubstr("libcublas-13-0")));
}

TEST(Absence, sentences_differ) {
  std::vector<ObservedFacts> cases(4, everything_is_here());
  cases[0].driver_library = false;
  cases[1].driver_version = 11080;
  cases[2].devices.clear();
  cases[3].blas_found = false;
  std::set<std::string> sentences;
  for (const ObservedFacts& facts : cases) sentences.insert(judge(facts).sentence);
  EXPECT_EQ(sentences.size(), cases.size());
}

TEST(Absence, version_text) {
  EXPECT_EQ(cuda_version_text(12040), "12.4");
  EXPECT_EQ(cuda_version_text(13000), "13.0");
}

}  // namespace
}  // namespace dlbench::gpu
