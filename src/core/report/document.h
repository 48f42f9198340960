// Document: what a report says, before it is decided how it looks. Built once from an Analysis; the console and the
// markdown renderer only lay it out, so both say the same.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "core/analysis/analysis.h"

namespace dlbench {

struct Heading {
  std::string text;
};

/// How a sentence is coloured, where colour is wanted; the words say it too.
enum class Tone : uint8_t { plain, good, bad, warning };

struct Sentences {
  struct Line {
    std::string text;
    Tone tone = Tone::plain;
  };
  std::vector<Line> lines;
};

struct Table {
  std::string title;  ///< "" for none
  std::vector<std::string> columns;
  std::vector<bool> right_aligned;             ///< per column
  std::vector<std::vector<std::string>> rows;  ///< an unknown value is an empty cell
};

using Block = std::variant<Heading, Sentences, Table>;
using Document = std::vector<Block>;

Document make_document(const Analysis& analysis);

struct ConsoleOptions;
std::string render_console(const Document& document, const ConsoleOptions& options);
std::string render_markdown(const Document& document);

// Parts of it, which other renderers and tests use too.

/// "the GPU (gpu:0, launch=stream) wins from batch 64 up …": one sentence with the verdict, without the name of the
/// sweep.
std::string verdict_sentence(const Crossover& crossover);
/// "gemm square fp32" from a key: the workload, words as they are, numbers with their name; `constant` segments left
/// out.
std::string short_name(const std::string& key, const std::vector<std::string>& left_out = {});
/// "64", or "256 MiB" where the axis counts bytes.
std::string axis_value_text(const std::string& axis, double value);
/// "gpu:0 graph resident": a device with the words of its variant.
std::string variant_text(const std::string& device, const std::string& variant);
/// One line per machine: processor, threads, memory, operating system, and its GPUs.
std::vector<std::string> machine_lines(const Result& result);
}  // namespace dlbench
