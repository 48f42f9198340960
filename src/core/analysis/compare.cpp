#include "core/analysis/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "core/analysis/analysis.h"
#include "core/analysis/comparability.h"
#include "core/analysis/selection.h"
#include "core/base/error.h"

namespace dlbench {

namespace {

/// Timings of one label and one number of steps on one side, a value per process: what may be compared.
struct Stratum {
  Sessions log_seconds;  ///< by session; sessions without any are left out at the end
  double minimum = INFINITY;
  int processes = 0;
};
using Strata = std::map<std::pair<std::string, int64_t>, Stratum>;

void add_value(Strata& strata, const std::string& label, int64_t steps, size_t session, size_t sessions,
               const std::vector<double>& seconds) {
  Stratum& stratum = strata[{label, steps}];
  stratum.log_seconds.resize(sessions);
  stratum.log_seconds[session].push_back(std::log(median(seconds)));
  stratum.minimum = std::min(stratum.minimum, *std::min_element(seconds.begin(), seconds.end()));
  ++stratum.processes;
}

struct CommonStratum {
  const Stratum *base = nullptr, *cand = nullptr;
  std::string placement;
  int64_t steps = 0;
};

/// The stratum with the most processes on the side that has fewer; empty when none is in common. A label that says
/// nothing goes with any other.
std::optional<CommonStratum> common_stratum(const Strata& base, const Strata& cand) {
  std::optional<CommonStratum> best;
  std::pair<int, int> most{0, 0};
  for (const auto& [b, of_base] : base) {
    for (const auto& [c, of_cand] : cand) {
      if (b.second != c.second) continue;
      if (b.first != c.first && !says_nothing(b.first) && !says_nothing(c.first)) continue;
      const std::pair<int, int> count{std::min(of_base.processes, of_cand.processes),
                                      of_base.processes + of_cand.processes};
      if (count <= most) continue;
      most = count;
      best = CommonStratum{&of_base, &of_cand, says_nothing(b.first) ? c.first : b.first, b.second};
    }
  }
  return best;
}

Sessions without_empty(const Sessions& side) {
  Sessions result;
  std::copy_if(side.begin(), side.end(), std::back_inserter(result), [](const auto& s) { return !s.empty(); });
  return result;
}

Estimate estimate_of(const Stratum& stratum) {
  std::vector<double> medians;
  for (const auto& session : stratum.log_seconds) {
    for (const double y : session) medians.push_back(std::exp(y));
  }
  return estimate(medians, stratum.minimum);
}

int processes_in(const Strata& strata) {
  int count = 0;
  for (const auto& [key, stratum] : strata) count += stratum.processes;
  return count;
}

/// What a side knows of one key.
struct SidePoint {
  const PointRow* row = nullptr;  ///< of the first session that has it
  Status status = Status::ok;     ///< ok when every session that has it says so
  std::string reason;
  Strata strata;
};

class Side {
 public:
  Side(const std::vector<Session>& sessions, const KeyFilter& filter) : sessions_(sessions) {
    for (size_t s = 0; s < sessions.size(); ++s) {
      const Analysis analysis = analyze(*sessions[s].result);  // its gates: a point may be ok in the file and invalid
      for (const AnalyzedPoint& p : analysis.points) {
        if (filter.keeps(p.row->key)) add(p);
      }
      add_timings(s);
    }
  }
  const SidePoint* find(const std::string& key) const {
    const auto it = index_.find(key);
    return it == index_.end() ? nullptr : &points[it->second];
  }
  std::vector<SidePoint> points;  ///< in the order of the files

 private:
  void add(const AnalyzedPoint& p) {
    const auto [place, fresh] = index_.try_emplace(p.row->key, points.size());
    if (fresh) points.emplace_back().row = p.row;
    SidePoint& point = points[place->second];
    if (point.status != Status::ok || p.status == Status::ok) return;
    point.status = p.status;
    point.reason = p.reason;
  }
  void add_timings(size_t session) {
    std::map<std::string, std::vector<double>> by_label;
    for (const TimingRow& row : sessions_[session].result->timings) {
      const auto it = index_.find(row.key);
      if (it == index_.end()) continue;
      by_label.clear();
      for (size_t i = 0; i < row.wall_seconds.size(); ++i) by_label[label_of(row, i)].push_back(row.wall_seconds[i]);
      for (const auto& [label, seconds] : by_label)
        add_value(points[it->second].strata, label, row.steps_per_timing, session, sessions_.size(), seconds);
    }
  }

  const std::vector<Session>& sessions_;
  std::unordered_map<std::string_view, size_t> index_;
};

class Comparer {
 public:
  Comparer(std::vector<Session> base, std::vector<Session> cand, CompareOptions options) {
    c_.base = std::move(base);
    c_.cand = std::move(cand);
    c_.options = std::move(options);
  }
  Comparison run();

 private:
  void check_sessions();
  void check_environments(const std::set<std::string>& devices);
  void check_profile(const std::set<std::string>& devices);
  void compare_points(const Side& base, const Side& cand);
  ComparedPoint compare_point(const SidePoint& base, const SidePoint* cand);
  void no_common_stratum(ComparedPoint& point, const Strata& base, const Strata& cand) const;
  size_t noise_of(const PointRow& row);
  void find_controls(const std::set<std::string>& devices);
  void enter(Judgement judgement);
  std::string resolve(const ComparedPoint& point) const;
  std::string config_name() const;

  Comparison c_;
  std::vector<PointSample> samples_;
  std::vector<size_t> sampled_;  ///< index into c_.points of each sample
  std::vector<ControlSample> control_samples_;
};

/// The same run twice on one side would count its processes twice.
void Comparer::check_sessions() {
  for (const auto* side : {&c_.base, &c_.cand}) {
    std::set<std::string> seen;
    for (const Session& s : *side) {
      if (!seen.insert(s.sha256.empty() ? s.file : s.sha256).second)
        throw InputError(
            fmt::format("{}: is the same measurement as another file of its side; name each once", s.file));
    }
    for (const Session& s : *side) {
      if (s.result->partial) {
        c_.warnings.push_back(fmt::format(
            "{}: is partial: some of its points or processes weren't measured (`dlbench run --resume`)", s.file));
      }
    }
  }
  for (const Session& b : c_.base) {
    for (const Session& s : c_.cand) {
      if (!b.sha256.empty() && b.sha256 == s.sha256)
        c_.warnings.push_back(fmt::format("{} and {}: the same measurement on both sides", b.file, s.file));
    }
  }
}

void Comparer::check_environments(const std::set<std::string>& devices) {
  const Session& first = c_.base.front();
  std::set<std::string> fatal, warnings;
  for (const auto* side : {&c_.base, &c_.cand}) {
    for (const Session& other : *side) {
      if (other.result == first.result) continue;
      const Differences d = compare_environments(*first.result, first.file, *other.result, other.file, devices);
      for (const std::string& sentence : d.fatal) {
        if (fatal.insert(sentence).second) c_.incomparable.push_back(sentence);
      }
      for (const std::string& sentence : d.warnings) {
        if (warnings.insert(sentence).second) c_.warnings.push_back("differs: " + sentence);
      }
    }
  }
}

void Comparer::check_profile(const std::set<std::string>& devices) {
  if (!c_.options.profile) return;
  Result like;
  like.environment = c_.options.profile->environment;
  like.tool = c_.options.profile->tool;
  const std::string& file = c_.options.profile_file;
  const Session& first = c_.base.front();
  const Differences d = compare_environments(like, file, *first.result, first.file, devices);
  if (!d.fatal.empty()) {
    throw InputError(
        fmt::format("{}: is the noise of another machine ({}); calibrate on this one (`dlbench calibrate`)", file,
                    d.fatal.front()));
  }
}

/// CPU clocks are locked when the governor and turbo say so in every file; GPU clocks aren't recorded as locked.
bool locked_clocks(const std::vector<Session>& sessions) {
  return std::all_of(sessions.begin(), sessions.end(), [](const Session& s) {
    const Json& e = s.result->environment;
    const auto is = [&e](const char* pointer, const char* value) {
      const Json::json_pointer place(pointer);
      return e.contains(place) && e[place] == value;
    };
    return is("/cpu/governor", "performance") && is("/cpu/turbo", "off");
  });
}

/// Of a step, in seconds; without a profile. CPU: one empty call is 0.09 us (`launch` of
/// results/reference/zen4-2cpu/quick.json), and a step is at least one. GPU: a tenth of the 5 us that a launch takes
/// (METHODS section 7), which is what launches vary by. A virtual clock adds nothing.
double default_additive_seconds(const PointRow& row) {
  if (row.device_kind == "meta") return 0;
  return row.side == "gpu" ? 5e-7 : 1e-7;
}

size_t Comparer::noise_of(const PointRow& row) {
  const std::string name = device_class(row.device);
  for (size_t i = 0; i < c_.noise.size(); ++i) {
    if (c_.noise[i].given.device_class == name) return i;
  }
  ComparedNoise noise;
  noise.given.device_class = name;
  noise.given.additive_seconds = default_additive_seconds(row);
  const DeviceNoise* known = c_.options.profile ? c_.options.profile->find(name) : nullptr;
  const bool locked = row.device_kind == "cpu" && locked_clocks(c_.base) && locked_clocks(c_.cand);
  // METHODS section 5 (4): 0.5 % with locked clocks, 1 % otherwise. No clock is steadier than a virtual one.
  if (known) {
    noise.source = "profile";
    noise.given.calibrated = true;
    noise.given.between_session_sd = known->between_session_sd;
    noise.given.additive_seconds = known->additive_seconds;
    if (known->prior_degrees > 0) noise.given.prior = known->prior();
  } else if (row.device_kind == "meta" || locked) {
    noise.source = locked ? "locked_clocks" : "virtual";
    noise.given.between_session_sd = 0.005;
  } else {
    noise.source = "default";
    noise.given.between_session_sd = 0.01;
  }
  if (c_.options.profile && !known) {
    c_.warnings.push_back(
        fmt::format("{}: says nothing about {}; the default is used for it", c_.options.profile_file, name));
  }
  c_.noise.push_back(std::move(noise));
  return c_.noise.size() - 1;
}

std::string work_difference(const PointRow& a, const PointRow& b) {
  const auto differ = [](const char* what, double x, double y) {
    return x == y ? std::string() : fmt::format("{} differ: {:g} in the base, {:g} in the candidate", what, x, y);
  };
  for (const std::string& sentence :
       {differ("FLOPs per step", a.flops_per_step, b.flops_per_step),
        differ("bytes read per step", a.bytes_read_per_step, b.bytes_read_per_step),
        differ("bytes written per step", a.bytes_written_per_step, b.bytes_written_per_step),
        differ("samples per step", a.samples_per_step, b.samples_per_step)}) {
    if (!sentence.empty()) return sentence;
  }
  return "";
}

void Comparer::no_common_stratum(ComparedPoint& point, const Strata& base, const Strata& cand) const {
  std::set<int64_t> steps_base, steps_cand;
  std::set<std::string> labels_base, labels_cand;
  for (const auto& [key, stratum] : base) {
    steps_base.insert(key.second);
    labels_base.insert(key.first);
  }
  for (const auto& [key, stratum] : cand) {
    steps_cand.insert(key.second);
    labels_cand.insert(key.first);
  }
  if (base.empty() || cand.empty()) {
    point.change = Change::missing;
    point.reason = fmt::format("the {} has no timings of it", base.empty() ? "base" : "candidate");
    return;
  }
  const bool common_steps =
      std::any_of(steps_base.begin(), steps_base.end(), [&](int64_t n) { return steps_cand.contains(n); });
  if (!common_steps) {
    point.change = Change::incomparable;
    point.reason = fmt::format("steps per timing differ: {} in the base, {} in the candidate",
                               fmt::join(steps_base, ", "), fmt::join(steps_cand, ", "));
    return;
  }
  point.change = Change::inconclusive;
  point.reason = fmt::format(
      "no timings of an equal placement of the cores: {} in the base, {} in the candidate; "
      "measure again with more processes",
      fmt::join(labels_base, ", "), fmt::join(labels_cand, ", "));
}

ComparedPoint Comparer::compare_point(const SidePoint& base, const SidePoint* cand) {
  ComparedPoint point;
  point.key = base.row->key;
  point.workload = base.row->workload;
  point.device = base.row->device;
  if (!cand || cand->status != Status::ok) {
    const bool wrong = cand && (cand->status == Status::mismatch || cand->status == Status::invalid);
    point.change = wrong ? Change::invalid : Change::missing;
    point.reason = cand ? fmt::format("the candidate's is {}: {}", to_string(cand->status), cand->reason)
                        : "the candidate has no such point";
    return point;
  }
  if (std::string work = work_difference(*base.row, *cand->row); !work.empty()) {
    point.change = Change::incomparable;
    point.reason = std::move(work);
    return point;
  }
  const auto common = common_stratum(base.strata, cand->strata);
  if (!common) {
    no_common_stratum(point, base.strata, cand->strata);
    return point;
  }
  point.placement = common->placement;
  point.steps_per_timing = common->steps;
  point.processes_left_out =
      processes_in(base.strata) + processes_in(cand->strata) - common->base->processes - common->cand->processes;
  point.base = estimate_of(*common->base);
  point.cand = estimate_of(*common->cand);
  sampled_.push_back(c_.points.size());
  samples_.push_back({.noise = noise_of(*base.row),
                      .device = base.row->device,
                      .base = without_empty(common->base->log_seconds),
                      .cand = without_empty(common->cand->log_seconds)});
  return point;
}

void Comparer::compare_points(const Side& base, const Side& cand) {
  int without = 0, left_out = 0, fewer = 0;
  for (const SidePoint& point : base.points) {
    if (point.status != Status::ok) {
      ++without;
      continue;
    }
    c_.points.push_back(compare_point(point, cand.find(point.row->key)));
    left_out += c_.points.back().processes_left_out;
    fewer += c_.points.back().processes_left_out > 0;
  }
  const auto fresh =
      std::count_if(cand.points.begin(), cand.points.end(), [&](const SidePoint& p) { return !base.find(p.row->key); });
  const auto plural = [](auto n) { return n == 1 ? "" : "s"; };
  if (without > 0)
    c_.notes.push_back(
        fmt::format("{} point{} without a result in the base: nothing to compare with", without, plural(without)));
  if (fresh > 0) c_.notes.push_back(fmt::format("{} point{} only in the candidate", fresh, plural(fresh)));
  if (left_out > 0) {
    c_.notes.push_back(
        fmt::format("timings of {} process{} of {} point{} were left out: another placement of the cores, or "
                    "other steps per timing, than both sides have in common",
                    left_out, left_out == 1 ? "" : "es", fewer, plural(fewer)));
  }
}

using ControlStrata = std::map<std::pair<std::string, std::string>, Strata>;  // by name and device

ControlStrata control_strata(const std::vector<Session>& sessions) {
  ControlStrata controls;
  for (size_t s = 0; s < sessions.size(); ++s) {
    std::map<std::tuple<std::string, std::string, int, std::string>, std::vector<double>> seconds;
    for (const ControlRow& row : sessions[s].result->controls)
      seconds[{row.name, row.device, row.process, row.placement}].push_back(row.seconds);
    for (const auto& [key, values] : seconds) {
      const auto& [name, device, process, label] = key;
      add_value(controls[{name, device}], label, 1, s, sessions.size(), values);
    }
  }
  return controls;
}

void Comparer::find_controls(const std::set<std::string>& devices) {
  const ControlStrata base = control_strata(c_.base), cand = control_strata(c_.cand);
  std::set<std::string> watched;
  for (const auto& [key, strata] : base) {
    const auto other = cand.find(key);
    if (other == cand.end() || !devices.contains(key.second)) continue;
    const auto common = common_stratum(strata, other->second);
    if (!common) continue;
    watched.insert(key.second);
    control_samples_.push_back({.name = key.first,
                                .device = key.second,
                                .base = without_empty(common->base->log_seconds),
                                .cand = without_empty(common->cand->log_seconds)});
    c_.controls.push_back({.name = key.first,
                           .device = key.second,
                           .placement = common->placement,
                           .base_seconds = std::exp(mean_over_sessions(control_samples_.back().base)),
                           .cand_seconds = std::exp(mean_over_sessions(control_samples_.back().cand)),
                           .judged = {}});
  }
  for (const std::string& device : devices) {
    if (!watched.contains(device))
      c_.warnings.push_back(
          fmt::format("{}: no control kernel in common: a drift of the machine can't be noticed", device));
  }
}

std::string Comparer::config_name() const {
  const Json& config = c_.base.front().result->config;
  return config.contains("name") && config["name"].is_string() ? config["name"].get<std::string>() : "CONFIG";
}

std::string Comparer::resolve(const ComparedPoint& point) const {
  const JudgedPoint& j = *point.judged;
  if (!j.enough) return fmt::format("dlbench run {} --processes 5", config_name());
  if (!c_.drifted && j.processes_needed > 0)
    return fmt::format("dlbench run {} --processes {}", config_name(), j.processes_needed);
  return fmt::format("dlbench ab BASE_EXE CAND_EXE {}", config_name());
}

void Comparer::enter(Judgement judgement) {
  c_.drifted = judgement.drifted;
  for (size_t i = 0; i < c_.noise.size(); ++i) c_.noise[i].used = judgement.noise[i];
  for (size_t i = 0; i < c_.controls.size(); ++i) {
    ComparedControl& control = c_.controls[i];
    control.judged = judgement.controls[i];
    const double half_width = control.judged.half_width.value_or(0);
    if (half_width > std::log1p(c_.options.judge.control_shift)) {
      c_.notes.push_back(fmt::format("{} on {} varies too much to notice a drift below {:.0f} %", control.name,
                                     control.device, 100 * std::expm1(half_width)));
    }
  }
  for (size_t i = 0; i < sampled_.size(); ++i) {
    ComparedPoint& point = c_.points[sampled_[i]];
    point.change = judgement.points[i].change;
    point.reason = judgement.points[i].reason;
    point.judged = std::move(judgement.points[i]);
    if (point.change == Change::inconclusive) point.resolve = resolve(point);
  }
  for (const ComparedNoise& noise : c_.noise) {
    if (noise.used.from_sessions) {
      c_.notes.push_back(fmt::format(
          "{}: the sessions of a side differ by {:.1f} % beyond their processes, more than was assumed "
          "({:.1f} %): that is used",
          noise.given.device_class, 100 * noise.used.between_session_sd, 100 * noise.given.between_session_sd));
    }
  }
}

Comparison Comparer::run() {
  check_sessions();
  const Side base(c_.base, c_.options.filter), cand(c_.cand, c_.options.filter);
  for (const auto& [side, session] : {std::pair(&base, &c_.base.front()), std::pair(&cand, &c_.cand.front())}) {
    if (side->points.empty())
      throw InputError(fmt::format("{}: has no point to compare; do the filters match its keys?", session->file));
  }
  std::set<std::string> devices;
  for (const SidePoint& p : base.points) {
    if (p.status == Status::ok) devices.insert(p.row->device);
  }
  if (devices.empty())
    throw InputError(
        fmt::format("{}: no point has a result, so there is nothing to compare with", c_.base.front().file));
  check_environments(devices);
  if (!c_.incomparable.empty()) return std::move(c_);
  check_profile(devices);
  compare_points(base, cand);
  find_controls(devices);
  std::vector<ClassNoise> noise;
  for (const ComparedNoise& n : c_.noise) noise.push_back(n.given);
  enter(judge_points(samples_, control_samples_, noise, c_.options.judge));
  return std::move(c_);
}

}  // namespace

int Comparison::count(Change change) const {
  return static_cast<int>(
      std::count_if(points.begin(), points.end(), [change](const ComparedPoint& p) { return p.change == change; }));
}

int Comparison::exit_code() const {
  const auto code = [](ExitCode c) { return static_cast<int>(c); };
  if (!incomparable.empty()) return code(ExitCode::kUnreadable);
  const FailOn& on = options.fail_on;
  if (count(Change::invalid) > 0 || (on.regression && count(Change::regression) > 0) ||
      (on.improvement && count(Change::improvement) > 0)) {
    return code(ExitCode::kRegression);
  }
  if (on.incomparable && count(Change::incomparable) > 0) return code(ExitCode::kUnreadable);
  const bool nothing =
      std::none_of(points.begin(), points.end(), [](const ComparedPoint& p) { return p.judged && p.judged->enough; });
  if (drifted || nothing || (on.missing && count(Change::missing) > 0) ||
      (on.inconclusive && count(Change::inconclusive) > 0)) {
    return code(ExitCode::kInconclusive);
  }
  return code(ExitCode::kOk);
}

std::string Comparison::verdict() const {
  if (!incomparable.empty()) return "incomparable";
  for (const Change change : {Change::invalid, Change::regression, Change::incomparable}) {
    if (count(change) > 0) return std::string(to_string(change));
  }
  if (drifted) return "inconclusive";
  for (const Change change : {Change::missing, Change::improvement, Change::inconclusive}) {
    if (count(change) > 0) return std::string(to_string(change));
  }
  return "equivalent";
}

Comparison compare(std::vector<Session> base, std::vector<Session> cand, CompareOptions options) {
  if (base.empty() || cand.empty()) throw Error("compare: each side needs a result");
  return Comparer(std::move(base), std::move(cand), std::move(options)).run();
}

}  // namespace dlbench
