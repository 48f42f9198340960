// The CUDA runtime's functions about streams, events, graphs and launches (CUDA Runtime API, "Stream Management",
// "Event Management", "Graph Management", "Execution Control").
#include <cuda_runtime_api.h>

#include <map>
#include <memory>

#include "cuda_emulation/emulation.h"
#include "cuda_emulation/emulator/api.h"
#include "cuda_emulation/emulator/block.h"
#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/symbols.h"

using namespace dlbench::cuda_emulation;

namespace {

Streams& streams() {
  return Streams::instance();
}

cudaError_t refuse_stream() {
  return refuse(cudaErrorInvalidResourceHandle, "the handle is no stream");
}
cudaError_t refuse_event() {
  return refuse(cudaErrorInvalidResourceHandle, "the handle is no event");
}

// A call that waits for `stream`: never possible while it is being captured itself, and forbidden while any other is
// unless in a relaxed mode.
cudaError_t check_wait(const char* function, CUstream_st* stream = nullptr) {
  if (stream && stream->capture) {
    stream->capture_invalid = true;
  } else if (!streams().forbidden_by_capture()) {
    return cudaSuccess;
  }
  return refuse(cudaErrorStreamCaptureUnsupported, fmt::format("{} waits, which a capture can't record", function));
}

// One sentence when the shape of a launch is beyond the device (Programming Guide, "Technical Specifications").
std::string shape_problem(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || threads == 0) return "a grid or block of no threads";
  if (threads > kMaxThreadsPerBlock || block.z > 64) return fmt::format("a block of {} threads", threads);
  if (grid.x > INT32_MAX || grid.y > UINT16_MAX || grid.z > UINT16_MAX) {
    return fmt::format("a grid of ({},{},{}) blocks", grid.x, grid.y, grid.z);
  }
  if (shared_bytes > kMaxSharedBytes) return fmt::format("{} bytes of shared memory", shared_bytes);
  return "";
}

}  // namespace

namespace dlbench::cuda_emulation {

cudaError_t launch(cudaStream_t handle, dim3 grid, dim3 block, size_t shared_bytes, const char* name,
                   std::function<void()> body) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (const std::string problem = shape_problem(grid, block, shared_bytes); !problem.empty()) {
    return refuse(cudaErrorInvalidConfiguration, fmt::format("kernel {} was launched with {}", name, problem));
  }
  auto what = std::make_shared<Launch>(Launch{name, grid, block, shared_bytes, std::move(body)});
  streams().enqueue(stream, fmt::format("kernel {}", name), [what] { BlockRunner::instance().run(*what); });
  return cudaSuccess;
}

const char* kernel_name(const void* kernel, const char* otherwise) {
  static auto* names = new std::map<const void*, std::string>;
  const Call call;
  const auto [entry, is_new] = names->try_emplace(kernel, otherwise);
  if (const std::string name = is_new ? function_name(kernel) : ""; !name.empty()) entry->second = name;
  return entry->second.c_str();
}

void refuse_host_pointer(const char* name, int argument, const void* pointer) {
  fail(fmt::format(
      "kernel {} was launched with host memory ({}) as its argument {}; kernels reach device and pinned memory only",
      name, pointer, argument));
}

}  // namespace dlbench::cuda_emulation

// Streams ---------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  const Call call;
  *stream = streams().create((flags & cudaStreamNonBlocking) == 0);
  return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream || !handle) return refuse_stream();
  streams().destroy(stream);
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (const cudaError_t error = check_wait("cudaStreamSynchronize", stream)) return error;
  streams().run_all(stream);
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  const Call call;
  if (const cudaError_t error = check_wait("cudaDeviceSynchronize")) return error;
  streams().run_everything();
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (const cudaError_t error = check_wait("cudaStreamQuery", stream)) return error;
  return streams().run_one(stream) ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (!streams().is_event(event)) return refuse_event();
  const std::shared_ptr<Recording> recording = event->recording;
  if (!recording) return cudaSuccess;
  if (stream->capture) return refuse(cudaErrorNotSupported, "waiting for an event in a capture isn't emulated");
  streams().enqueue(stream, "a wait for an event", [recording] {
    if (!recording->done) streams().run_until(recording->stream, recording->ticket);
  });
  return cudaSuccess;
}

// Events ----------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
  const Call call;
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  streams().add_event(*event);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Call call;
  if (!streams().is_event(event)) return refuse_event();
  streams().remove_event(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (!streams().is_event(event)) return refuse_event();
  if (stream->capture) return refuse(cudaErrorNotSupported, "recording an event in a capture isn't emulated");
  event->recording = std::make_shared<Recording>();
  streams().record(stream, event->recording);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Call call;
  if (!streams().is_event(event)) return refuse_event();
  if (!event->recording || event->recording->done) return cudaSuccess;
  streams().run_one(event->recording->stream);
  return cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Call call;
  if (!streams().is_event(event)) return refuse_event();
  if (!event->recording || event->recording->done) return cudaSuccess;
  if (const cudaError_t error = check_wait("cudaEventSynchronize")) return error;
  streams().run_until(event->recording->stream, event->recording->ticket);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Call call;
  if (!streams().is_event(start) || !streams().is_event(end)) return refuse_event();
  if (!start->timed || !end->timed || !start->recording || !end->recording) {
    return refuse(cudaErrorInvalidResourceHandle, "both events must keep the time and have been recorded");
  }
  if (!start->recording->done || !end->recording->done) {
    return refuse(cudaErrorNotReady, "the time between two events was asked for before both were waited for");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->recording->time - start->recording->time).count();
  return cudaSuccess;
}

// Graphs ----------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (stream == streams().resolve(nullptr)) {
    return refuse(cudaErrorStreamCaptureUnsupported, "the legacy stream can't be captured");
  }
  if (stream->capture) return refuse(cudaErrorIllegalState, "the stream is being captured already");
  stream->capture = std::make_unique<CUgraph_st>();
  stream->capture_mode = mode;
  stream->capture_invalid = false;
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  const Call call;
  *graph = nullptr;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (!stream->capture) return refuse(cudaErrorIllegalState, "the stream isn't being captured");
  std::unique_ptr<CUgraph_st> captured = std::move(stream->capture);
  if (stream->capture_invalid) {
    return refuse(cudaErrorStreamCaptureInvalidated, "a call during the capture wasn't permitted");
  }
  *graph = captured.release();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  *status = !stream->capture          ? cudaStreamCaptureStatusNone
            : stream->capture_invalid ? cudaStreamCaptureStatusInvalidated
                                      : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const Call call;
  *mode = streams().exchange_thread_mode(*mode);
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  const Call call;
  if (!graph) return refuse(cudaErrorInvalidValue, "the graph is null");
  *executable = new CUgraphExec_st{graph->commands};
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t handle) {
  const Call call;
  if (!executable || !streams().resolve(handle)) return refuse(cudaErrorInvalidValue, "no graph or no stream");
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  const Call call;
  CUstream_st* stream = streams().resolve(handle);
  if (!stream) return refuse_stream();
  if (!executable) return refuse(cudaErrorInvalidValue, "the graph is null");
  for (const Command& command : executable->commands) streams().enqueue(stream, command.what, command.run);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Call call;
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Call call;
  delete graph;
  return cudaSuccess;
}
