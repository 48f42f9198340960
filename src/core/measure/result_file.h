// The result file while it grows: moved out of the way, rewritten, journaled, resumed.
//
// Promises: an unwritable place is refused before anything is measured; whatever happens, the file on disk is either
// the last complete result or the one before it, and each finished point is in the file or in FILE.journal.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "core/result/result.h"

namespace dlbench {

/// Refuses a file that can't be written at the end, before hours are spent on what it should hold: no directory, a
/// directory, no permission. @param option as the user wrote it, "--gbench-out" @throws UsageError
void require_writable(const std::string& option, const std::string& path);
/// Whether two paths name one file, through links and `..`; also of files that aren't there yet.
bool same_file(const std::string& a, const std::string& b);

class ResultFile {
 public:
  /// @param path "-": nothing is on disk until `finish` writes to standard output.
  explicit ResultFile(std::string path) : path_(std::move(path)) {}
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  /// Moves an existing file to FILE.previous and writes `initial`. Returns a note on what was moved, "" for nothing.
  /// @throws UsageError
  std::string start(const Result& initial);
  /// The interrupted result and the answers that were journaled after it was written; empty when there is no file.
  /// @throws InputError
  struct Interrupted {
    Result result;
    std::vector<Json> journal;
    std::string problem;  ///< why the journal ends early; "" when all of it could be read
  };
  std::optional<Interrupted> read_interrupted() const;
  /// Goes on with the file that is there.
  void resume(const Result& result);

  void append(const Json& answer);
  /// Rewrites the file unless that was done within the last second.
  void update(const Result& result);
  /// Writes the file and removes the journal.
  void finish(const Result& result);

 private:
  bool on_disk() const { return path_ != "-"; }
  std::string journal_path() const { return path_ + ".journal"; }
  void open_journal(bool keep);
  void write(const Result& result);

  std::string path_;
  int journal_ = -1;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace dlbench
