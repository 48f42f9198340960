// write_file_atomic: the old content or the new one, never a part; and why not, when it can't.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/base/error.h"
#include "core/base/json.h"

namespace dlbench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class WriteFile : public ::testing::Test {
 protected:
  WriteFile() : folder_(std::filesystem::path(::testing::TempDir()) / ("dlbench_write_" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~WriteFile() override { std::filesystem::remove_all(folder_); }

  static std::string read(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  size_t files() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }
  static std::string error_of(const std::filesystem::path& path, std::string_view content) {
    try {
      write_file_atomic(path, content);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

TEST_F(WriteFile, CreatesAndReplaces) {
  const auto path = folder_ / "result.json";
  write_file_atomic(path, "old");
  EXPECT_EQ(read(path), "old");
  const std::string large(3 << 20, 'x');
  write_file_atomic(path, large);
  EXPECT_EQ(read(path), large);
  write_file_atomic(path, "");
  EXPECT_EQ(read(path), "");
  EXPECT_EQ(files(), 1u);  // no temporary file stays behind
}

TEST_F(WriteFile, AFullDiskKeepsTheOldContent) {
  // A limit on the size of files stands for a full disk: the write fails in the middle of the content.
  const auto path = folder_ / "result.json";
  write_file_atomic(path, "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64 << 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string what = error_of(path, std::string(1 << 20, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(what, AllOf(HasSubstr(path.string()), HasSubstr("File too large"), HasSubstr("nothing was changed")));
  EXPECT_EQ(read(path), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteFile, MissingFolder) {
  EXPECT_THAT(error_of(folder_ / "no" / "such" / "result.json", "x"),
              AllOf(HasSubstr("cannot be written"), HasSubstr("No such file")));
}

TEST_F(WriteFile, PathThatIsAFolder) {
  std::filesystem::create_directories(folder_ / "result.json" / "inside");
  EXPECT_THAT(error_of(folder_ / "result.json", "x"), AllOf(HasSubstr("result.json"), HasSubstr("cannot be replaced")));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "result.json" / "inside"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(WriteFile, FolderThatCannotBeWritten) {
  // /proc refuses new files to everybody, root included.
  EXPECT_THAT(error_of("/proc/dlbench_result.json", "x"),
              AllOf(HasSubstr("/proc/dlbench_result.json"), HasSubstr("cannot be written")));
}

}  // namespace
}  // namespace dlbench
