#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/base/error.h"
#include "core/measure/runner.h"
#include "core/result/result_io.h"
#include "unit/measure/fault_workload.h"

namespace dlbench {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Calls back after each point.
class Listener : public Observer {
 public:
  std::function<void(const PointProgress&)> done, start;
  std::vector<std::string> warnings;
  void on_point_start(const PointProgress& p) override {
    if (start) start(p);
  }
  void on_point_done(const PointProgress& p) override {
    if (done) done(p);
  }
  void on_warning(const std::string& sentence) override { warnings.push_back(sentence); }
};

class RunPlan : public testing::Test {
 protected:
  void SetUp() override {
    folder = fs::path(testing::TempDir()) /
             fmt::format("dlbench_{}_{}", ::getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(folder);
    options.output = (folder / "result.json").string();
    options.executable = fs::read_symlink("/proc/self/exe").string();
    options.signal = &signal;
  }
  void TearDown() override { fs::remove_all(folder); }

  /// One point per kind and n on meta:cpu, n counting the repetitions of the kind.
  Result run(const std::vector<std::string>& kinds, int processes = 2) {
    std::map<std::string, int> count;
    Json sweeps = Json::array();
    for (const std::string& kind : kinds)
      sweeps.push_back({{"workload", "fault"}, {"kind", kind}, {"n", ++count[kind]}, {"threads", 1}});
    Json measure = measure_options;
    measure["processes"] = processes;
    const Json json = {{"name", "test"}, {"devices", {"meta:cpu"}}, {"measure", measure}, {"sweeps", sweeps}};
    const Config config = parse_config(json, "test.json", {}, test::fault_catalog());
    Registry registry({.search_path = {"/nonexistent"}, .meta = config.meta});
    const Plan plan = make_plan(config, test::fault_catalog(), registry);
    return run_plan(plan, test::fault_catalog(), registry, options, listener);
  }

  static const PointRow& row(const Result& result, const std::string& kind, int n = 1) {
    for (const PointRow& r : result.points) {
      if (r.key.rfind(fmt::format("fault/kind={}/n={}/", kind, n), 0) == 0) return r;
    }
    throw Error("no such row");
  }
  static std::vector<std::pair<std::string, int>> measured(const Result& result) {
    std::vector<std::pair<std::string, int>> pairs;
    for (const TimingRow& t : result.timings) pairs.emplace_back(t.key, t.process);
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }

  fs::path folder;
  RunOptions options;
  Listener listener;
  std::atomic<int> signal{0};
  Json measure_options = Json::object();
};

TEST_F(RunPlan, MeasuresEveryPointInEveryProcess) {
  const Result result = run({"ok", "ok", "ok"}, 3);
  EXPECT_FALSE(result.partial);
  EXPECT_EQ(result.timings.size(), 9u);
  EXPECT_EQ(result.processes.size(), 3u);
  for (const PointRow& r : result.points) EXPECT_EQ(r.status, Status::ok) << r.reason;
  for (const ProcessRow& p : result.processes) {
    EXPECT_EQ(p.workers, 1);
    EXPECT_EQ(p.exit, "ok");
    EXPECT_GT(p.peak_resident_bytes.value_or(0), 0);
  }
  EXPECT_FALSE(fs::exists(options.output + ".journal"));
  const Result read = read_result(options.output);
  EXPECT_EQ(measured(read), measured(result));
}

TEST_F(RunPlan, ControlsStandAtStartMiddleAndEnd) {
  std::map<std::string, int> positions;
  for (const ControlRow& c : run({"ok", "ok", "ok"}, 2).controls) {
    if (c.name == "ctrl.cpu_fma") ++positions[c.position];
    EXPECT_GT(c.seconds, 0);
  }
  EXPECT_THAT(positions,
              testing::ElementsAre(testing::Pair("end", 2), testing::Pair("middle", 2), testing::Pair("start", 2)));
}

TEST_F(RunPlan, TheOrderDiffersBetweenProcessesAndFollowsTheSeed) {
  std::map<int, std::vector<std::string>> first, second;
  listener.start = [&first](const PointProgress& p) { first[p.process].push_back(p.key); };
  const std::vector<std::string> kinds(8, "ok");
  run(kinds, 2);
  listener.start = [&second](const PointProgress& p) { second[p.process].push_back(p.key); };
  run(kinds, 2);
  EXPECT_EQ(first, second);
  EXPECT_NE(first[0], first[1]);
}

TEST_F(RunPlan, EachFaultCostsItsPointOnly) {
  const Result result = run({"ok", "crash", "kill", "throw", "oom", "unsupported", "lost", "ok", "chatty", "ok"}, 2);
  EXPECT_EQ(row(result, "crash").status, Status::failed);
  EXPECT_THAT(row(result, "crash").reason, HasSubstr("signal 6"));
  EXPECT_EQ(row(result, "kill").status, Status::failed);
  EXPECT_THAT(row(result, "kill").reason, HasSubstr("signal 9"));
  EXPECT_EQ(row(result, "throw").reason, "planted error");
  EXPECT_EQ(row(result, "oom").status, Status::out_of_memory);
  EXPECT_EQ(row(result, "unsupported").status, Status::unsupported);
  EXPECT_EQ(row(result, "lost").status, Status::device_lost);
  EXPECT_THAT(row(result, "chatty").reason, HasSubstr("it said: "));
  for (int n = 1; n <= 3; ++n) EXPECT_EQ(row(result, "ok", n).status, Status::ok) << row(result, "ok", n).reason;
  EXPECT_EQ(result.timings.size(), 6u);
  // crash, kill, chatty and lost each ended a worker, in the first process only: what failed isn't tried again.
  EXPECT_EQ(result.processes.at(0).workers, 5);
  EXPECT_EQ(result.processes.at(1).workers, 1);
  EXPECT_THAT(listener.warnings, testing::Contains("worker: last words of the worker"));
  EXPECT_FALSE(result.partial);
}

TEST_F(RunPlan, ADeviceThatIsLostAgainIsGivenUp) {
  const Result result = run({"lost", "lost", "lost", "lost"}, 1);
  int told = 0;
  for (const PointRow& r : result.points) {
    EXPECT_EQ(r.status, Status::device_lost);
    told += r.reason.find("2 times in a row") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(told, 2);
  EXPECT_EQ(result.processes.at(0).workers, 2);
}

TEST_F(RunPlan, AHangingPointIsATimeout) {
  measure_options["point_timeout_seconds"] = 0.5;
  const Result result = run({"ok", "hang", "ok"}, 1);
  EXPECT_EQ(row(result, "hang").status, Status::timeout);
  EXPECT_THAT(row(result, "hang").reason, HasSubstr("no result after 0.5 s"));
  EXPECT_EQ(row(result, "ok", 2).status, Status::ok);
}

TEST_F(RunPlan, AnInterruptLeavesAValidPartialResultThatResumeFinishes) {
  const std::vector<std::string> kinds = {"ok", "throw", "ok", "ok", "ok", "ok"};
  int seen = 0;
  listener.done = [&](const PointProgress&) {
    if (++seen == 4) signal = SIGINT;
  };
  const Result partial = run(kinds, 2);
  EXPECT_TRUE(partial.partial);
  EXPECT_EQ(read_result(options.output).timings.size(), partial.timings.size());
  EXPECT_EQ(partial.processes.at(0).exit, "interrupted");
  EXPECT_LT(partial.timings.size(), 10u);
  int skipped = 0;
  for (const PointRow& r : partial.points) {
    if (r.status != Status::skipped) continue;
    ++skipped;
    EXPECT_EQ(r.reason, "interrupted");
  }
  EXPECT_EQ(skipped, 2);
  signal = 0;
  listener.done = nullptr;
  options.resume = true;
  const Result resumed = run(kinds, 2);
  EXPECT_FALSE(resumed.partial);
  options.resume = false;
  options.output = (folder / "uninterrupted.json").string();
  const Result whole = run(kinds, 2);
  EXPECT_EQ(measured(resumed), measured(whole));
  for (size_t i = 0; i < whole.points.size(); ++i) {
    EXPECT_EQ(resumed.points[i].key, whole.points[i].key);
    EXPECT_EQ(resumed.points[i].status, whole.points[i].status);
  }
}

TEST_F(RunPlan, ResumeReadsWhatOnlyTheJournalHas) {
  const Result whole = run({"ok", "ok"}, 1);
  Result cut = whole;
  cut.timings.clear();
  for (PointRow& r : cut.points) r.status = Status::skipped;
  write_result(cut, options.output);
  std::ofstream journal(options.output + ".journal");
  const Json answer = {{"type", "point"}, {"row", to_json(whole.points[0])}, {"timing", nullptr}, {"process", 0}};
  Json with_timing = answer;
  for (const TimingRow& t : whole.timings) {
    if (t.key == whole.points[0].key) with_timing["timing"] = to_json(t);
  }
  journal << with_timing.dump() << "\n{\"type\": \"poi";  // the second one was cut
  journal.close();
  int measured_again = 0;
  listener.start = [&measured_again](const PointProgress&) { ++measured_again; };
  options.resume = true;
  EXPECT_EQ(measured(run({"ok", "ok"}, 1)), measured(whole));
  EXPECT_EQ(measured_again, 1);
}

TEST_F(RunPlan, ResumeRefusesAnotherConfig) {
  run({"ok"}, 1);
  options.resume = true;
  try {
    run({"ok", "ok"}, 1);
    FAIL() << "another config was resumed";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("was measured with another config"));
  }
}

TEST_F(RunPlan, TheTimeBudgetSkipsTheRest) {
  measure_options["time_budget_seconds"] = 1e-6;
  const Result result = run({"ok", "ok"}, 2);
  EXPECT_TRUE(result.partial);
  for (const PointRow& r : result.points) {
    EXPECT_EQ(r.status, Status::skipped);
    EXPECT_THAT(r.reason, HasSubstr("time budget"));
  }
}

TEST_F(RunPlan, AFileThatIsThereIsMovedAway) {
  std::ofstream(options.output) << "precious";
  run({"ok"}, 1);
  std::ifstream previous(options.output + ".previous");
  std::string word;
  previous >> word;
  EXPECT_EQ(word, "precious");
  EXPECT_THAT(listener.warnings, testing::Contains(HasSubstr("is now " + options.output + ".previous")));
}

TEST_F(RunPlan, AnUnwritablePlaceIsRefusedBeforeMeasuring) {
  bool started = false;
  listener.start = [&started](const PointProgress&) { started = true; };
  for (const std::string& path : {(folder / "missing" / "result.json").string(), folder.string(),
                                  std::string("/dev/null"), std::string("/proc/result.json")}) {
    options.output = path;
    EXPECT_THROW(run({"ok"}, 1), UsageError) << path;
  }
  EXPECT_FALSE(started);
}

TEST_F(RunPlan, AProgramThatIsNoWorkerFailsEveryPointWithTheReason) {
  options.executable = "/bin/false";
  const Result result = run({"ok", "ok"}, 1);
  for (const PointRow& r : result.points) {
    EXPECT_EQ(r.status, Status::failed);
    EXPECT_THAT(r.reason, HasSubstr("no worker could be started"));
  }
}

}  // namespace
}  // namespace dlbench
