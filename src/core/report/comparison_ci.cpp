// A Comparison for CI services: JUnit XML and GitHub's workflow commands.
#include <fmt/format.h>

#include <algorithm>

#include "core/report/comparison.h"

namespace dlbench {

namespace {

/// Text for XML 1.0: markup escaped; control characters, which XML has no way to write, replaced.
std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

/// "" where the test passes; else the element that says it doesn't.
std::string outcome(const ComparedPoint& p) {
  const std::string message = xml(p.reason.empty() ? change_sentence(p) : p.reason);
  switch (p.change) {
    case Change::regression:
    case Change::invalid:
      return fmt::format("<failure type=\"{}\" message=\"{}\"/>", to_string(p.change), message);
    case Change::incomparable:
      return fmt::format("<error type=\"incomparable\" message=\"{}\"/>", message);
    case Change::inconclusive:
    case Change::missing:
      return fmt::format("<skipped message=\"{}: {}\"/>", to_string(p.change), message);
    case Change::improvement:
    case Change::equivalent:
      return "";
  }
  return "";
}

/// GitHub: toolkit/packages/core/src/command.ts escapes %, CR and LF in messages, and : and , in properties too.
std::string command_text(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','))) {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string command(const char* level, const std::string& title, const std::string& message) {
  return fmt::format("::{} title={}::{}\n", level, command_text(title, true), command_text(message, false));
}

}  // namespace

std::string render_comparison_junit(const Comparison& c) {
  const int failures = c.count(Change::regression) + c.count(Change::invalid);
  const int skipped = c.count(Change::inconclusive) + c.count(Change::missing);
  const bool apart = !c.incomparable.empty();
  const int errors = c.count(Change::incomparable) + (apart ? 1 : 0);
  const size_t tests = c.points.size() + (apart ? 1 : 0);
  const std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\"", tests, failures, errors);
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"dlbench compare\" {}>\n"
      "  <testsuite name=\"dlbench compare\" {} skipped=\"{}\">\n",
      counts, counts, skipped);
  if (apart) {
    std::string reasons;
    for (const std::string& reason : c.incomparable) reasons += (reasons.empty() ? "" : "; ") + reason;
    text += fmt::format(
        "    <testcase classname=\"dlbench\" name=\"same conditions\" time=\"0\"><error "
        "type=\"incomparable\" message=\"{}\"/></testcase>\n",
        xml(reasons));
  }
  for (const ComparedPoint& p : c.points) {
    const std::string inner = outcome(p);
    text += fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.9f}\"", xml(p.workload), xml(p.key),
                        p.cand ? p.cand->value : 0.0);
    text += inner.empty() ? "/>\n" : ">" + inner + "</testcase>\n";
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

std::string render_comparison_github(const Comparison& c) {
  constexpr int kShown = 10;
  std::string text;
  int errors = 0, warnings = 0;
  const auto error = [&](const std::string& title, const std::string& message) {
    if (errors++ < kShown - 1) text += command("error", title, message);
  };
  const auto warning = [&](const std::string& title, const std::string& message) {
    if (warnings++ < kShown - 1) text += command("warning", title, message);
  };
  for (const std::string& reason : c.incomparable) error("dlbench: incomparable", reason);
  for (const ComparedPoint& p : c.points) {
    if (p.change == Change::regression) error("dlbench: regression", p.key + ": " + change_sentence(p));
    if (p.change == Change::invalid || p.change == Change::incomparable)
      error("dlbench: " + std::string(to_string(p.change)), p.key + ": " + p.reason);
    if (p.change == Change::missing) warning("dlbench: missing", p.key + ": " + p.reason);
  }
  for (const ComparedControl& k : c.controls) {
    if (k.judged.shifted)
      warning("dlbench: the machine changed",
              fmt::format("{} on {}: {}", k.name, k.device, change_text(k.judged.effect)));
  }
  for (const std::string& sentence : c.warnings) warning("dlbench", sentence);
  if (errors >= kShown) text += command("error", "dlbench", fmt::format("{} more", errors - kShown + 1));
  if (warnings >= kShown) text += command("warning", "dlbench", fmt::format("{} more", warnings - kShown + 1));
  return text + command("notice", "dlbench", comparison_headline(c));
}

}  // namespace dlbench
