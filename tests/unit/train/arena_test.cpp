#include "core/train/arena.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "core/base/random.h"

namespace dlbench {
namespace {

bool alive_together(const ArenaTensor& a, const ArenaTensor& b) {
  return a.first <= b.last && b.first <= a.last;
}

void expect_no_overlap(const std::vector<ArenaTensor>& tensors, const ArenaPlan& plan) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0);
    EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!alive_together(tensors[i], tensors[j])) continue;
      EXPECT_TRUE(plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                  plan.offsets[j] + tensors[j].bytes <= plan.offsets[i])
          << i << " and " << j;
    }
  }
}

TEST(Arena, ReusesWhatIsDead) {
  const ArenaPlan plan = plan_arena({{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}, {1024, 3, 4}});
  EXPECT_EQ(plan.bytes, 2048);
  EXPECT_EQ(plan.lower_bound, 2048);
}

TEST(Arena, TensorsOfOneInstructionNeverShare) {
  const ArenaPlan plan = plan_arena({{100, 5, 5}, {200, 5, 5}});
  EXPECT_EQ(plan.bytes, 2 * kArenaAlignment);
}

TEST(Arena, NothingNeedsNothing) {
  EXPECT_EQ(plan_arena({}).bytes, 0);
  EXPECT_EQ(plan_arena({{0, 0, 3}}).bytes, 0);
}

TEST(Arena, RandomLivesNeverOverlap) {
  std::vector<ArenaTensor> tensors;
  for (uint64_t i = 0; i < 300; ++i) {
    const int64_t first = uniform_index(1, 0, i, 100);
    tensors.push_back(
        {.bytes = uniform_index(1, 1, i, 5000), .first = first, .last = first + uniform_index(1, 2, i, 30)});
  }
  const ArenaPlan plan = plan_arena(tensors);
  expect_no_overlap(tensors, plan);
  EXPECT_GE(plan.bytes, plan.lower_bound);
  EXPECT_LT(static_cast<double>(plan.bytes), 1.3 * static_cast<double>(plan.lower_bound));
}

TEST(Arena, BytesBeyondCountingAreAnError) {
  EXPECT_THROW(plan_arena({{int64_t{1} << 62, 0, 0}, {int64_t{1} << 62, 0, 0}}), Error);
  EXPECT_THROW(plan_arena({{-1, 0, 0}}), Error);
}

}  // namespace
}  // namespace dlbench
