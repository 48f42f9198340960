#include "core/measure/point_rows.h"

#include <gmock/gmock.h>

namespace dlbench {
namespace {

PointRow row(Status status, const std::string& reason) {
  PointRow r;
  r.status = status;
  r.reason = reason;
  return r;
}

TEST(MergeRow, TheWorstStatusOfTheProcessesStands) {
  PointRow r = row(Status::skipped, "not reached");
  merge_row(r, row(Status::ok, ""));
  EXPECT_EQ(r.status, Status::ok);
  merge_row(r, row(Status::mismatch, "wrong"));
  EXPECT_EQ(r.status, Status::mismatch);
  merge_row(r, row(Status::ok, ""));
  EXPECT_EQ(r.status, Status::mismatch);
  EXPECT_EQ(r.reason, "wrong");
}

TEST(MergeRow, BeingSkippedTakesNothingAway) {
  PointRow r = row(Status::ok, "");
  merge_row(r, row(Status::skipped, "interrupted"));
  EXPECT_EQ(r.status, Status::ok);
}

TEST(MergeRow, KeepsTheLargestErrorAndMemory) {
  PointRow a = row(Status::ok, ""), b = row(Status::ok, "");
  a.verification_error = 0.2;
  a.peak_memory_bytes = 10;
  b.verification_error = 0.1;
  b.peak_memory_bytes = 30;
  merge_row(a, b);
  EXPECT_EQ(a.verification_error, 0.2);
  EXPECT_EQ(a.peak_memory_bytes, 30);
}

}  // namespace
}  // namespace dlbench
