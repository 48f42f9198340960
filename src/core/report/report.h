// Renderers: an Analysis as text or JSON. Each is a pure function to a string.
#pragma once

#include <string>

#include "core/analysis/analysis.h"
#include "core/base/json.h"

namespace dlbench {

struct ConsoleOptions {
  int width = 100;
  bool color = false;
};

std::string render_console(const Analysis& analysis, const ConsoleOptions& options);
std::string render_markdown(const Analysis& analysis);
std::string render_csv(const Analysis& analysis);
/// report.json; `result_sha256` is that of the result file's bytes (one entry per file).
Json render_json(const Analysis& analysis, const std::vector<std::string>& result_sha256);

}  // namespace dlbench
