// Each fault that the emulator exists to catch, planted, and seen caught with the sentence that a person would get.
//
// A death here is an abort or a segmentation fault of the child process; under AddressSanitizer its own report comes
// with the sentence.
#include <gmock/gmock.h>

#include "cuda_emulation/test_support.h"

namespace dlbench::cuda_emulation::test {
namespace {

class PlantedFault : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

__global__ void write_at(float* x, int at) {
  x[static_cast<int>(threadIdx.x) + at] = 1.0f;
}
__global__ void read_at(const float* x, int at, float* out) {
  *out = x[at];
}

__global__ void use_freed(float** x) {
  **x = 1.0f;
}

void run_and_wait(void (*kernel)(float*, int), float* x, int at, unsigned threads) {
  run(nullptr, 1, threads, "write_at", kernel, x, at);
  cudaDeviceSynchronize();
}

TEST_F(PlantedFault, AKernelThatWritesOneElementPastTheEnd) {
  DeviceArray<float> x(33);  // 132 bytes: the element past the end lies in the slack of the page
  EXPECT_DEATH(run_and_wait(write_at, x.get(), 0, 34),
               "write_at.* wrote [1-4] bytes past the end of device allocation .*132 bytes");
}

TEST_F(PlantedFault, AKernelThatWritesBeyondThePage) {
  DeviceArray<float> x(64);  // 256 bytes: what follows is the guard page
  EXPECT_DEATH(run_and_wait(write_at, x.get(), 0, 65),
               "write_at.*block \\(0,0,0\\), thread \\(64,0,0\\) wrote 1 bytes past the end of device allocation");
}

TEST_F(PlantedFault, AKernelThatWritesBeforeTheStart) {
  DeviceArray<float> x(33);
  EXPECT_DEATH(run_and_wait(write_at, x.get(), -1, 1), "write_at.* 4 bytes before the start of device allocation");
}

TEST_F(PlantedFault, AKernelThatReadsPastTheEnd) {
  DeviceArray<float> x(64), out(1);
  EXPECT_DEATH(
      {
        run(nullptr, 1, 1, "read_at", read_at, x.get(), 64, out.get());
        cudaDeviceSynchronize();
      },
      "read_at.*thread \\(0,0,0\\) read 1 bytes past the end of device allocation");
}

TEST_F(PlantedFault, AKernelThatUsesFreedMemory) {
  EXPECT_DEATH(
      {
        float* stale = DeviceArray<float>(4).get();
        DeviceArray<float*> holder(std::vector<float*>{stale});
        run(nullptr, 1, 1, "use_freed", use_freed, holder.get());
        cudaDeviceSynchronize();
      },
      "use_freed.*wrote device allocation .*which has been freed");
}

TEST_F(PlantedFault, AHostDereferenceOfDeviceMemory) {
  DeviceArray<float> x(std::vector<float>{1, 2, 3});
  volatile float* pointer = x.get();
  EXPECT_DEATH(pointer[1] = 5.0f, "the host wrote byte 4 of device allocation .*reached by copies only");
  EXPECT_DEATH({ [[maybe_unused]] float value = pointer[2]; }, "the host read byte 8 of device allocation");
}

TEST_F(PlantedFault, AKernelThatIsGivenHostMemory) {
  float host[4] = {};
  EXPECT_DEATH(run(nullptr, 1, 1, "write_at", write_at, host, 0), "write_at.* host memory .*as its argument 0");
}

TEST_F(PlantedFault, AMissingSynchronisationReadsOldData) {
  DeviceArray<float> x(std::vector<float>{1});
  Pinned<float> host(1);
  *host.data = -1;
  Stream stream;
  run(stream, 1, 1, "write_at", write_at, x.get(), 0);
  ASSERT_CUDA(cudaMemcpyAsync(host.data, x.get(), sizeof(float), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(*host.data, -1.0f) << "a program that forgets to wait must see old data";
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(*host.data, 1.0f);
}

TEST_F(PlantedFault, AMissingWaitBetweenStreamsReadsOldData) {
  DeviceArray<float> x(std::vector<float>{0});
  Pinned<float> host(1);
  Stream producer, consumer;
  run(producer, 1, 1, "write_at", write_at, x.get(), 0);
  ASSERT_CUDA(cudaMemcpyAsync(host.data, x.get(), sizeof(float), cudaMemcpyDeviceToHost, consumer));
  ASSERT_CUDA(cudaStreamSynchronize(consumer));
  EXPECT_EQ(*host.data, 0.0f);
  ASSERT_CUDA(cudaStreamSynchronize(producer));
}

// Barriers ----------------------------------------------------------------------------------------------------------

__global__ void neighbour(const float* x, float* out, int n, bool wait) {
  DLB_SHARED(float, tile, 64);
  const int i = static_cast<int>(threadIdx.x);
  tile[i] = x[i];
  if (wait) __syncthreads();
  out[i] = tile[(i + 1) % n];
}

TEST_F(PlantedFault, AMissingBarrierReadsSharedMemoryThatNoOneWroteYet) {
  DeviceArray<float> x(std::vector<float>(64, 3.0f)), out(64);
  run(nullptr, 1, 64, "neighbour", neighbour, x.get(), out.get(), 64, true);
  EXPECT_EQ(out.values(), std::vector<float>(64, 3.0f));
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::reverse}) {
    set_thread_order(order);
    run(nullptr, 1, 64, "neighbour", neighbour, x.get(), out.get(), 64, false);
    EXPECT_TRUE(std::isnan(out.values()[order == ThreadOrder::forward ? 0 : 63]));
  }
  set_thread_order(ThreadOrder::forward);
}

__global__ void early_exit(int n) {
  if (static_cast<int>(threadIdx.x) >= n) return;
  __syncthreads();
}

__global__ void two_barriers() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(PlantedFault, ABarrierThatSomeThreadsNeverReach) {
  EXPECT_DEATH(
      {
        run(nullptr, 1, 64, "early_exit", early_exit, 40);
        cudaDeviceSynchronize();
      },
      "early_exit.*thread \\(0,0,0\\) waits at the barrier planted_fault_test.cpp:[0-9]+ that thread \\(40,0,0\\) "
      "never reached");
}

TEST_F(PlantedFault, ThreadsAtDifferentBarriers) {
  EXPECT_DEATH(
      {
        run(nullptr, 1, 64, "two_barriers", two_barriers);
        cudaDeviceSynchronize();
      },
      "two_barriers.*while thread \\(32,0,0\\) waits at planted_fault_test.cpp.*barrier divergence");
}

__global__ void half_a_warp(int* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0xFFFFFFFFu, 1, 1);
}

__global__ void stranger(int* out) {
  out[threadIdx.x] = 0;
  if (threadIdx.x < 16) {
    out[threadIdx.x] = __shfl_xor_sync(0x0000FFFFu, 1, 16);
  }
}

TEST_F(PlantedFault, AShuffleWhoseMaskNamesThreadsThatAreNotThere) {
  DeviceArray<int> out(32);
  EXPECT_DEATH(
      {
        run(nullptr, 1, 32, "half_a_warp", half_a_warp, out.get());
        cudaDeviceSynchronize();
      },
      "half_a_warp.*for lane 16 of mask 0xffffffff, but that thread has ended");
  EXPECT_DEATH(
      {
        run(nullptr, 1, 32, "stranger", stranger, out.get());
        cudaDeviceSynchronize();
      },
      "stranger.*reads lane 16 at .*isn't in mask 0x0000ffff");
}

__global__ void shared_overflow(int n) {
  DLB_SHARED(int, tile, 32);
  for (int i = 0; i < n; ++i) tile[i] = i;
}

TEST_F(PlantedFault, ASharedArrayWrittenPastItsEnd) {
  EXPECT_DEATH(
      {
        run(nullptr, 1, 1, "shared_overflow", shared_overflow, 33);
        cudaDeviceSynchronize();
      },
      "shared_overflow.*past the end of the shared array `tile`|use-after-poison");
}

}  // namespace
}  // namespace dlbench::cuda_emulation::test
