// Renderers of a Comparison: console, markdown for a pull request, comparison.json, JUnit XML and annotations for
// GitHub Actions. Each is a pure function to a string; all say the same verdicts.
#pragma once

#include <string>

#include "core/analysis/compare.h"
#include "core/report/document.h"
#include "core/report/report.h"

namespace dlbench {

inline constexpr const char* kComparisonSchemaVersion = "1.0.0";

/// Sentences first, then what changed, then the rest. @param all_points: also the points that didn't change, in a table
/// of their own.
Document make_comparison_document(const Comparison& comparison, bool all_points);

/// Tables of at most 40 rows: a person reads them; `comparison.json` has all.
std::string render_comparison_console(const Comparison& comparison, const ConsoleOptions& options);
/// With every point folded into <details>, at most 500 of them: a comment on GitHub ends at 65,536 characters.
std::string render_comparison_markdown(const Comparison& comparison);
Json comparison_json(const Comparison& comparison);
/// JUnit XML as CI services read it: one test case per point; failure: regression or wrong result; error: incomparable;
/// skipped: inconclusive or missing.
std::string render_comparison_junit(const Comparison& comparison);
/// Workflow commands (::error, ::warning, ::notice); GitHub shows ten of each a step, so no more are written.
std::string render_comparison_github(const Comparison& comparison);

// Parts of it.

/// One sentence: what came out.
std::string comparison_headline(const Comparison& comparison);
/// "+5.2 %": a change of the time per step from a difference of ln(seconds).
std::string change_text(double effect);
/// "5.2 % slower (1.02 ms -> 1.07 ms, 95 % interval +3.1 % to +7.4 %)"
std::string change_sentence(const ComparedPoint& point);

}  // namespace dlbench
