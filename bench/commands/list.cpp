// `dlbench list`: what can be asked for. Every name comes from where it is defined; nothing is listed twice.
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "commands/command_line.h"
#include "core/base/json.h"
#include "core/device/registry.h"
#include "core/plan/config.h"

namespace dlbench {

namespace {

const std::vector<std::string> kWhats{"workloads", "configs", "precisions", "devices"};

struct Listing {
  std::vector<const WorkloadDescriptor*> workloads;
  std::vector<ConfigFile> configs;
  std::vector<Precision> precisions;
  std::vector<std::string> devices;
};

bool asked(const std::string& what, const std::string& kind) {
  return what.empty() || what == kind;
}

Listing collect(const Program& program, const std::string& what) {
  Listing listing;
  if (asked(what, "workloads")) listing.workloads = program.catalog.all();
  if (asked(what, "configs")) listing.configs = known_configs();
  if (asked(what, "precisions")) listing.precisions = all_precisions();
  if (asked(what, "devices")) listing.devices = Registry({}).device_ids();
  return listing;
}

/// The `summary` of a config, or why it can't be read.
std::string summary_of(const ConfigFile& config) {
  try {
    const Json json = read_json_file(config.path.string(), JsonComments::kAllow);
    return json.is_object() ? json.value("summary", "") : "not a config";
  } catch (const std::exception& error) {
    return error.what();
  }
}

std::string allowed_values(const AxisSpec& axis) {
  if (!axis.words.empty()) return fmt::format("{}", fmt::join(axis.words, ", "));
  if (axis.kind == AxisKind::word) return "a name";
  return fmt::format("{} to {}", axis.low, axis.high);
}

template <class Names>
std::string joined(const Names& names) {
  std::vector<std::string> words;
  for (const auto& name : names) words.emplace_back(to_string(name));
  return fmt::format("{}", fmt::join(words, ", "));
}

/// Breaks at spaces to fit `width`, later lines indented.
std::string wrapped(const std::string& text, size_t width, size_t indent) {
  std::string out;
  size_t column = indent;
  bool first = true;
  for (size_t from = 0; from < text.size();) {
    const size_t to = std::min(text.find(' ', from), text.size());
    const size_t length = to - from;
    if (!first && column + 1 + length > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += text.substr(from, length);
    column += length;
    first = false;
    from = to + 1;
  }
  return out;
}

/// A default outside of the allowed range stands for "all of them" (threads).
std::string default_value(const AxisSpec& axis) {
  const auto* number = std::get_if<int64_t>(&axis.fallback);
  return number && (*number < axis.low || *number > axis.high) ? "all" : to_string(axis.fallback);
}

void print_axis(std::ostream& out, const AxisSpec& axis, const std::string& sweep_axis, int width) {
  constexpr int kIndent = 17;
  const std::string text = fmt::format("{} [{}; default {}{}]", axis.summary, allowed_values(axis), default_value(axis),
                                       axis.name == sweep_axis ? "; the sweep" : "");
  out << fmt::format("      {:<10} {}\n", axis.name, wrapped(text, static_cast<size_t>(std::max(width, 60)), kIndent));
}

void print_workloads(std::ostream& out, const Listing& listing, int width) {
  out << "Workloads\n";
  for (const WorkloadDescriptor* workload : listing.workloads) {
    out << fmt::format("  {} ({}): {}\n", workload->name, workload->workload_class, workload->summary);
    out << fmt::format("      precisions {}; sides {}\n", joined(workload->precisions), joined(workload->sides));
    for (const AxisSpec& axis : workload->axes) print_axis(out, axis, workload->sweep_axis, width);
  }
  out << "  Every workload also has the axes\n";
  for (const AxisSpec& axis : common_axes()) print_axis(out, axis, "", width);
}

void print_listing(std::ostream& out, const Listing& listing, const std::string& what, int width) {
  if (asked(what, "workloads")) print_workloads(out, listing, width);
  if (asked(what, "configs")) {
    out << "Configs\n";
    for (const ConfigFile& config : listing.configs)
      out << fmt::format("  {:<12} {}\n  {:<12} {}\n", config.name, summary_of(config), "", config.path.string());
  }
  if (asked(what, "precisions")) {
    out << "Precisions: storage / compute / accumulate\n";
    for (const Precision precision : listing.precisions) {
      const PrecisionInfo& each = info(precision);
      out << fmt::format("  {:<6} {} / {} / {}{}\n", each.name, to_string(each.storage), to_string(each.compute),
                         to_string(each.accumulate), each.matrix_only ? ", matrix products only" : "");
    }
  }
  if (asked(what, "devices")) {
    out << "Devices (`dlbench info` says more)\n";
    for (const std::string& device : listing.devices) out << "  " << device << '\n';
  }
}

void print_names(std::ostream& out, const Listing& listing) {
  for (const WorkloadDescriptor* workload : listing.workloads) out << workload->name << '\n';
  for (const ConfigFile& config : listing.configs) out << config.name << '\n';
  for (const Precision precision : listing.precisions) out << to_string(precision) << '\n';
  for (const std::string& device : listing.devices) out << device << '\n';
}

Json axis_json(const AxisSpec& axis) {
  Json json{
      {"name", axis.name}, {"kind", axis.kind == AxisKind::integer ? "integer" : "word"}, {"summary", axis.summary}};
  std::visit([&json](const auto& value) { json["default"] = value; }, axis.fallback);
  if (axis.kind == AxisKind::integer) {
    json["low"] = axis.low;
    json["high"] = axis.high;
  } else {
    json["words"] = axis.words;
  }
  return json;
}

Json axes_json(const std::vector<AxisSpec>& axes) {
  Json json = Json::array();
  for (const AxisSpec& axis : axes) json.push_back(axis_json(axis));
  return json;
}

Json listing_json(const Listing& listing, const std::string& what) {
  Json json = Json::object();
  if (asked(what, "workloads")) {
    json["workloads"] = Json::array();
    for (const WorkloadDescriptor* workload : listing.workloads) {
      Json row{{"name", workload->name},
               {"class", workload->workload_class},
               {"summary", workload->summary},
               {"sweep_axis", workload->sweep_axis},
               {"axes", axes_json(workload->axes)},
               {"precisions", Json::array()},
               {"sides", Json::array()}};
      for (const Precision precision : workload->precisions) row["precisions"].push_back(to_string(precision));
      for (const Side side : workload->sides) row["sides"].push_back(to_string(side));
      json["workloads"].push_back(std::move(row));
    }
    json["common_axes"] = axes_json(common_axes());
  }
  if (asked(what, "configs")) {
    json["configs"] = Json::array();
    for (const ConfigFile& config : listing.configs)
      json["configs"].push_back(
          Json{{"name", config.name}, {"summary", summary_of(config)}, {"path", config.path.string()}});
  }
  if (asked(what, "precisions")) {
    json["precisions"] = Json::array();
    for (const Precision precision : listing.precisions) {
      const PrecisionInfo& each = info(precision);
      json["precisions"].push_back(Json{{"name", each.name},
                                        {"storage", to_string(each.storage)},
                                        {"accumulate", to_string(each.accumulate)},
                                        {"unit_roundoff", each.unit_roundoff},
                                        {"matrix_only", each.matrix_only}});
    }
  }
  if (asked(what, "devices")) json["devices"] = listing.devices;
  return json;
}

}  // namespace

void add_list_command(CLI::App& app, Program& program, Action& action) {
  CLI::App* command =
      app.add_subcommand("list", "List the workloads with their axes, the configs, precisions and devices");
  command->footer("Example: dlbench list workloads");
  struct Options {
    std::string what;
    bool json = false, names = false;
  };
  const auto options = std::make_shared<Options>();
  command->add_option("what", options->what, "Only these: workloads, configs, precisions or devices")
      ->check(CLI::IsMember(kWhats));
  auto* json = command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("--names", options->names, "Print names only, one a line")->excludes(json);
  command->callback([&program, &action, options] {
    action = [&program, options] {
      const Listing listing = collect(program, options->what);
      if (options->json)
        program.out << dump_json(listing_json(listing, options->what)) << '\n';
      else if (options->names)
        print_names(program.out, listing);
      else
        print_listing(program.out, listing, options->what, program.width);
      return ExitCode::kOk;
    };
  });
}

}  // namespace dlbench
