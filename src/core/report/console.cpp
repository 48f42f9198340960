// Console renderer: sentences first, then tables that fit the terminal; colour only where asked, never instead of
// words.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/report/document.h"
#include "core/report/report.h"

namespace dlbench {

namespace {

/// Columns a UTF-8 text takes: its code points (nothing wide is ever printed).
size_t columns_of(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// "6.24 ", "±0.5 ": what a unit follows.
bool is_number(std::string_view piece) {
  return piece.ends_with(' ') && piece.find_first_of("0123456789") != std::string_view::npos &&
         piece.find_first_not_of("0123456789.,+-±<>~ ") == std::string_view::npos;
}

/// Breaks at spaces and behind '/', never between a number and its unit; a piece that can't be broken stays whole.
std::vector<std::string> wrap(const std::string& text, size_t width) {
  std::vector<std::string> lines{""};
  const auto end_of = [&text](const char* breaks, size_t from) {
    const size_t end = text.find_first_of(breaks, from);
    return end == std::string::npos ? text.size() : end + 1;
  };
  for (size_t start = 0; start < text.size();) {
    size_t end = end_of(" /", start);
    if (is_number(std::string_view(text).substr(start, end - start))) end = end_of(" ", end);
    const std::string piece = text.substr(start, end - start);
    const size_t needed = columns_of(piece) - (piece.ends_with(' ') ? 1 : 0);
    if (!lines.back().empty() && columns_of(lines.back()) + needed > width) lines.emplace_back();
    lines.back() += piece;
    start = end;
  }
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

std::string pad(const std::string& text, size_t width, bool right) {
  const std::string space(width - std::min(width, columns_of(text)), ' ');
  return right ? space + text : text + space;
}

/// The widest piece of a column that `wrap` can't break.
size_t least_width(const Table& table, size_t column) {
  size_t least = 0;
  const auto consider = [&least](const std::string& text) {
    for (const std::string& piece : wrap(text, 1)) least = std::max(least, columns_of(piece));
  };
  consider(table.columns[column]);
  for (const auto& row : table.rows) consider(row[column]);
  return least;
}

/// Natural widths, the widest columns of text narrowed until the table fits or nothing can be broken any more.
std::vector<size_t> fit(const Table& table, const std::vector<size_t>& shown, size_t width) {
  constexpr size_t kGap = 2;
  std::vector<size_t> widths, least;
  for (const size_t c : shown) {
    size_t widest = columns_of(table.columns[c]);
    for (const auto& row : table.rows) widest = std::max(widest, columns_of(row[c]));
    widths.push_back(widest);
    least.push_back(least_width(table, c));
  }
  const auto total = [&] { return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1)); };
  for (const bool numbers : {false, true}) {  // columns of numbers are broken only when text can't give way any more
    while (total() > width) {
      size_t widest = widths.size();
      for (size_t i = 0; i < widths.size(); ++i) {
        const bool may = widths[i] > least[i] && (numbers || !table.right_aligned[shown[i]]);
        if (may && (widest == widths.size() || widths[i] > widths[widest])) widest = i;
      }
      if (widest == widths.size()) break;
      --widths[widest];
    }
  }
  return widths;
}

/// The columns in groups that fit, each with the first column again: rather a second table than a number apart from its
/// unit.
std::vector<std::vector<size_t>> groups_of(const Table& table, const std::vector<size_t>& shown, size_t width) {
  constexpr size_t kGap = 2;
  std::vector<std::vector<size_t>> groups{{shown.front()}};
  const size_t first = least_width(table, shown.front());
  size_t used = first;
  for (size_t i = 1; i < shown.size(); ++i) {
    const size_t needed = kGap + least_width(table, shown[i]);
    if (used + needed > width && groups.back().size() > 1) {
      groups.push_back({shown.front()});
      used = first;
    }
    groups.back().push_back(shown[i]);
    used += needed;
  }
  return groups;
}

class Console {
 public:
  explicit Console(const ConsoleOptions& options) : options_(options) {}

  void operator()(const Heading& heading) { text_ += (text_.empty() ? "" : "\n") + paint(heading.text, "1") + "\n"; }
  void operator()(const Sentences& sentences) {
    for (const auto& line : sentences.lines) {
      bool first = true;
      for (const std::string& part : wrap(line.text, static_cast<size_t>(std::max(options_.width, 40)) - 4)) {
        text_ += (first ? "  " : "    ") + paint(part, code(line.tone)) + "\n";
        first = false;
      }
    }
  }
  void operator()(const Table& table) {
    std::vector<size_t> shown;  // a column without any value isn't worth its width
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (std::any_of(table.rows.begin(), table.rows.end(), [c](const auto& row) { return !row[c].empty(); }))
        shown.push_back(c);
    }
    if (shown.empty()) return;
    if (!table.title.empty()) text_ += "  " + paint(table.title, "4") + "\n";
    const size_t width = static_cast<size_t>(std::max(options_.width, 40)) - 2;
    for (const std::vector<size_t>& group : groups_of(table, shown, width)) {
      const std::vector<size_t> widths = fit(table, group, width);
      add_row(table, group, widths, table.columns, "2");
      for (const auto& row : table.rows) add_row(table, group, widths, row, "");
    }
  }
  std::string text() && { return std::move(text_); }

 private:
  static const char* code(Tone tone) {
    switch (tone) {
      case Tone::plain:
        return "";
      case Tone::good:
        return "32";
      case Tone::bad:
        return "31";
      case Tone::warning:
        return "33";
    }
    return "";
  }
  std::string paint(const std::string& text, std::string_view ansi) const {
    return options_.color && !ansi.empty() ? fmt::format("\x1b[{}m{}\x1b[0m", ansi, text) : text;
  }
  void add_row(const Table& table, const std::vector<size_t>& shown, const std::vector<size_t>& widths,
               const std::vector<std::string>& row, std::string_view ansi) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t i = 0; i < shown.size(); ++i) {
      cells.push_back(wrap(row[shown[i]], widths[i]));
      height = std::max(height, cells.back().size());
    }
    for (size_t line = 0; line < height; ++line) {
      std::string text;
      for (size_t i = 0; i < shown.size(); ++i) {
        const std::string& cell = line < cells[i].size() ? cells[i][line] : kNothing;
        text += (i ? "  " : "") + pad(cell, widths[i], table.right_aligned[shown[i]]);
      }
      text.erase(text.find_last_not_of(' ') + 1);
      text_ += "  " + paint(text, ansi) + "\n";
    }
  }

  inline static const std::string kNothing;
  ConsoleOptions options_;
  std::string text_;
};

}  // namespace

std::string render_console(const Document& document, const ConsoleOptions& options) {
  Console console(options);
  for (const Block& block : document) std::visit(console, block);
  return std::move(console).text();
}

std::string render_console(const Analysis& analysis, const ConsoleOptions& options) {
  return render_console(make_document(analysis), options);
}

}  // namespace dlbench
