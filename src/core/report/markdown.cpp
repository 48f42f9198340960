// Markdown renderer (GitHub's tables).
#include <algorithm>

#include "core/report/document.h"
#include "core/report/report.h"

namespace dlbench {

namespace {

/// A cell or sentence: characters that markdown would take for markup are escaped.
std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      out += ' ';
      continue;
    }
    if (c == '|' || c == '*' || c == '_' || c == '`' || c == '<' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

class Markdown {
 public:
  void operator()(const Heading& heading) {
    text_ += (text_.empty() ? "## " : "\n## ") + escape(heading.text) + "\n\n";
  }
  void operator()(const Sentences& sentences) {
    for (const auto& line : sentences.lines) text_ += "- " + escape(line.text) + "\n";
  }
  void operator()(const Table& table) {
    if (table.rows.empty()) return;
    if (!table.title.empty()) text_ += (text_.ends_with("\n\n") ? "**" : "\n**") + escape(table.title) + "**\n\n";
    add_row(table.columns);
    text_ += "|";
    for (const bool right : table.right_aligned) text_ += right ? "---:|" : "---|";
    text_ += "\n";
    for (const auto& row : table.rows) add_row(row);
  }
  std::string text() && { return std::move(text_); }

 private:
  void add_row(const std::vector<std::string>& cells) {
    text_ += "|";
    for (const std::string& cell : cells) text_ += (cell.empty() ? " " : " " + escape(cell) + " ") + "|";
    text_ += "\n";
  }
  std::string text_;
};

}  // namespace

std::string render_markdown(const Document& document) {
  Markdown markdown;
  for (const Block& block : document) std::visit(markdown, block);
  return std::move(markdown).text();
}

std::string render_markdown(const Analysis& analysis) {
  return render_markdown(make_document(analysis));
}

}  // namespace dlbench
