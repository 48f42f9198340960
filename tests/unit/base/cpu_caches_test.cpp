#include "core/base/cpu_caches.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace dlbench {
namespace {

class CpuCaches : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void cache(int index, const std::string& type, const std::string& size) {
    const auto folder = root_ / "sys/devices/system/cpu/cpu0/cache" / ("index" + std::to_string(index));
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "type") << type << "\n";
    std::ofstream(folder / "size") << size << "\n";
  }
  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / ("dlbench_cpu_caches_" + std::to_string(::getpid()));
};

TEST_F(CpuCaches, TheLargestDataOrUnifiedCacheCounts) {
  cache(0, "Data", "32K");
  cache(1, "Instruction", "64M");
  cache(2, "Unified", "1024K");
  cache(3, "Unified", "32768K");
  EXPECT_EQ(last_level_cache_bytes(root_), int64_t{32} << 20);
}

TEST_F(CpuCaches, UnitsAreThoseOfTheKernel) {
  cache(0, "Unified", "2M");
  EXPECT_EQ(last_level_cache_bytes(root_), int64_t{2} << 20);
}

TEST_F(CpuCaches, UnknownStaysUnknown) {
  EXPECT_FALSE(last_level_cache_bytes(root_));
  cache(0, "Unified", "much");
  EXPECT_FALSE(last_level_cache_bytes(root_));
}

}  // namespace
}  // namespace dlbench
