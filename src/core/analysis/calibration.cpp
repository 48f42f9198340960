#include "core/analysis/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/analysis/selection.h"
#include "core/base/error.h"

namespace dlbench {

namespace {

constexpr double kMargin = 0.01, kFalseDiscovery = 0.01;  // of `compare`
constexpr double kAdditiveShare = 1.0 / 3;  // of the points, the fastest: there the additive part of the noise shows

/// One point over the sessions: ln(median seconds) per process, timings of one placement only.
struct CalibratedPoint {
  Sessions sessions;
  double seconds = 0;
  SampleVariance within;
  double between_variance = 0;  ///< estimate of tau^2; may be negative
  double between_degrees = 0;
};

std::string majority_label(std::span<const PointTimings* const> timings) {
  std::map<std::string, int> processes;
  for (const PointTimings* each : timings) {
    for (const auto& [label, count] : each->labels) processes[label] += count.processes;
  }
  std::string best;
  int most = 0;
  for (const auto& [label, count] : processes) {
    if (count > most) best = label, most = count;
  }
  return best;
}

std::vector<double> process_logs(const PointTimings& timings, const std::string& label) {
  std::vector<double> logs;
  for (const TimingRow* row : timings.rows) {
    std::vector<double> seconds;
    for (size_t i = 0; i < row->wall_seconds.size(); ++i) {
      if (label_of(*row, i) == label && row->wall_seconds[i] > 0) seconds.push_back(row->wall_seconds[i]);
    }
    if (!seconds.empty()) logs.push_back(std::log(median(std::move(seconds))));
  }
  return logs;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double v : values) squares += (v - mean) * (v - mean);
  return squares / static_cast<double>(values.size() - 1);
}

void estimate_components(CalibratedPoint& point) {
  const Sessions* sides[] = {&point.sessions};
  point.within = pooled_variance(sides);
  std::vector<double> means;
  double inverse_processes = 0;
  for (const std::vector<double>& session : point.sessions) {
    means.push_back(mean_of(session));
    inverse_processes += 1 / static_cast<double>(session.size()) / static_cast<double>(point.sessions.size());
  }
  point.seconds = std::exp(mean_of(means));
  point.between_degrees = static_cast<double>(means.size()) - 1;
  point.between_variance = variance_of(means) - point.within.variance * inverse_processes;
}

/// Points that two sessions or more measured with two processes or more, by device class.
std::map<std::string, std::vector<CalibratedPoint>> points_by_class(std::span<const Result> sessions) {
  std::vector<TimingIndex> indexes;
  for (const Result& result : sessions) indexes.push_back(index_timings(result));
  std::map<std::string, std::vector<CalibratedPoint>> classes;
  for (const PointRow& row : sessions.front().points) {
    std::vector<const PointTimings*> timings;
    for (size_t s = 0; s < sessions.size(); ++s) {
      const auto& points = sessions[s].points;
      const auto there =
          std::find_if(points.begin(), points.end(), [&row](const PointRow& p) { return p.key == row.key; });
      if (there == points.end() || there->status != Status::ok) continue;
      if (const auto found = indexes[s].find(row.key); found != indexes[s].end()) timings.push_back(&found->second);
    }
    const std::string label = majority_label(timings);
    CalibratedPoint point;
    for (const PointTimings* each : timings) {
      std::vector<double> logs = process_logs(*each, label);
      if (logs.size() >= 2) point.sessions.push_back(std::move(logs));
    }
    if (point.sessions.size() < 2) continue;
    estimate_components(point);
    classes[device_class(row.device)].push_back(std::move(point));
  }
  return classes;
}

/// What every step takes more or less whatever it does: of the fastest points, the noise beyond what all points have.
double additive_seconds(std::vector<CalibratedPoint> points, double prior_variance) {
  std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  points.resize(std::max<size_t>(1, static_cast<size_t>(static_cast<double>(points.size()) * kAdditiveShare)));
  std::vector<double> squares;
  for (const CalibratedPoint& p : points) {
    squares.push_back(std::max(0.0, p.within.variance - prior_variance) * p.seconds * p.seconds);
  }
  return std::sqrt(median(std::move(squares)));
}

DeviceNoise noise_of(const std::string& name, const std::vector<CalibratedPoint>& points) {
  DeviceNoise noise;
  noise.device_class = name;
  noise.points = static_cast<int>(points.size());
  std::vector<SampleVariance> variances;
  double between = 0, weights = 0, pooled = 0, degrees = 0;
  for (const CalibratedPoint& p : points) {
    variances.push_back(p.within);
    between += p.between_degrees * p.between_variance;
    weights += p.between_degrees;
    pooled += p.within.degrees * p.within.variance;
    degrees += p.within.degrees;
  }
  noise.between_session_sd = std::sqrt(std::max(0.0, between / weights));
  const SampleVariance prior = fit_variance_prior(variances);
  const double typical = prior.degrees > 0 ? prior.variance : pooled / degrees;
  noise.prior_variance = typical;
  noise.prior_degrees = prior.degrees;
  noise.additive_seconds = additive_seconds(points, typical);
  const double level = kFalseDiscovery / static_cast<double>(points.size());
  for (const int processes : kDetectableProcesses) {
    const double p = processes, tau = noise.between_session_sd;
    const double error = std::sqrt(2 * typical / p + 2 * tau * tau);
    const double effect = minimum_detectable_effect(std::log1p(kMargin), error, noise.prior_degrees + 2 * p - 2, level);
    noise.detectable.push_back({processes, std::expm1(effect)});
  }
  return noise;
}

std::string machine_name(const Json& environment) {
  const auto text = [&environment](const char* pointer) {
    const Json::json_pointer p(pointer);
    if (!environment.contains(p)) return std::string();
    const Json& value = environment.at(p);
    return value.is_string() ? value.get<std::string>() : value.is_number() ? value.dump() : std::string();
  };
  const std::string model = text("/cpu/model"), cpus = text("/cpu/usable_cpus");
  return (model.empty() ? "unknown processor" : model) + (cpus.empty() ? "" : ", " + cpus + " CPUs");
}

}  // namespace

NoiseProfile calibrate(std::span<const Result> sessions) {
  if (sessions.size() < 2) throw InputError("calibration needs at least two sessions of the same program");
  NoiseProfile profile;
  const Result& first = sessions.front();
  profile.fingerprint = first.environment.at("fingerprint").get<std::string>();
  int processes = 0;
  for (const Result& result : sessions) {
    if (result.environment.at("fingerprint") != first.environment.at("fingerprint")) {
      throw InputError("the sessions come from different machines, and a noise profile belongs to one");
    }
    if (result.tool != first.tool) profile.warnings.push_back("the sessions come from different builds of dlbench");
    std::set<int> seen;
    for (const TimingRow& row : result.timings) seen.insert(row.process);
    processes = processes == 0 ? static_cast<int>(seen.size()) : std::min(processes, static_cast<int>(seen.size()));
  }
  std::sort(profile.warnings.begin(), profile.warnings.end());
  profile.warnings.erase(std::unique(profile.warnings.begin(), profile.warnings.end()), profile.warnings.end());
  profile.machine = machine_name(first.environment);
  profile.config = first.config.contains("name") ? first.config.at("name").get<std::string>() : "";
  profile.sessions = static_cast<int>(sessions.size());
  profile.processes = processes;
  profile.tool = first.tool;
  profile.environment = first.environment;
  for (const auto& [name, points] : points_by_class(sessions)) {
    profile.devices.push_back(noise_of(name, points));
    if (points.size() < kLeastPointsForPrior) {
      profile.warnings.push_back(fmt::format("{}: {} points are too few to share a variance; measure at least {}", name,
                                             points.size(), kLeastPointsForPrior));
    }
  }
  if (profile.devices.empty()) {
    throw InputError("no point was measured in two sessions with two processes each, so the noise can't be told");
  }
  if (sessions.size() < 4) {
    profile.warnings.push_back(
        fmt::format("{} sessions tell little about how sessions differ; 5 or more are better", sessions.size()));
  }
  return profile;
}

std::vector<std::string> calibration_sentences(const NoiseProfile& profile) {
  std::vector<std::string> sentences;
  for (const DeviceNoise& d : profile.devices) {
    const auto percent = [](double fraction) { return fmt::format("{:.2g} %", 100 * fraction); };
    std::string others;
    for (const auto& each : d.detectable) {
      if (each.processes != 5)
        others += fmt::format("{}{} at {}", others.empty() ? "" : ", ", percent(each.effect), each.processes);
    }
    const auto five =
        std::find_if(d.detectable.begin(), d.detectable.end(), [](const auto& e) { return e.processes == 5; });
    sentences.push_back(fmt::format(
        "{}: this machine can see {} at 5 processes ({}); processes differ by {}, sessions by {} more; {} points.",
        d.device_class, percent(five == d.detectable.end() ? 0 : five->effect), others,
        percent(std::sqrt(d.prior_variance)), percent(d.between_session_sd), d.points));
  }
  return sentences;
}

}  // namespace dlbench
