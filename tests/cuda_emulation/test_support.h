// Helpers of the emulator's own tests: device buffers that free themselves, and a short way to launch.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "cuda_emulation/control.h"
#include "cuda_emulation/emulation.h"

#define ASSERT_CUDA(call) ASSERT_EQ(call, cudaSuccess) << ::dlbench::cuda_emulation::why()

namespace dlbench::cuda_emulation::test {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t count) : count_(count) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaMalloc(&pointer, count * sizeof(T)), cudaSuccess) << why();
    data_ = static_cast<T*>(pointer);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess) << why();
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  /// Waits for everything, then copies.
  std::vector<T> values() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    std::vector<T> out(count_);
    EXPECT_EQ(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess) << why();
    return out;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

class Stream {
 public:
  Stream() { EXPECT_EQ(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), cudaSuccess); }
  ~Stream() { cudaStreamDestroy(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  operator cudaStream_t() const { return handle_; }

 private:
  cudaStream_t handle_ = nullptr;
};

template <typename T>
struct Pinned {
  explicit Pinned(size_t count) {
    void* pointer = nullptr;
    EXPECT_EQ(cudaHostAlloc(&pointer, count * sizeof(T), cudaHostAllocDefault), cudaSuccess);
    data = static_cast<T*>(pointer);
  }
  ~Pinned() { cudaFreeHost(data); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  T* data = nullptr;
};

template <typename... Parameters>
void run(cudaStream_t stream, dim3 grid, dim3 block, const char* name, void (*kernel)(Parameters...),
         std::type_identity_t<Parameters>... arguments) {
  ASSERT_CUDA(launch_kernel(stream, grid, block, 0, name, kernel, arguments...));
}

}  // namespace dlbench::cuda_emulation::test
