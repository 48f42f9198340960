// The counter-based generator against Random123's known answers, and the moments of what is made from it.
#include "core/base/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <vector>

namespace dlbench {
namespace {

std::array<uint32_t, 4> words(const Philox4x32& r) {
  return {r.word[0], r.word[1], r.word[2], r.word[3]};
}

// Known answers of philox4x32 with 10 rounds: file examples/kat_vectors of Random123
// (Salmon et al., https://github.com/DEShawResearch/random123).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(words(philox4x32(0, 0, 0)), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words(philox4x32(~0ull, ~0ull, ~0ull)),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  // Counter and key are the first digits of pi: 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0.
  EXPECT_EQ(words(philox4x32(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull)),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Normal, MomentsOfIrwinHall) {
  constexpr int kCount = 1 << 20;
  const float factor = static_cast<float>(kIrwinHallScale);
  double sum = 0, square = 0, cube = 0, fourth = 0, largest = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double x = normal_value(1, 2, i, factor);
    sum += x;
    square += x * x;
    cube += x * x * x;
    fourth += x * x * x * x;
    largest = std::max(largest, std::fabs(x));
  }
  const double n = kCount;
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1, 4 * std::sqrt(1.7 / n));  // variance of x^2 is kurtosis - 1 = 1.7
  EXPECT_NEAR(cube / n, 0, 4 * std::sqrt(15 / n));
  EXPECT_NEAR(fourth / n / (square / n * square / n), 2.7, 0.02);  // 3 - 6/(5*4) = 2.7
  EXPECT_LT(largest, 3.4642);                                      // 2*sqrt(3), all four words at one end
  EXPECT_GT(largest, 3.3);
}

TEST(Normal, ScaleIsTheOnlyRounding) {
  for (uint64_t i = 0; i < 1000; ++i) {
    const float one = normal_value(7, 7, i, 1.0f);  // the integer sum itself: exact in float
    EXPECT_EQ(one, std::round(one));
    EXPECT_LE(std::fabs(one), 131070.0f);
    EXPECT_EQ(normal_value(7, 7, i, 0.125f), one * 0.125f);
  }
}

TEST(Normal, IrwinHallScaleIsTheInverseStandardDeviation) {
  EXPECT_DOUBLE_EQ(kIrwinHallScale, std::sqrt(3.0 / 4294967295.0));  // variance of one word: (2^32 - 1)/12; of four: /3
}

TEST(Normal, NeighboursSeedsAndStreamsAreUncorrelated) {
  constexpr int kCount = 100000;
  double neighbour = 0, seed = 0, stream = 0;
  const float factor = static_cast<float>(kIrwinHallScale);
  for (uint64_t i = 0; i < kCount; ++i) {
    const double x = normal_value(1, 2, i, factor);
    neighbour += x * normal_value(1, 2, i + 1, factor) / kCount;
    seed += x * normal_value(2, 2, i, factor) / kCount;
    stream += x * normal_value(1, 3, i, factor) / kCount;
  }
  for (const double correlation : {neighbour, seed, stream}) EXPECT_NEAR(correlation, 0, 4 / std::sqrt(kCount));
}

TEST(UniformIndex, StaysBelowItsBoundAndReachesEveryValue) {
  std::vector<int> counts(10);
  for (uint64_t i = 0; i < 100000; ++i) {
    const uint32_t value = uniform_index(5, 6, i, 10);
    ASSERT_LT(value, 10u);
    ++counts[value];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 4 * std::sqrt(9000.0));
  EXPECT_EQ(uniform_index(5, 6, 0, 1), 0u);
  std::set<uint32_t> large;
  for (uint64_t i = 0; i < 1000; ++i) large.insert(uniform_index(1, 1, i, 0xFFFFFFFFu));
  EXPECT_GT(large.size(), 995u);
}

}  // namespace
}  // namespace dlbench
