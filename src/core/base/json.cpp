#include "core/base/json.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "core/base/error.h"

namespace dlbench {

namespace {

struct Place {
  size_t line = 1, column = 1;
};

Place place_of(std::string_view text, size_t byte) {
  Place place;
  for (size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

/// nlohmann's message without its own prefix "[json.exception.parse_error.101] parse error at line 1, column 2: ".
std::string reason_of(const std::string& what) {
  const size_t colon = what.find(": ");
  return colon == std::string::npos ? what : what.substr(colon + 2);
}

/// Nothing that dlbench reads or writes comes near it, and what walks a document (schema checks, printing) does so by
/// recursion.
constexpr int kMaxDepth = 200;

/// Finds keys that occur twice in one object while parsing, which nlohmann resolves silently, and stops at documents
/// that are nested too deeply.
class ParseWatch {
 public:
  explicit ParseWatch(const std::string& origin) : origin_(origin) {}
  bool operator()(int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) {
      throw InputError(fmt::format("{}: its lists and objects are nested more than {} deep; is this the right file?",
                                   origin_, kMaxDepth));
    }
    if (event == Json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == Json::parse_event_t::key) {
      const std::string key = parsed.get<std::string>();
      if (!keys_.back().insert(key).second && duplicate_.empty()) duplicate_ = key;
    }
    return true;
  }
  const std::string& duplicate() const { return duplicate_; }

 private:
  const std::string& origin_;
  std::vector<std::set<std::string>> keys_;
  std::string duplicate_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& origin, JsonComments comments) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw InputError(fmt::format("{}: the file is empty; expected a JSON object", origin));
  }
  ParseWatch watch(origin);
  Json json;
  try {
    json = Json::parse(
        text, [&watch](int d, Json::parse_event_t e, Json& p) { return watch(d, e, p); }, true,
        comments == JsonComments::kAllow);
  } catch (const Json::parse_error& e) {
    const Place place = place_of(text, e.byte);
    const bool cut = e.byte >= text.size();
    throw InputError(fmt::format("{}:{}:{}: {}: {}", origin, place.line, place.column,
                                 cut ? "the JSON ends too early (is the file cut short?)" : "this is not JSON",
                                 reason_of(e.what())));
  } catch (const Json::exception& e) {
    throw InputError(fmt::format("{}: this is not JSON: {}", origin, reason_of(e.what())));
  }
  if (!watch.duplicate().empty()) {
    throw InputError(
        fmt::format("{}: the key \"{}\" occurs twice in one object; keep one of them", origin, watch.duplicate()));
  }
  return json;
}

Json read_json_file(const std::string& path, JsonComments comments) {
  if (path == "-") {
    const std::string text{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    return parse_json(text, "standard input", comments);
  }
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec))
    throw InputError(fmt::format("{}: is a directory; name a JSON file", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return parse_json(text.str(), path, comments);
}

namespace {
void require_finite(const Json& value, std::string& pointer) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw Error(
        fmt::format("the number at {} is not finite and can't be written as JSON", pointer.empty() ? "/" : pointer));
  }
  const size_t length = pointer.size();
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      pointer += "/" + key;
      require_finite(member, pointer);
      pointer.resize(length);
    }
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) {
      pointer += "/" + std::to_string(i);
      require_finite(value[i], pointer);
      pointer.resize(length);
    }
  }
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};
}  // namespace

std::string dump_json(const Json& value, int indent) {
  std::string pointer;
  require_finite(value, pointer);
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

namespace {
/// False, with errno, when not all of it could be written.
bool write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}
}  // namespace

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  namespace fs = std::filesystem;
  const auto fail = [&path](const char* what, const char* consequence = "; nothing was changed there") {
    const std::string reason = std::strerror(errno);
    throw Error(fmt::format("{}: {}: {}{}", path.string(), what, reason, consequence));
  };
  std::error_code ignored;
  const fs::file_status there = fs::status(path, ignored);
  if (fs::exists(there) && !fs::is_regular_file(there) && !fs::is_directory(there)) {
    // A device or a pipe is written to; renaming a file over /dev/null would take it away from the whole system.
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.get() < 0) fail("cannot be written");
    if (!write_all(file.get(), content)) fail("cannot be written", "");
    return;
  }
  // A symbolic link stays one: the file that it names is replaced.
  fs::path target = path;
  if (fs::is_symlink(fs::symlink_status(path, ignored)) && fs::exists(there)) target = fs::canonical(path, ignored);
  if (target.empty()) target = path;
  const fs::path temporary = target.string() + fmt::format(".{}.tmp", ::getpid());
  try {
    const FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) fail("cannot be written");
    if (!write_all(file.get(), content)) fail("cannot be written");
    if (::fsync(file.get()) != 0 && errno != EINVAL) fail("cannot be written");
    if (::rename(temporary.c_str(), target.c_str()) != 0) fail("cannot be replaced");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t best_distance = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    std::vector<size_t> row(candidate.size() + 1);
    for (size_t j = 0; j <= candidate.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        const size_t substituted = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace dlbench
