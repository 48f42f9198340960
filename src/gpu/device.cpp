// GpuDevice; see device.h. Twin: src/cpu/device.cpp.
#include "gpu/device.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/base/error.h"
#include "gpu/absence.h"
#include "gpu/check.h"

namespace dlbench::gpu {

namespace {

constexpr size_t kAlignment = 256;  // what cudaMalloc gives (CUDA C++ Programming Guide, "Device Memory Accesses")
constexpr size_t kScratchBytes = 1 << 20;  // partial sums: 131072 doubles

/// Workspace of cuBLAS and cuBLASLt: the library's own default on compute capability 9.0 is 32 MiB (cuBLAS
/// documentation, cublasSetWorkspace); it is generous on older devices, where 8 MiB hold every split-k algorithm.
size_t workspace_bytes(int compute_capability) {
  return size_t{compute_capability >= 90 ? 32u : 8u} << 20;
}

class CudaGraph final : public Graph {
 public:
  CudaGraph(cudaGraph_t graph, cudaStream_t stream) : stream_(stream) {
    const cudaError_t error = cudaGraphInstantiate(&executable_, graph, 0);
    DLB_CUDA_LOG(cudaGraphDestroy(graph));
    if (error != cudaSuccess) throw_cuda_error(error, "cudaGraphInstantiate", __FILE__, __LINE__);
    const cudaError_t upload_error = cudaGraphUpload(executable_, stream_);
    if (upload_error != cudaSuccess) {
      DLB_CUDA_LOG(cudaGraphExecDestroy(executable_));
      throw_cuda_error(upload_error, "cudaGraphUpload", __FILE__, __LINE__);
    }
  }
  ~CudaGraph() override { DLB_CUDA_LOG(cudaGraphExecDestroy(executable_)); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void replay() override { DLB_CUDA(cudaGraphLaunch(executable_, stream_)); }

 private:
  cudaStream_t stream_;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace

Stream::Stream() {
  DLB_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}
Stream::~Stream() {
  DLB_CUDA_LOG(cudaStreamDestroy(stream_));
}

Event::Event(Kind kind) {
  DLB_CUDA(cudaEventCreateWithFlags(&event_, kind == Kind::timed ? cudaEventDefault : cudaEventDisableTiming));
}
Event::~Event() {
  DLB_CUDA_LOG(cudaEventDestroy(event_));
}

DeviceInfo describe_device(int index, const cudaDeviceProp& properties) {
  DeviceInfo info;
  info.id = fmt::format("gpu:{}", index);
  info.kind = "gpu";
  info.side = Side::gpu;
  info.index = index;
  info.name = properties.name;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.threads = properties.multiProcessorCount;
#if defined(DLB_CUDA_EMULATION)
  info.emulated = true;
#endif
  info.facts["compute_capability"] = fmt::format("{}.{}", properties.major, properties.minor);
  info.last_level_cache_bytes = properties.l2CacheSize;
  info.facts["l2_bytes"] = fmt::format("{}", properties.l2CacheSize);
  return info;
}

GpuDevice::GpuDevice(int index) : index_(index) {
  make_current();
  stream_ = std::make_unique<Stream>();
  timer_start_ = std::make_unique<Event>(Event::Kind::timed);
  timer_stop_ = std::make_unique<Event>(Event::Kind::timed);
  upload_stream_ = std::make_unique<Stream>();
  for (auto* events : {&uploaded_, &released_}) {
    for (std::unique_ptr<Event>& event : *events) event = std::make_unique<Event>(Event::Kind::order_only);
  }
  const BlasLocation location = locate_blas();
  if (!location.found) throw DeviceAbsentError(fmt::format("gpu:{}: {} isn't found", index_, location.problem));
  blas_library_ = BlasLibrary::open(location);
  try {
    make_ops();
  } catch (...) {
    deallocate(workspace_);
    deallocate(scratch_);
    throw;
  }
  const size_t version = blas_library_->functions().cublasLtGetVersion();
  info_.facts["cublaslt_version"] = fmt::format("{}", version);
  info_.facts["cublas_path"] = location.cublas;
  info_.facts["cublas_workspace_bytes"] = fmt::format("{}", workspace_bytes(hardware_.compute_capability));
  // Variables that change the arithmetic of cuBLAS behind our back are part of the record.
  for (const char* variable :
       {"NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION", "CUBLAS_EMULATION_STRATEGY"}) {
    if (const char* value = std::getenv(variable)) info_.facts[fmt::format("environment_{}", variable)] = value;
  }
}

GpuDevice::~GpuDevice() {
  if (upload_stream_) DLB_CUDA_LOG(cudaStreamSynchronize(upload_stream_->get()));
  if (stream_) DLB_CUDA_LOG(cudaStreamSynchronize(stream_->get()));
  ops_.reset();
  blas_.reset();
  deallocate(scratch_);
  deallocate(workspace_);
}

void GpuDevice::make_current() {
  DLB_CUDA(cudaSetDevice(index_));
  cudaDeviceProp properties = {};
  DLB_CUDA(cudaGetDeviceProperties(&properties, index_));
  info_ = describe_device(index_, properties);
  hardware_ = {properties.major * 10 + properties.minor, properties.multiProcessorCount, properties.l2CacheSize};

  int driver = 0, runtime = 0;
  DLB_CUDA(cudaDriverGetVersion(&driver));
  DLB_CUDA(cudaRuntimeGetVersion(&runtime));
  info_.facts["cuda_driver_api_version"] = cuda_version_text(driver);
  info_.facts["cuda_runtime_version"] = cuda_version_text(runtime);
  char bus_id[32] = {};
  DLB_CUDA(cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index_));
  info_.facts["pci_bus_id"] = bus_id;
  nvml_ = Nvml::open(bus_id);
  if (nvml_) info_.facts.merge(nvml_->facts());
}

void GpuDevice::make_ops() {
  const size_t bytes = workspace_bytes(hardware_.compute_capability);
  workspace_ = allocate(bytes);
  scratch_ = allocate(kScratchBytes);
  blas_ = std::make_unique<Blas>(blas_library_->functions(), stream_->get(), workspace_, bytes);
  ops_ = std::make_unique<GpuOps>(stream_->get(), *blas_, Scratch{scratch_, kScratchBytes}, hardware_);
}

void* GpuDevice::allocate(size_t bytes) {
  void* pointer = nullptr;
  const cudaError_t error = cudaMalloc(&pointer, bytes > 0 ? bytes : kAlignment);
  if (error == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    throw OutOfMemoryError(fmt::format("{}: {} bytes of device memory were asked for, {} of {} are free", info_.id,
                                       bytes, free_memory(), info_.memory_bytes));
  }
  DLB_CUDA(error);
  ++allocation_count_;
  return pointer;
}

void GpuDevice::deallocate(void* pointer) noexcept {
  if (pointer != nullptr) DLB_CUDA_LOG(cudaFree(pointer));
}

void* GpuDevice::allocate_host(size_t bytes, HostMemory kind) {
  const size_t at_least = bytes > 0 ? bytes : 1;
  void* pointer = nullptr;
  switch (kind) {
    case HostMemory::pinned: {
      const cudaError_t error = cudaHostAlloc(&pointer, at_least, cudaHostAllocDefault);
      if (error == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        throw OutOfMemoryError(fmt::format("{}: {} bytes of pinned host memory can't be allocated", info_.id, bytes));
      }
      DLB_CUDA(error);
      break;
    }
    case HostMemory::pageable:
      pointer = std::aligned_alloc(kAlignment, (at_least + kAlignment - 1) / kAlignment * kAlignment);
      if (pointer == nullptr) {
        throw OutOfMemoryError(fmt::format("{}: {} bytes of host memory can't be allocated", info_.id, bytes));
      }
      break;
  }
  ++allocation_count_;
  return pointer;
}

void GpuDevice::deallocate_host(void* pointer, HostMemory kind) noexcept {
  if (pointer == nullptr) return;
  switch (kind) {
    case HostMemory::pinned:
      DLB_CUDA_LOG(cudaFreeHost(pointer));
      break;
    case HostMemory::pageable:
      std::free(pointer);
      break;
  }
}

int64_t GpuDevice::free_memory() const {
  size_t free = 0, total = 0;
  DLB_CUDA(cudaMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

void GpuDevice::copy_to_device(void* device, const void* host, size_t bytes) {
  if (bytes > 0) DLB_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_->get()));
}

void GpuDevice::copy_to_host(void* host, const void* device, size_t bytes) {
  if (bytes > 0) DLB_CUDA(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_->get()));
}

void GpuDevice::copy_on_device(void* to, const void* from, size_t bytes) {
  if (bytes > 0) DLB_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_->get()));
}

void GpuDevice::set_bytes(void* device, uint8_t value, size_t bytes) {
  if (bytes > 0) DLB_CUDA(cudaMemsetAsync(device, value, bytes, stream_->get()));
}

// Waiting for an event that was never recorded waits for nothing (CUDA Runtime API, cudaStreamWaitEvent): the first
// upload into a slot needs no release before it.
void GpuDevice::start_upload(int slot, void* device, const void* host, size_t bytes) {
  const cudaEvent_t released = at_slot(released_, slot), uploaded = at_slot(uploaded_, slot);
  if (bytes == 0) return;
  uploading_ = true;
  DLB_CUDA(cudaStreamWaitEvent(upload_stream_->get(), released, 0));
  DLB_CUDA(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, upload_stream_->get()));
  DLB_CUDA(cudaEventRecord(uploaded, upload_stream_->get()));
}

void GpuDevice::finish_upload(int slot) {
  DLB_CUDA(cudaStreamWaitEvent(stream_->get(), at_slot(uploaded_, slot), 0));
}

void GpuDevice::release_upload(int slot) {
  DLB_CUDA(cudaEventRecord(at_slot(released_, slot), stream_->get()));
}

void GpuDevice::synchronize() {
  DLB_CUDA(cudaStreamSynchronize(stream_->get()));
  if (!uploading_) return;  // most synchronisations are inside a timing: one call then
  DLB_CUDA(cudaStreamSynchronize(upload_stream_->get()));
  uploading_ = false;
}

std::unique_ptr<Graph> GpuDevice::capture(const std::function<void(Ops&)>& body) {
  DLB_CUDA(cudaStreamBeginCapture(stream_->get(), cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    body(*ops_);
  } catch (...) {
    // Leave capture mode whatever happened, or every later call on the stream fails.
    if (cudaStreamEndCapture(stream_->get(), &graph) == cudaSuccess && graph != nullptr) {
      DLB_CUDA_LOG(cudaGraphDestroy(graph));
    }
    static_cast<void>(cudaGetLastError());
    throw;
  }
  DLB_CUDA(cudaStreamEndCapture(stream_->get(), &graph));
  return std::make_unique<CudaGraph>(graph, stream_->get());
}

void GpuDevice::start_device_timer() {
  DLB_CUDA(cudaEventRecord(timer_start_->get(), stream_->get()));
}

std::optional<double> GpuDevice::stop_device_timer_seconds() {
  DLB_CUDA(cudaEventRecord(timer_stop_->get(), stream_->get()));
  DLB_CUDA(cudaEventSynchronize(timer_stop_->get()));
  float milliseconds = 0;
  DLB_CUDA(cudaEventElapsedTime(&milliseconds, timer_start_->get(), timer_stop_->get()));
  return static_cast<double>(milliseconds) * 1e-3;
}

Telemetry GpuDevice::telemetry() {
  return nvml_ ? nvml_->telemetry() : Telemetry{};
}

}  // namespace dlbench::gpu
