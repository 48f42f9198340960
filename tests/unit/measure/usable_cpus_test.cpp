#include "core/base/usable_cpus.h"

#include <gmock/gmock.h>

#include <fstream>

namespace dlbench {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc and /sys.
class FakeRoot : public testing::Test {
 protected:
  void SetUp() override {
    root = fs::path(testing::TempDir()) /
           ("dlbench_root_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root);
  }
  void TearDown() override { fs::remove_all(root); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  fs::path root;
};

TEST_F(FakeRoot, WithoutCgroupsTheAffinityMaskDecides) {
  const UsableCpus usable = usable_cpus(root);
  EXPECT_FALSE(usable.quota_cpus);
  EXPECT_EQ(usable.count, static_cast<int>(usable.affinity.size()));
}

TEST_F(FakeRoot, TheSmallestQuotaOfAllParentsCounts) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  const UsableCpus usable = usable_cpus(root);
  EXPECT_EQ(usable.quota_cpus, 0.5);
  EXPECT_EQ(usable.count, 1);
  EXPECT_THAT(usable.quota_source, testing::EndsWith("sys/fs/cgroup/a/cpu.max"));
}

TEST_F(FakeRoot, VersionOneIsReadToo) {
  write("proc/self/cgroup", "5:memory:/m\n4:cpu,cpuacct:/x\n0::/y\n");
  write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "150000\n");
  write("sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cpus(root).quota_cpus, 1.5);
  EXPECT_EQ(usable_cpus(root).count, 1);
}

TEST_F(FakeRoot, AVersionOneQuotaOfMinusOneIsNone) {
  write("proc/self/cgroup", "4:cpu:/x\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(usable_cpus(root).quota_cpus);
}

}  // namespace
}  // namespace dlbench
