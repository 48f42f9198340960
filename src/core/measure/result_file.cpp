#include "core/measure/result_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/result/result_io.h"

namespace dlbench {

namespace fs = std::filesystem;

namespace {
constexpr std::chrono::seconds kWriteInterval{1};

[[noreturn]] void refuse(const std::string& path, const std::string& why, const std::string& option = "--output") {
  throw UsageError(fmt::format("{} {}: {}; nothing was measured", option, path, why));
}

fs::path directory_of(const fs::path& path) {
  return path.parent_path().empty() ? fs::path(".") : path.parent_path();
}

void require_directory(const std::string& path, const std::string& option) {
  std::error_code error;
  const fs::path directory = directory_of(path);
  if (fs::is_directory(directory, error)) return;
  refuse(path, fmt::format("there is no directory {}; make it first (mkdir -p)", directory.string()), option);
}
}  // namespace

void require_writable(const std::string& option, const std::string& path) {
  std::error_code error;
  require_directory(path, option);
  if (fs::is_directory(path, error)) refuse(path, "is a directory; name a file", option);
  const bool special = fs::exists(path, error) && !fs::is_regular_file(path, error);
  // A regular file is replaced through a new one beside it: its directory must be writable.
  const std::string place = special ? path : directory_of(path).string();
  if (::access(place.c_str(), W_OK) != 0) {
    refuse(path, fmt::format("{} cannot be written: {}", place, std::strerror(errno)), option);
  }
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error) && !error) return true;
  const fs::path left = fs::weakly_canonical(fs::absolute(a), error),
                 right = fs::weakly_canonical(fs::absolute(b), error);
  return !left.empty() && left == right;
}

ResultFile::~ResultFile() {
  if (journal_ >= 0) ::close(journal_);
}

std::string ResultFile::start(const Result& initial) {
  if (!on_disk()) return "";
  std::error_code error;
  const fs::path path(path_), previous(path_ + ".previous");
  const bool exists = fs::exists(path, error);
  if (exists && !fs::is_regular_file(path, error)) refuse(path_, "this is no regular file");
  require_directory(path_, "--output");
  if (exists) {
    fs::rename(path, previous, error);
    if (error)
      refuse(path_, fmt::format("the file that is there can't be moved to {}: {}", previous.string(), error.message()));
  }
  try {
    write(initial);
    open_journal(false);
  } catch (const Error& problem) {
    if (exists) {
      fs::rename(previous, path, error);
    } else if (fs::is_regular_file(path, error)) {
      fs::remove(path, error);
    }
    throw UsageError(fmt::format("{}; nothing was measured", problem.what()));
  }
  return exists ? fmt::format("{} was there already and is now {}", path_, previous.string()) : "";
}

std::optional<ResultFile::Interrupted> ResultFile::read_interrupted() const {
  std::error_code error;
  if (!on_disk() || !fs::exists(path_, error)) return std::nullopt;
  Interrupted interrupted;
  interrupted.result = read_result(path_);
  std::ifstream journal(journal_path());
  for (std::string line; std::getline(journal, line);) {
    if (journal.eof()) break;  // no newline behind it: cut in the middle of writing
    try {
      interrupted.journal.push_back(parse_json(line, journal_path()));
    } catch (const InputError& e) {  // a machine that lost power may leave anything at the end
      interrupted.problem = e.what();
      break;
    }
  }
  return interrupted;
}

void ResultFile::resume(const Result& result) {
  try {
    write(result);
    open_journal(false);
  } catch (const Error& problem) {
    throw UsageError(fmt::format("{}; nothing was measured", problem.what()));
  }
}

void ResultFile::open_journal(bool keep) {
  journal_ = ::open(journal_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (keep ? 0 : O_TRUNC), 0644);
  if (journal_ < 0) throw Error(fmt::format("{}: cannot be written: {}", journal_path(), std::strerror(errno)));
}

void ResultFile::append(const Json& answer) {
  if (!on_disk()) return;
  const std::string line = answer.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(journal_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw Error(
          fmt::format("{}: cannot be written: {}; what was measured until now is in {}; make room and go on with "
                      "--resume",
                      journal_path(), std::strerror(errno), path_));
    }
    done += static_cast<size_t>(n);
  }
}

void ResultFile::write(const Result& result) {
  write_result(result, path_);
  written_ = std::chrono::steady_clock::now();
}

void ResultFile::update(const Result& result) {
  if (on_disk() && std::chrono::steady_clock::now() - written_ >= kWriteInterval) write(result);
}

void ResultFile::finish(const Result& result) {
  write(result);
  if (!on_disk()) return;
  ::close(journal_);
  journal_ = -1;
  std::error_code error;
  fs::remove(journal_path(), error);
}

}  // namespace dlbench
