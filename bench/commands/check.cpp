// `dlbench check`: verifies every point of a config against the reference and times nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <ostream>

#include "commands/measure_options.h"
#include "core/base/json.h"
#include "core/measure/dump.h"
#include "core/measure/result_file.h"
#include "core/measure/verify.h"

namespace dlbench {

namespace {

struct CheckArguments : MeasureArguments {
  std::string json, dump;
};

struct CheckedPoint {
  std::string key;
  Status status = Status::ok;
  std::string reason;
  Verification verification;
};

CheckedPoint check_point(const PlannedPoint& planned, const Config& config, Registry& registry,
                         const WorkloadCatalog& catalog, const std::string& dump) {
  CheckedPoint checked;
  checked.key = planned.key;
  checked.status = planned.status;
  checked.reason = planned.reason;
  if (planned.status != Status::ok) return checked;
  try {
    const AxisValue* threads = planned.point.find("threads");
    const int count = threads ? static_cast<int>(std::get<int64_t>(*threads)) : config.threads;
    const auto device = registry.create(planned.point.device(), {.threads = count});
    const auto workload = catalog.find(planned.point.workload)->create(planned.point);
    workload->prepare(*device);
    if (!dump.empty()) dump_step(*workload, planned.point, *device, config.seed, dump);
    checked.verification = verify(*workload, *device, config.seed, config.measure.verify_flop_cap);
    if (!checked.verification.ok) {
      checked.status = Status::mismatch;
      checked.reason = checked.verification.message;
    }
  } catch (const UsageError&) {
    throw;  // of --dump: the whole command is wrong, not the point
  } catch (const UnsupportedError& e) {
    checked.status = Status::unsupported, checked.reason = e.what();
  } catch (const OutOfMemoryError& e) {
    checked.status = Status::out_of_memory, checked.reason = e.what();
  } catch (const DeviceLostError& e) {
    checked.status = Status::device_lost, checked.reason = e.what();
  } catch (const std::bad_alloc&) {
    checked.status = Status::out_of_memory, checked.reason = "this machine has no memory left for the check";
  } catch (const std::exception& e) {
    checked.status = Status::failed, checked.reason = e.what();
  }
  return checked;
}

std::string table_row(const CheckedPoint& p, size_t key_width) {
  const Verification& v = p.verification;
  std::string how = p.status == Status::unsupported || v.how.empty() ? "-" : v.how;
  if (v.how == "sampled") how = fmt::format("sampled {:.3g} %", 100 * v.fraction);
  const bool compared = v.how == "full" || v.how == "sampled";
  std::string line =
      fmt::format("{:<{}}  {:<13}  {:<14}  {:>9}  {:>9}", p.key, key_width, to_string(p.status), how,
                  compared ? fmt::format("{:.2e}", v.error) : "-", compared ? fmt::format("{:.2e}", v.tolerance) : "-");
  if (!p.reason.empty()) line += "\n    " + p.reason;
  if (v.proves_little) line += "\n    every expected value is zero: this check proves little";
  return line + '\n';
}

Json json_of(const std::vector<CheckedPoint>& points, const Config& config) {
  Json rows = Json::array();
  for (const CheckedPoint& p : points) {
    const Verification& v = p.verification;
    const bool compared = v.how == "full" || v.how == "sampled";
    rows.push_back({{"key", p.key},
                    {"status", to_string(p.status)},
                    {"reason", p.reason},
                    {"how", v.how.empty() ? "none" : v.how},
                    {"error", compared && std::isfinite(v.error) ? Json(v.error) : Json(nullptr)},
                    {"tolerance", compared ? Json(v.tolerance) : Json(nullptr)},
                    {"fraction", v.how.empty() ? 0.0 : v.fraction},
                    {"proves_little", v.proves_little}});
  }
  return {{"kind", "check"}, {"config", config.merged}, {"points", rows}};
}

ExitCode exit_code_of(const std::vector<CheckedPoint>& points) {
  ExitCode code = ExitCode::kOk;
  for (const CheckedPoint& p : points) {
    if (p.status == Status::mismatch) return ExitCode::kRegression;
    if (p.status == Status::failed || p.status == Status::device_lost) code = ExitCode::kSomeFailed;
  }
  return code;
}

ExitCode check(Program& program, const CheckArguments& arguments) {
  const Config config = config_from(arguments, program.catalog);
  Registry registry({.search_path = {}, .meta = config.meta});
  const Plan plan = make_plan(config, program.catalog, registry, Purpose::checking);
  if (!arguments.dump.empty() && plan.points.size() != 1) {
    throw UsageError(fmt::format("--dump writes the step of one point, and {} were asked for; name it with --point KEY",
                                 plan.points.size()));
  }
  if (!arguments.json.empty() && arguments.json != "-") require_writable("--json", arguments.json);
  size_t key_width = 5;
  for (const PlannedPoint& point : plan.points) key_width = std::max(key_width, point.key.size());
  const bool table = arguments.json != "-";
  if (table) {
    program.out << fmt::format("{:<{}}  {:<13}  {:<14}  {:>9}  {:>9}\n", "point", key_width, "status", "compared",
                               "error", "allowed");
  }
  std::vector<CheckedPoint> checked;
  for (const PlannedPoint& point : plan.points) {
    checked.push_back(check_point(point, config, registry, program.catalog, arguments.dump));
    if (table) program.out << table_row(checked.back(), key_width) << std::flush;
  }
  if (table) {
    const auto count = [&checked](Status status) {
      return std::count_if(checked.begin(), checked.end(),
                           [status](const CheckedPoint& p) { return p.status == status; });
    };
    program.out << fmt::format("{} points: {} right, {} wrong, {} not checked\n", checked.size(), count(Status::ok),
                               count(Status::mismatch),
                               static_cast<int64_t>(checked.size()) - count(Status::ok) - count(Status::mismatch));
  } else {
    program.out << dump_json(json_of(checked, config)) << '\n';
  }
  if (!arguments.json.empty() && table) write_file_atomic(arguments.json, dump_json(json_of(checked, config)) + '\n');
  return exit_code_of(checked);
}

}  // namespace

void add_check_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command =
      app.add_subcommand("check", "Verify every point of a config against the reference, without timing");
  command->footer("Example: dlbench check quick --device cpu --filter gemm");
  const auto arguments = std::make_shared<CheckArguments>();
  add_measure_options(*command, *arguments);
  command->add_option("--json", arguments->json, "Also write what was found to a file; - instead of the table")
      ->type_name("FILE");
  command
      ->add_option("--dump", arguments->dump, "Write one step of the point, a model's, for scripts/verify_pytorch.py")
      ->type_name("DIR");
  command->callback(
      [&program, &action, arguments] { action = [&program, arguments] { return check(program, *arguments); }; });
}

}  // namespace dlbench
