// Splits cover everything once; the team runs every part exactly once, whoever is late.
#include "cpu/parallel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace dlbench::cpu {
namespace {

TEST(PartOf, CoversOnceInOrder) {
  for (const int64_t n : {0, 1, 2, 63, 64, 65, 1000, 4097}) {
    for (const int parts : {1, 2, 3, 7, 64}) {
      for (const int64_t align : {1, 16, 64}) {
        int64_t at = 0;
        for (int p = 0; p < parts; ++p) {
          const Range r = part_of(n, p, parts, align);
          EXPECT_EQ(r.begin, at) << n << " " << parts << " " << align;
          EXPECT_GE(r.end, r.begin);
          if (r.end < n) {
            EXPECT_EQ(r.end % align, 0);
          }
          at = r.end;
        }
        EXPECT_EQ(at, n);
      }
    }
  }
}

class TeamTest : public testing::TestWithParam<int> {};

TEST_P(TeamTest, RunsEveryPartOnce) {
  Team team(GetParam(), {});
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(GetParam()));
    team.run([&](int part) { hits[static_cast<size_t>(part)]++; });
    for (const auto& h : hits) ASSERT_EQ(h.load(), 1);
  }
}

TEST_P(TeamTest, WorksAgainAfterItsWorkersWentToSleep) {
  Team team(GetParam(), {});
  for (int round = 0; round < 5; ++round) {
    std::atomic<int64_t> sum{0};
    team.parallel_for(1000, 1, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) sum += i;
    });
    EXPECT_EQ(sum.load(), 499500);
    if (round % 2 == 0)
      team.stand_down();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
}

TEST_P(TeamTest, TasksAreDoneOnceEach) {
  Team team(GetParam(), {});
  for (const int64_t count : {0, 1, 2, 3, 17, 1000}) {
    std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
    team.parallel_tasks(count, [&](int64_t task, int part) {
      EXPECT_LT(part, GetParam());
      hits[static_cast<size_t>(task)]++;
    });
    for (const auto& h : hits) EXPECT_EQ(h.load(), 1);
  }
}

TEST_P(TeamTest, SmallWorkStaysOnTheCaller) {
  Team team(GetParam(), {});
  const auto caller = std::this_thread::get_id();
  team.parallel_for(100, 1000, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
  });
}

TEST_P(TeamTest, DenormalsAreFlushedInEveryWorker) {
  Team team(GetParam(), {});
  const uint32_t state = enable_flush_to_zero();
  std::atomic<int> kept{0};
  for (int round = 0; round < 100; ++round) {
    team.run([&](int) {
      volatile float tiny = 1e-38f;
      volatile float result = tiny * 0.01f;
      if (result != 0.0f) kept++;
    });
  }
  restore_floating_point_state(state);
#if defined(__x86_64__)
  EXPECT_EQ(kept.load(), 0);
#endif
}

INSTANTIATE_TEST_SUITE_P(Threads, TeamTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace dlbench::cpu
