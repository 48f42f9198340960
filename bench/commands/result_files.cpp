#include "commands/result_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "core/base/error.h"
#include "core/base/sha256.h"
#include "core/result/result_io.h"

namespace dlbench {

void add_result_files(CLI::App& command, ResultFiles& files) {
  command.add_option("files", files.files, "Result files; those of several machines are merged; - is standard input")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--prefer", files.preferred,
                  "The file whose measurement counts where several measured the same point")
      ->type_name("FILE");
}

std::string read_bytes(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(fmt::format("{}: is a directory; name a JSON file", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

LoadedResult load_results(const ResultFiles& files) {
  if (std::count(files.files.begin(), files.files.end(), "-") > 1)
    throw UsageError("standard input (-) can be named once only");
  LoadedResult loaded;
  std::vector<Result> results;
  for (const std::string& file : files.files) {
    const std::string bytes = read_bytes(file);
    const std::string origin = file == "-" ? "standard input" : file;
    results.push_back(result_from_json(parse_json(bytes, origin), origin));
    loaded.sources.push_back({origin, sha256(bytes)});
  }
  std::vector<std::string> origins;
  for (const ReportSource& source : loaded.sources) origins.push_back(source.file);
  loaded.result = merge_results(results, origins, files.preferred);
  return loaded;
}

void write_text(const std::string& text, const std::string& path, Program& program) {
  if (path.empty() || path == "-") {
    program.out << text;
  } else {
    write_file_atomic(path, text);
  }
}

}  // namespace dlbench
