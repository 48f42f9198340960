#include "core/measure/ab_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "core/analysis/statistics.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/measure/probes.h"
#include "core/measure/worker_process.h"

namespace dlbench {

namespace {

constexpr double kReadySeconds = 120;
constexpr double kPollSeconds = 0.1;
constexpr double kEndSeconds = 10;
constexpr int kTimings = 8;   // of each program in a round: there and back four times
constexpr int kAttempts = 3;  // of one measurement while the machine changes its state
constexpr int kBase = 0, kCandidate = 1, kNull = 2;
constexpr std::array<const char*, 3> kSideNames = {"base", "candidate", "second base"};
/// Orders of the sides, each as often as its mirror image, base and candidate first in turns.
constexpr int kOrders = 6;
constexpr int kOrder[kOrders][3] = {{kBase, kCandidate, kNull}, {kNull, kCandidate, kBase}, {kCandidate, kBase, kNull},
                                    {kNull, kBase, kCandidate}, {kBase, kNull, kCandidate}, {kCandidate, kNull, kBase}};

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// A signal came: everything stops.
struct Interrupted {};
/// One program failed at a point; its process may be gone.
struct SideFailure {
  int side;
  Status status;
  std::string reason;
};

class AbRun {
 public:
  AbRun(const Config& config, const AbOptions& options, AbObserver& observer)
      : config_(config), options_(options), observer_(observer), started_(steady_seconds()) {}

  AbSession run() {
    try {
      compare_plans();
      while (!stopping() && one_round()) {
      }
    } catch (const Interrupted&) {
      session_.stopped = options_.signal->load() == SIGTERM ? "terminated" : "interrupted";
    }
    for (auto& worker : workers_) worker.reset();
    label();
    session_.elapsed_seconds = steady_seconds() - started_;
    return std::move(session_);
  }

 private:
  // The two programs ------------------------------------------------------------------------------------------------

  const std::string& program(int side) const { return side == kCandidate ? options_.candidate : options_.base; }

  [[noreturn]] void refuse(int side, const std::string& why) const {
    throw InputError(
        fmt::format("{} ({}) can't take part: {}", program(side), kSideNames[static_cast<size_t>(side)], why));
  }

  static std::string end_of(const WorkerProcess& worker) {
    const std::string words = worker.last_words();
    return fmt::format("its process ended: {}{}", worker.how_it_ended(), words.empty() ? "" : "; it said: " + words);
  }

  /// The next answer of a side. @throws SideFailure when it is gone or too slow, Interrupted
  Json answer_of(int side, double seconds) {
    WorkerProcess& worker = *workers_[static_cast<size_t>(side)];
    const double deadline = steady_seconds() + seconds;
    for (;;) {
      auto message = worker.receive(std::min(kPollSeconds, std::max(0.0, deadline - steady_seconds())));
      // Before the first round what a program says is part of the reason why it can't take part.
      for (const std::string& line : started_rounds() ? worker.take_stderr() : std::deque<std::string>()) {
        observer_.on_note(fmt::format("{}: {}", kSideNames[static_cast<size_t>(side)], line));
      }
      if (message) return std::move(*message);
      if (options_.signal && options_.signal->load() != 0) throw Interrupted{};
      if (!worker.running()) throw SideFailure{side, Status::failed, end_of(worker)};
      if (steady_seconds() >= deadline) {
        throw SideFailure{side, Status::timeout,
                          fmt::format("no answer after {} s (measure.point_timeout_seconds)", seconds)};
      }
    }
  }

  Json ask(int side, const Json& command) {
    workers_[static_cast<size_t>(side)]->send(command);
    return answer_of(side, config_.measure.point_timeout_seconds);
  }

  bool started_rounds() const { return session_.screen_rounds > 0; }

  /// Starts what isn't running; all at the same time, so that none has a warmer start.
  void start(const std::vector<int>& sides) {
    std::vector<int> fresh;
    for (const int side : sides) {
      std::unique_ptr<WorkerProcess>& worker = workers_[static_cast<size_t>(side)];
      if (worker) continue;
      if (::access(program(side).c_str(), X_OK) != 0)
        refuse(side, "there is no such program, or it may not be started");
      worker = std::make_unique<WorkerProcess>(program(side));
      worker->send(
          {{"config", config_.merged}, {"origin", "the config of this comparison"}, {"process", next_process_++}});
      fresh.push_back(side);
    }
    for (const int side : fresh) {
      try {
        if (answer_of(side, kReadySeconds).at("type") != "ready") refuse(side, "it isn't a dlbench");
      } catch (const SideFailure& failure) {
        refuse(side, failure.status == Status::timeout
                         ? fmt::format("its worker said nothing for {} s; is it a dlbench?", kReadySeconds)
                         : "its worker can't be started: " + failure.reason);
      }
    }
  }

  void end_all() {
    for (size_t side = 0; side < workers_.size(); ++side) {
      std::unique_ptr<WorkerProcess>& worker = workers_[side];
      if (!worker) continue;
      worker->send({{"do", "end"}});
      const double deadline = steady_seconds() + kEndSeconds;
      while (worker->running() && steady_seconds() < deadline) worker->receive(kPollSeconds);
      worker.reset();
    }
  }

  std::map<std::string, std::pair<Status, std::string>> plan_of(int side, Json& tool, std::vector<std::string>& keys) {
    Json answer;
    try {
      answer = ask(side, {{"do", "plan"}});
    } catch (const SideFailure& failure) {
      refuse(side, "it is too old for `dlbench ab`, or broken: " + failure.reason);
    }
    tool = answer.at("tool");
    std::map<std::string, std::pair<Status, std::string>> plan;
    for (const Json& point : answer.at("points")) {
      keys.push_back(point.at("key").get<std::string>());
      plan[keys.back()] = {parse_status(point.at("status").get<std::string>()), point.at("reason").get<std::string>()};
    }
    return plan;
  }

  void compare_plans() {
    start({kBase, kCandidate});
    std::vector<std::string> base_keys, candidate_keys;
    const auto base = plan_of(kBase, session_.base_tool, base_keys);
    const auto candidate = plan_of(kCandidate, session_.candidate_tool, candidate_keys);
    const auto lacking = [](const std::vector<std::string>& keys, const auto& plan) {
      std::vector<std::string> missing;
      for (const std::string& key : keys) {
        if (!plan.contains(key)) missing.push_back(key);
      }
      return missing;
    };
    for (const auto& [missing, side] :
         {std::pair(lacking(base_keys, candidate), "candidate"), std::pair(lacking(candidate_keys, base), "base")}) {
      if (missing.empty()) continue;
      throw InputError(
          fmt::format("the two programs don't plan the same points for {}: the {} lacks {}{}; --filter or a "
                      "config with what both know makes them comparable",
                      config_.name, side, missing.front(),
                      missing.size() > 1 ? fmt::format(" and {} more", missing.size() - 1) : ""));
    }
    for (const std::string& key : base_keys) {
      AbPoint point;
      point.key = key;
      const auto& [base_status, base_reason] = base.at(key);
      const auto& [candidate_status, candidate_reason] = candidate.at(key);
      point.status = base_status != Status::ok ? base_status : candidate_status;
      point.reason = base_status != Status::ok ? base_reason : candidate_reason;
      if (base_status == Status::ok && candidate_status != Status::ok) point.failed_in = "candidate";
      session_.points.push_back(std::move(point));
    }
    attempts_.resize(session_.points.size());
  }

  // Rounds ----------------------------------------------------------------------------------------------------------

  /// False when nothing is left to measure.
  bool one_round() {
    const AbOutcome outcome = judge(session_.points, options_.rule);
    std::vector<size_t> pending;
    int rounds = 0;
    for (size_t i = 0; i < session_.points.size(); ++i) {
      const AbPoint& point = session_.points[i];
      if (point.status != Status::ok) continue;
      const int left = outcome.screened ? rounds_to_next_look(point, outcome.points[i], options_.rule)
                                        : options_.rule.screen_rounds - static_cast<int>(point.screen.size());
      if (left <= 0 || attempts_[i] > most_attempts(outcome.screened)) continue;
      pending.push_back(i);
      rounds = std::max(rounds, left);
    }
    if (pending.empty()) return false;
    if (outcome.screened && session_.confirm_rounds == 0) announce(outcome);
    shuffle(pending);
    ++(outcome.screened ? session_.confirm_rounds : session_.screen_rounds);
    progress_.confirming = outcome.screened;
    progress_.round = outcome.screened ? session_.confirm_rounds : session_.screen_rounds;
    progress_.rounds = progress_.round + rounds - 1;
    progress_.total = pending.size();
    const double round_started = steady_seconds();
    for (size_t i = 0; i < pending.size() && !stopping(); ++i) {
      progress_.done = i;
      progress_.key = session_.points[pending[i]].key;
      progress_.elapsed_seconds = steady_seconds() - started_;
      const double each = i > 0 ? (steady_seconds() - round_started) / static_cast<double>(i) : seconds_per_point_;
      progress_.remaining_seconds = each * static_cast<double>(pending.size() * static_cast<size_t>(rounds) - i);
      observer_.on_progress(progress_);
      measure(pending[i], outcome.screened);
    }
    seconds_per_point_ = (steady_seconds() - round_started) / static_cast<double>(pending.size());
    end_all();
    session_.elapsed_seconds = steady_seconds() - started_;
    label();
    observer_.on_round(session_);
    return true;
  }

  int most_attempts(bool confirming) const {
    return 2 * (options_.rule.screen_rounds + (confirming ? options_.rule.looks.back() : 0));
  }

  void announce(const AbOutcome& outcome) {
    const double each = seconds_per_point_ * 1.5 * outcome.suspects;  // three processes instead of two
    observer_.on_note(
        fmt::format("{} of {} points are suspected; confirming them takes {} to {} more rounds of about {:.0f} s: "
                    "{:.0f} to {:.0f} s",
                    outcome.suspects, session_.points.size(), options_.rule.looks.front(), options_.rule.looks.back(),
                    each, each * options_.rule.looks.front(), each * options_.rule.looks.back()));
  }

  void shuffle(std::vector<size_t>& order) const {
    const uint64_t stream = 0x6162ull + static_cast<uint64_t>(session_.screen_rounds + session_.confirm_rounds);
    for (size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1], order[uniform_index(config_.seed, stream, i, static_cast<uint32_t>(i))]);
    }
  }

  std::vector<int> order_of(size_t point, bool with_null) const {
    // The point's number is in it, so that within a round half of the points begin with either program.
    const AbPoint& p = session_.points[point];
    const size_t turn = point + p.screen.size() + p.confirm.size();
    if (!with_null) return turn % 2 ? std::vector{kCandidate, kBase} : std::vector{kBase, kCandidate};
    const int* order = kOrder[turn % kOrders];
    return {order[0], order[1], order[2]};
  }

  void measure(size_t index, bool confirming) {
    AbPoint& point = session_.points[index];
    const std::vector<int> order = order_of(index, confirming);
    ++attempts_[index];
    try {
      start(order);
      const int timings = open(point, order);
      ProbeValues before = probe(order.front());
      for (int attempt = 0; attempt < kAttempts; ++attempt) {
        const AbRound round = take(order, timings);
        const ProbeValues after = probe(order.front());
        if (probes_agree(before, after)) {
          std::vector<AbRound>& rounds = confirming ? point.confirm : point.screen;
          rounds.push_back(round);
          probed_.push_back({index, confirming, rounds.size() - 1, {before, after}});
          break;
        }
        ++session_.disturbed;
        before = after;
      }
      for (const int side : order) ask(side, {{"do", "close"}});
    } catch (const SideFailure& failure) {
      point.status = failure.status;
      point.failed_in = failure.side == kCandidate ? "candidate" : "base";
      point.reason = failure.reason;
      observer_.on_note(
          fmt::format("{}: {} in the {}: {}", point.key, to_string(point.status), point.failed_in, point.reason));
      for (auto& worker : workers_) worker.reset();  // the others hold the point open
    }
  }

  /// Sets the point up in every program, with the same steps per timing. @returns timings of each program
  int open(const AbPoint& point, const std::vector<int>& order) {
    int64_t steps = 0;
    double slowest = 0;
    for (const int side : order) {
      const Json answer = ask(
          side, {{"do", "open"}, {"key", point.key}, {"verify", point.screen.empty()}, {"steps_per_timing", steps}});
      require_ok(side, answer);
      steps = answer.at("steps_per_timing").get<int64_t>();
      slowest = std::max(slowest, answer.at("timing_seconds").get<double>());
    }
    // Even, so that who goes first cancels; a point whose timings are long has fewer.
    const int room = static_cast<int>(std::min(config_.measure.point_budget_seconds / std::max(slowest, 1e-9), 1e6));
    return std::clamp(room / 2 * 2, 2, kTimings);
  }

  /// Timings one at a time, forth and back through the programs: neighbours in time are compared, so that what changes
  /// from one tenth of a second to the next changes both, and the median shrugs off what hits one of them.
  AbRound take(const std::vector<int>& order, int timings) {
    std::array<std::vector<double>, 3> seconds;
    for (int i = 0; i < timings; ++i) {
      std::vector<int> turn = order;
      if (i % 2) std::reverse(turn.begin(), turn.end());
      for (const int side : turn) seconds[static_cast<size_t>(side)].push_back(take_one(side));
    }
    AbRound round;
    round.base_seconds = median(seconds[kBase]);
    round.ratio = median_ratio(seconds[kCandidate], seconds[kBase]);
    if (order.size() == 3) round.null_ratio = median_ratio(seconds[kNull], seconds[kBase]);
    return round;
  }

  double take_one(int side) {
    const Json answer = ask(side, {{"do", "take"}, {"timings", 1}});
    require_ok(side, answer);
    const double seconds = answer.at("wall_seconds").at(0).get<double>();
    if (seconds > 0 && std::isfinite(seconds)) return seconds;
    throw SideFailure{side, Status::invalid, fmt::format("a step took {} s", seconds)};
  }

  /// Median of the paired log-ratios: symmetric in the two programs.
  static double median_ratio(const std::vector<double>& of, const std::vector<double>& to) {
    std::vector<double> logs;
    for (size_t i = 0; i < of.size(); ++i) logs.push_back(std::log(of[i] / to[i]));
    return std::exp(median(std::move(logs)));
  }

  static void require_ok(int side, const Json& answer) {
    const Status status = parse_status(answer.at("status").get<std::string>());
    if (status != Status::ok) throw SideFailure{side, status, answer.at("reason").get<std::string>()};
  }

  ProbeValues probe(int side) {
    const Json values = ask(side, {{"do", "probe"}}).at("values");
    return {.ping_pong_seconds = values.at("ping_pong_seconds").get<double>(),
            .fma_flop_per_s = values.at("fma_flop_per_s").get<double>()};
  }

  /// Names the machine's state of every measurement, from the probes of all so far.
  void label() {
    std::vector<ProbedBlock> blocks;
    for (const Probed& p : probed_) blocks.push_back(p.block);
    const Placements placements = label_placements(blocks);
    for (size_t i = 0; i < probed_.size(); ++i) {
      AbPoint& point = session_.points[probed_[i].point];
      (probed_[i].confirming ? point.confirm : point.screen)[probed_[i].round].placement = placements.label[i];
    }
  }

  bool stopping() {
    if (options_.signal && options_.signal->load() != 0) throw Interrupted{};
    if (options_.time_budget_seconds <= 0 || steady_seconds() - started_ <= options_.time_budget_seconds) return false;
    session_.stopped = fmt::format("the time budget of {} s was spent", options_.time_budget_seconds);
    return true;
  }

  struct Probed {
    size_t point;
    bool confirming;
    size_t round;
    ProbedBlock block;
  };

  const Config& config_;
  const AbOptions& options_;
  AbObserver& observer_;
  const double started_;
  AbSession session_;
  AbProgress progress_;
  std::array<std::unique_ptr<WorkerProcess>, 3> workers_;
  std::vector<int> attempts_;
  std::vector<Probed> probed_;
  int next_process_ = 0;
  double seconds_per_point_ = 0;
};

}  // namespace

AbSession run_ab(const Config& config, const AbOptions& options, AbObserver& observer) {
  return AbRun(config, options, observer).run();
}

}  // namespace dlbench
