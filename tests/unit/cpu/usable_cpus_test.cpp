// Usable CPUs and memory limits on made-up cgroup trees.
#include "core/base/usable_cpus.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "core/base/memory_limit.h"

namespace dlbench {
namespace {

namespace fs = std::filesystem;

class UsableCpusTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "dlbench_cgroup_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }
  fs::path root_;
};

TEST_F(UsableCpusTest, AffinityAloneDecidesWithoutCgroups) {
  const UsableCpus u = usable_cpus(root_);
  EXPECT_EQ(u.count, static_cast<int>(u.affinity.size()));
  EXPECT_FALSE(u.quota_cpus.has_value());
}

TEST_F(UsableCpusTest, VersionTwoQuota) {
  write("proc/self/cgroup", "0::/a");
  write("sys/fs/cgroup/a/cpu.max", "250000 100000");
  const UsableCpus u = usable_cpus(root_);
  EXPECT_DOUBLE_EQ(u.quota_cpus.value(), 2.5);
  EXPECT_EQ(u.count, std::min<int>(2, static_cast<int>(u.affinity.size())));
  EXPECT_NE(u.quota_source.find("a/cpu.max"), std::string::npos);
}

TEST_F(UsableCpusTest, TighterParentWins) {
  write("proc/self/cgroup", "0::/a/b/c");
  write("sys/fs/cgroup/a/b/c/cpu.max", "max 100000");
  write("sys/fs/cgroup/a/b/cpu.max", "800000 100000");
  write("sys/fs/cgroup/a/cpu.max", "300000 100000");
  EXPECT_DOUBLE_EQ(usable_cpus(root_).quota_cpus.value(), 3.0);
}

TEST_F(UsableCpusTest, FractionOfACpuIsOne) {
  write("proc/self/cgroup", "0::/a");
  write("sys/fs/cgroup/a/cpu.max", "50000 100000");
  EXPECT_EQ(usable_cpus(root_).count, 1);
}

TEST_F(UsableCpusTest, VersionOneQuotaAndMinusOne) {
  write("proc/self/cgroup", "4:cpu,cpuacct:/a/b\n3:memory:/a");
  write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000");
  EXPECT_FALSE(usable_cpus(root_).quota_cpus.has_value());
  write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "600000");
  write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(usable_cpus(root_).quota_cpus.value(), 6.0);
}

TEST_F(UsableCpusTest, ContainerThatSeesOnlyItsOwnMount) {
  write("proc/self/cgroup", "0::/not/visible/here");
  write("sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_DOUBLE_EQ(usable_cpus(root_).quota_cpus.value(), 2.0);
}

TEST_F(UsableCpusTest, MemoryLimitOfEitherVersion) {
  EXPECT_FALSE(cgroup_memory(root_).limit_bytes.has_value());
  write("proc/self/cgroup", "0::/a/b");
  write("sys/fs/cgroup/a/b/memory.max", "max");
  EXPECT_FALSE(cgroup_memory(root_).limit_bytes.has_value());
  write("sys/fs/cgroup/a/memory.max", "1000000");
  write("sys/fs/cgroup/a/memory.current", "400000");
  EXPECT_EQ(cgroup_memory(root_).limit_bytes, 1000000);
  EXPECT_EQ(cgroup_memory(root_).left_bytes, 600000);
  write("proc/self/cgroup", "4:memory:/v1");
  write("sys/fs/cgroup/memory/v1/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_FALSE(cgroup_memory(root_).limit_bytes.has_value());
  write("sys/fs/cgroup/memory/v1/memory.limit_in_bytes", "5000");
  write("sys/fs/cgroup/memory/v1/memory.usage_in_bytes", "6000");
  EXPECT_EQ(cgroup_memory(root_).left_bytes, 0);
}

TEST(UsableCpus, ThisMachineHasAtLeastOne) {
  EXPECT_GE(usable_cpus().count, 1);
  EXPECT_LE(usable_cpus().count, static_cast<int>(usable_cpus().affinity.size()));
}

}  // namespace
}  // namespace dlbench
