// Renderers: an Analysis as text or JSON. Each is a pure function to a string.
#pragma once

#include <string>
#include <vector>

#include "core/analysis/analysis.h"
#include "core/base/json.h"

namespace dlbench {

inline constexpr const char* kReportSchemaVersion = "1.0.0";

struct ConsoleOptions {
  int width = 100;
  bool color = false;
};

std::string render_console(const Analysis& analysis, const ConsoleOptions& options);
std::string render_markdown(const Analysis& analysis);
/// One row per point, the columns always the same (RFC 4180); an unknown value is an empty field.
std::string render_csv(const Analysis& analysis);

/// A result file that a report was made from.
struct ReportSource {
  std::string file;
  std::string sha256;  ///< of its bytes, hexadecimal
};
/// report.json
Json render_json(const Analysis& analysis, const std::vector<ReportSource>& sources);

}  // namespace dlbench
