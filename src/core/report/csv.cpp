// CSV renderer: RFC 4180 (CRLF line ends, quotes doubled), one row per point, stable columns.
#include <fmt/format.h>

#include "core/analysis/selection.h"
#include "core/report/report.h"

namespace dlbench {

namespace {

std::string quote(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

class Row {
 public:
  void add(const std::string& text) {
    line_ += (first_ ? "" : ",") + quote(text);
    first_ = false;
  }
  void add(double value) { add(fmt::format("{:.9g}", value)); }
  void add(const std::optional<double>& value) { value ? add(*value) : add(std::string()); }
  void add(int64_t value) { add(std::to_string(value)); }
  std::string end() const { return line_ + "\r\n"; }

 private:
  std::string line_;
  bool first_ = true;
};

constexpr const char* kColumns[] = {"key",
                                    "workload",
                                    "device",
                                    "device_kind",
                                    "side",
                                    "precision",
                                    "support",
                                    "launch",
                                    "data",
                                    "cache",
                                    "threads",
                                    "sweep_axis",
                                    "sweep_value",
                                    "status",
                                    "reason",
                                    "processes",
                                    "placement",
                                    "timings_used",
                                    "timings_left_out",
                                    "seconds",
                                    "seconds_low",
                                    "seconds_high",
                                    "seconds_minimum",
                                    "device_seconds",
                                    "samples_per_s",
                                    "samples_per_s_low",
                                    "samples_per_s_high",
                                    "sample_unit",
                                    "flops_per_step",
                                    "bytes_per_step",
                                    "working_set_bytes",
                                    "achieved_flop_per_s",
                                    "achieved_bytes_per_s",
                                    "arithmetic_intensity",
                                    "roofline_seconds",
                                    "roofline_fraction",
                                    "bound",
                                    "verification",
                                    "verification_error",
                                    "flags",
                                    "source"};

void add_identity(Row& line, const AnalyzedPoint& p) {
  const PointRow& row = *p.row;
  for (const std::string* text :
       {&row.key, &row.workload, &row.device, &row.device_kind, &row.side, &row.precision, &row.support})
    line.add(*text);
  for (const char* axis : {"launch", "data", "cache", "threads"}) line.add(word_axis(row, axis));
  line.add(row.sweep_axis);
  line.add(row.sweep_value);
  line.add(std::string(to_string(p.status)));
  line.add(p.reason);
}

void add_numbers(Row& line, const AnalyzedPoint& p) {
  const PointRow& row = *p.row;
  const auto of = [&p](std::optional<double> Estimate::*member) {
    return p.seconds ? (*p.seconds).*member : std::nullopt;
  };
  line.add(static_cast<int64_t>(p.seconds ? p.seconds->processes : 0));
  line.add(p.placement);
  line.add(static_cast<int64_t>(p.timings_used));
  line.add(static_cast<int64_t>(p.timings_left_out));
  line.add(p.seconds ? std::optional(p.seconds->value) : std::nullopt);
  line.add(of(&Estimate::low));
  line.add(of(&Estimate::high));
  line.add(p.seconds ? std::optional(p.seconds->minimum) : std::nullopt);
  line.add(p.device_seconds ? std::optional(p.device_seconds->value) : std::nullopt);
  for (const auto& value : {p.samples_per_s, p.samples_per_s_low, p.samples_per_s_high}) line.add(value);
  line.add(row.sample_unit);
  line.add(row.flops_per_step);
  line.add(row.bytes_read_per_step + row.bytes_written_per_step);
  line.add(row.working_set_bytes);
  for (const auto& value :
       {p.achieved_flop_per_s, p.achieved_bytes_per_s, p.arithmetic_intensity, p.roofline_seconds, p.roofline_fraction})
    line.add(value);
  line.add(p.bound == Bound::unknown ? std::string() : std::string(to_string(p.bound)));
  line.add(row.verification);
  line.add(row.verification_error);
  std::string flags;
  for (const std::string& flag : p.flags) flags += (flags.empty() ? "" : ";") + flag;
  line.add(flags);
  line.add(row.source);
}

}  // namespace

std::string render_csv(const Analysis& analysis) {
  Row header;
  for (const char* column : kColumns) header.add(std::string(column));
  std::string text = header.end();
  for (const AnalyzedPoint& point : analysis.points) {
    Row line;
    add_identity(line, point);
    add_numbers(line, point);
    text += line.end();
  }
  return text;
}

}  // namespace dlbench
