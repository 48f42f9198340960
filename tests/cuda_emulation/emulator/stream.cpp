#include "cuda_emulation/emulator/stream.h"

#include <algorithm>

#include "cuda_emulation/emulator/memory.h"

namespace dlbench::cuda_emulation {
namespace {

struct OpenMemory {
  OpenMemory() { DeviceMemory::instance().open(); }
  ~OpenMemory() { DeviceMemory::instance().close(); }
  OpenMemory(const OpenMemory&) = delete;
  OpenMemory& operator=(const OpenMemory&) = delete;
};

}  // namespace

Streams& Streams::instance() {
  static Streams* streams = new Streams;  // never destroyed, like the device memory
  return *streams;
}

Streams::Streams() {
  DeviceMemory::instance();
}

CUstream_st* Streams::resolve(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &legacy_;
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto& s) { return s.get() == handle; });
  return found == streams_.end() ? nullptr : found->get();
}

cudaStream_t Streams::create(bool blocking) {
  streams_.push_back(std::make_unique<CUstream_st>());
  streams_.back()->blocking = blocking;
  return streams_.back().get();
}

void Streams::destroy(CUstream_st* stream) {
  run_all(stream);  // "the resources are released once the device has completed all work in the stream"
  std::erase_if(streams_, [&](const auto& s) { return s.get() == stream; });
}

void Streams::enqueue(CUstream_st* stream, std::string what, std::function<void()> run) {
  Command command{std::move(what), std::move(run), next_ticket_++};
  if (stream->capture) {
    stream->capture->commands.push_back(std::move(command));
  } else {
    stream->queue.push_back(std::move(command));
  }
}

void Streams::record(CUstream_st* stream, const std::shared_ptr<Recording>& recording) {
  recording->stream = stream;
  recording->ticket = next_ticket_;
  enqueue(stream, "an event", [recording] {
    recording->time = std::chrono::steady_clock::now();
    recording->done = true;
  });
}

void Streams::run_until(CUstream_st* stream, uint64_t ticket) {
  const OpenMemory open;  // once for all of it: protecting pages costs time
  while (!stream->queue.empty() && stream->queue.front().ticket <= ticket) run_front(stream);
}

bool Streams::run_one(CUstream_st* stream) {
  if (stream->queue.empty()) return false;
  const OpenMemory open;
  run_front(stream);
  return true;
}

void Streams::run_everything() {
  const OpenMemory open;
  run_all(&legacy_);
  for (const auto& stream : streams_) run_all(stream.get());
}

void Streams::run_front(CUstream_st* stream) {
  const Command command = std::move(stream->queue.front());
  stream->queue.pop_front();
  if (stream == &legacy_) {
    for (const auto& other : streams_) {
      if (other->blocking) run_until(other.get(), command.ticket);
    }
  } else if (stream->blocking) {
    run_until(&legacy_, command.ticket);
  }
  const Command* outer = std::exchange(running_, &command);
  command.run();
  DeviceMemory::instance().check_slack(command.what);
  running_ = outer;
  ++commands_run_;
}

bool Streams::forbidden_by_capture() {
  if (thread_mode_ == cudaStreamCaptureModeRelaxed) return false;
  bool forbidden = false;
  for (const auto& stream : streams_) {
    if (!stream->capture || stream->capture_mode == cudaStreamCaptureModeRelaxed) continue;
    stream->capture_invalid = true;
    forbidden = true;
  }
  return forbidden;
}

size_t Streams::queued() const {
  size_t count = legacy_.queue.size();
  for (const auto& stream : streams_) count += stream->queue.size();
  return count;
}

}  // namespace dlbench::cuda_emulation
