// Streams, events and graphs: queues of commands that run only when something waits for them.
//
// Why: a GPU runs behind the program; code that reads a result without waiting works by luck, or reads old data. Here
// it always reads old data, so a test sees it. Promises: commands of a stream run in order; the legacy stream and
// blocking streams wait for each other as CUDA says (Runtime API, "Stream synchronization behavior"); a stream that is
// being captured runs nothing; calls that are forbidden during a capture fail and invalidate it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace dlbench::cuda_emulation {

struct Command {
  std::string what;
  std::function<void()> run;
  uint64_t ticket = 0;  ///< order of submission, over all streams
};

/// One recording of an event: replaced by the next, kept by the commands that wait for it.
struct Recording {
  cudaStream_t stream = nullptr;
  uint64_t ticket = 0;
  bool done = false;
  std::chrono::steady_clock::time_point time;
};

}  // namespace dlbench::cuda_emulation

struct CUgraph_st {
  std::vector<dlbench::cuda_emulation::Command> commands;
};

struct CUgraphExec_st {
  std::vector<dlbench::cuda_emulation::Command> commands;
};

struct CUstream_st {
  bool blocking = true;  ///< waits for the legacy stream and the other way round
  std::deque<dlbench::cuda_emulation::Command> queue;
  std::unique_ptr<CUgraph_st> capture;
  cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
  bool capture_invalid = false;
};

struct CUevent_st {
  bool timed = true;
  std::shared_ptr<dlbench::cuda_emulation::Recording> recording;
};

namespace dlbench::cuda_emulation {

class Streams {
 public:
  static Streams& instance();

  /// Held by every call of the API.
  std::recursive_mutex mutex;

  /// nullptr for a handle that isn't a stream. 0 and cudaStreamLegacy are the legacy stream.
  CUstream_st* resolve(cudaStream_t handle);
  cudaStream_t create(bool blocking);
  void destroy(CUstream_st* stream);
  void add_event(cudaEvent_t event) { events_.insert(event); }
  void remove_event(cudaEvent_t event) { events_.erase(event); }
  bool is_event(cudaEvent_t event) const { return events_.count(event) > 0; }

  /// Appends to the stream's queue, or to its capture.
  void enqueue(CUstream_st* stream, std::string what, std::function<void()> run);
  void record(CUstream_st* stream, const std::shared_ptr<Recording>& recording);
  /// Runs the commands of `stream` up to `ticket`, and what they wait for.
  void run_until(CUstream_st* stream, uint64_t ticket);
  void run_all(CUstream_st* stream) { run_until(stream, UINT64_MAX); }
  void run_everything();
  /// One command, for polling loops; false when there was none.
  bool run_one(CUstream_st* stream);

  /// A call that may not be made during a capture that isn't relaxed: invalidates every such capture and says so.
  bool forbidden_by_capture();
  cudaStreamCaptureMode exchange_thread_mode(cudaStreamCaptureMode mode) { return std::exchange(thread_mode_, mode); }

  std::string running_command() const { return running_ ? running_->what : ""; }
  uint64_t commands_run() const { return commands_run_; }
  size_t queued() const;

 private:
  Streams();
  void run_front(CUstream_st* stream);

  CUstream_st legacy_;
  std::vector<std::unique_ptr<CUstream_st>> streams_;
  std::set<cudaEvent_t> events_;
  const Command* running_ = nullptr;
  cudaStreamCaptureMode thread_mode_ = cudaStreamCaptureModeGlobal;
  uint64_t next_ticket_ = 1, commands_run_ = 0;
};

}  // namespace dlbench::cuda_emulation
