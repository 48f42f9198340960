#include "core/measure/probes.h"

#include <gmock/gmock.h>

#include "core/base/usable_cpus.h"

namespace dlbench {
namespace {

using testing::ElementsAre;

ProbedBlock steady(double ping_pong, double fma) {
  return {{ping_pong, fma}, {ping_pong * 1.03, fma * 0.98}};
}

TEST(GapClusters, CloseValuesAreOneState) {
  const auto clusters = gap_clusters(std::vector<double>{50, 52, 49, 55, 59, 51});
  ASSERT_EQ(clusters.size(), 1u);
  EXPECT_EQ(clusters[0].low, 49);
  EXPECT_EQ(clusters[0].high, 59);
  EXPECT_TRUE(gap_clusters(std::vector<double>{}).empty());
}

TEST(GapClusters, SplitWhereNeighboursAreFarApart) {
  const auto clusters = gap_clusters(std::vector<double>{320, 50, 59, 349, 49, 317});
  ASSERT_EQ(clusters.size(), 2u);
  EXPECT_EQ(clusters[0].high, 59);
  EXPECT_EQ(clusters[1].low, 317);
}

TEST(GapClusters, AFewOutliersAreNoCluster) {
  std::vector<double> values(99, 50.0);
  values.push_back(5000);
  EXPECT_EQ(gap_clusters(values).size(), 1u);
  std::vector<double> two(50, 50.0);
  two.insert(two.end(), 50, 400.0);
  two.push_back(130);
  EXPECT_EQ(gap_clusters(two).size(), 2u);
}

TEST(Placements, AnInterruptedProbeIsUnknown) {
  std::vector<ProbedBlock> blocks(30, steady(50e-9, 4e10));
  blocks.push_back(steady(36e-6, 4e10));
  EXPECT_EQ(label_placements(blocks).label.back(), "unknown");
  EXPECT_EQ(label_placements(blocks).label.front(), "uniform");
}

TEST(Placements, NamesTheClustersOfTheRun) {
  const std::vector<ProbedBlock> blocks = {steady(54e-9, 4e10), steady(330e-9, 4e10), steady(51e-9, 4.1e10),
                                           steady(340e-9, 3.9e10), steady(52e-9, 2e10)};
  const Placements placements = label_placements(blocks);
  EXPECT_THAT(placements.label, ElementsAre("near", "far", "near", "far", "starved"));
  EXPECT_GT(*placements.ping_pong_threshold_seconds, 60e-9);
  EXPECT_LT(*placements.ping_pong_threshold_seconds, 320e-9);
  EXPECT_GT(*placements.fma_threshold_flop_per_s, 2e10);
}

TEST(Placements, KnowsNoConstantsOfAMachine) {
  const Placements placements = label_placements(std::vector<ProbedBlock>{steady(330e-9, 1e9), steady(340e-9, 1e9)});
  EXPECT_THAT(placements.label, ElementsAre("uniform", "uniform"));
  EXPECT_FALSE(placements.ping_pong_threshold_seconds);
}

TEST(Placements, OfSeveralRunsMeanTheSameInEach) {
  const std::vector<std::vector<ProbedBlock>> runs = {std::vector<ProbedBlock>(100, steady(52e-9, 4e10)),
                                                      std::vector<ProbedBlock>(3, steady(330e-9, 4e10)),
                                                      std::vector<ProbedBlock>(4, steady(54e-9, 2e10))};
  for (const auto& run : runs) EXPECT_EQ(label_placements(run).label.front(), "uniform");
  const std::vector<Placements> together = label_runs(runs);
  EXPECT_EQ(together[0].label, std::vector<std::string>(100, "near"));
  EXPECT_EQ(together[1].label, std::vector<std::string>(3, "far"));  // few beside the others, and yet no outliers
  EXPECT_EQ(together[2].label, std::vector<std::string>(4, "starved"));
  const std::vector<std::vector<ProbedBlock>> alike = {{steady(52e-9, 4e10)}, {steady(60e-9, 4.1e10)}};
  EXPECT_EQ(label_runs(alike)[1].label.front(), "uniform");
}

TEST(Placements, IsUnknownWhenTheMachineChangedInBetween) {
  std::vector<ProbedBlock> blocks = {steady(54e-9, 4e10), steady(330e-9, 4e10)};
  blocks.push_back({{54e-9, 4e10}, {330e-9, 4e10}});
  EXPECT_EQ(label_placements(blocks).label[2], "unknown");
}

TEST(Placements, SingleCpuAndNoProbes) {
  EXPECT_THAT(label_placements(std::vector<ProbedBlock>{steady(0, 2e10), {}}).label, ElementsAre("single", "unknown"));
}

TEST(Probes, AgreeWithinAState) {
  EXPECT_TRUE(probes_agree({50e-9, 4e10}, {58e-9, 3.8e10}));
  EXPECT_FALSE(probes_agree({50e-9, 4e10}, {330e-9, 4e10}));
  EXPECT_FALSE(probes_agree({50e-9, 4e10}, {50e-9, 2e10}));
  EXPECT_TRUE(probes_agree({}, {}));
}

TEST(Probes, GiveValuesHere) {
  const std::vector<int> cpus = usable_cpus().affinity;
  const ProbeValues values = run_probes(cpus);
  EXPECT_GT(values.fma_flop_per_s, 0);
  EXPECT_EQ(values.ping_pong_seconds > 0, cpus.size() > 1);
  EXPECT_EQ(run_probes(std::span(cpus).first(1)).ping_pong_seconds, 0);
}

}  // namespace
}  // namespace dlbench
