// Memory, streams, events and graphs of the emulated runtime.
#include <gmock/gmock.h>

#include <chrono>
#include <cstring>

#include "cuda_emulation/test_support.h"

namespace dlbench::cuda_emulation::test {
namespace {

using testing::HasSubstr;

__global__ void add(int* x, int value) {
  *x += value;
}

TEST(Memory, AllocationsAreAlignedCountedAndReturned) {
  size_t free_before = 0, free_after = 0, total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&free_before, &total));
  void* pointer = nullptr;
  for (const size_t bytes : {1u, 255u, 256u, 4096u, 100000u}) {
    ASSERT_CUDA(cudaMalloc(&pointer, bytes));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer) % 256, 0u);
    ASSERT_CUDA(cudaMemGetInfo(&free_after, &total));
    EXPECT_LE(free_after + bytes, free_before);
    ASSERT_CUDA(cudaFree(pointer));
  }
  ASSERT_CUDA(cudaMemGetInfo(&free_after, &total));
  EXPECT_EQ(free_after, free_before);
}

TEST(Memory, MoreThanTheDeviceHasIsOutOfMemory) {
  size_t free_bytes = 0, total = 0;
  ASSERT_CUDA(cudaMemGetInfo(&free_bytes, &total));
  set_device_memory_bytes(total - free_bytes + 10000);
  void* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 20000), cudaErrorMemoryAllocation);
  EXPECT_EQ(pointer, nullptr);
  EXPECT_THAT(why(), HasSubstr("20000 bytes asked for"));
  EXPECT_EQ(cudaMalloc(&pointer, SIZE_MAX - 5), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaMalloc(&pointer, 5000), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
  EXPECT_EQ(cudaFree(pointer), cudaErrorInvalidValue);  // twice
  set_device_memory_bytes(total);
}

TEST(Memory, FreshMemoryHoldsNan) {
  DeviceArray<float> x(3);
  for (const float value : x.values()) EXPECT_TRUE(std::isnan(value));
}

TEST(Memory, ACopyMustSayTheRightDirectionAndStayInside) {
  DeviceArray<int> x(4);
  int host[5] = {};
  EXPECT_EQ(cudaMemcpy(x.get(), host, sizeof(int), cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.get(), host, sizeof host, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_THAT(why(), HasSubstr("20 bytes from byte 0 of device allocation"));
  EXPECT_EQ(cudaMemset(x.get() + 1, 0, 16), cudaErrorInvalidValue);
}

TEST(Device, ItIsThereUnlessTheTestSaysNo) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  set_device_count(0);
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  EXPECT_EQ(cudaSetDevice(0), cudaErrorInvalidDevice);
  set_device_count(1);
  EXPECT_STREQ(cudaGetErrorName(cudaErrorNoDevice), "cudaErrorNoDevice");
}

TEST(Streams, WorkWaitsUntilSomethingWaitsForIt) {
  DeviceArray<int> x(std::vector<int>{1});
  Pinned<int> host(1);
  *host.data = -7;
  Stream stream;
  run(stream, 1, 1, "add", add, x.get(), 41);
  ASSERT_CUDA(cudaMemcpyAsync(host.data, x.get(), sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_EQ(*host.data, -7);
  EXPECT_EQ(queued_commands(), 2u);
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  EXPECT_EQ(*host.data, 42);
  EXPECT_EQ(queued_commands(), 0u);
}

TEST(Streams, PageableMemoryIsReadAtTheCallAndPinnedMemoryWhenTheCopyRuns) {
  DeviceArray<int> x(2);
  Stream stream;
  int pageable = 1;
  Pinned<int> pinned(1);
  *pinned.data = 1;
  ASSERT_CUDA(cudaMemcpyAsync(x.get(), &pageable, sizeof(int), cudaMemcpyHostToDevice, stream));
  ASSERT_CUDA(cudaMemcpyAsync(x.get() + 1, pinned.data, sizeof(int), cudaMemcpyHostToDevice, stream));
  pageable = 2;
  *pinned.data = 2;
  EXPECT_EQ(x.values(), (std::vector<int>{1, 2}));
}

TEST(Streams, PollingMakesProgress) {
  DeviceArray<int> x(std::vector<int>{0});
  Stream stream;
  for (int i = 0; i < 3; ++i) run(stream, 1, 1, "add", add, x.get(), 1);
  int polls = 0;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) ++polls;
  EXPECT_EQ(polls, 3);
}

TEST(Streams, BlockingStreamsAndTheLegacyStreamWaitForEachOther) {
  DeviceArray<int> x(std::vector<int>{0});
  cudaStream_t blocking = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&blocking));
  run(blocking, 1, 1, "add", add, x.get(), 1);
  run(nullptr, 1, 1, "add", add, x.get(), 1);
  int out = 0;
  ASSERT_CUDA(cudaMemcpy(&out, x.get(), sizeof out, cudaMemcpyDeviceToHost));
  EXPECT_EQ(out, 2);
  Stream independent;
  run(independent, 1, 1, "add", add, x.get(), 1);
  ASSERT_CUDA(cudaMemcpy(&out, x.get(), sizeof out, cudaMemcpyDeviceToHost));
  EXPECT_EQ(out, 2);  // no one waited for it
  ASSERT_CUDA(cudaStreamSynchronize(independent));
  ASSERT_CUDA(cudaStreamDestroy(blocking));
}

TEST(Events, WaitingForAnEventRunsWhatCameBeforeItOnly) {
  DeviceArray<int> x(std::vector<int>{0});
  Pinned<int> host(1);
  *host.data = 0;
  Stream producer, consumer;
  cudaEvent_t start = nullptr, middle = nullptr;
  ASSERT_CUDA(cudaEventCreate(&start));
  ASSERT_CUDA(cudaEventCreate(&middle));
  ASSERT_CUDA(cudaEventRecord(start, producer));
  run(producer, 1, 1, "add", add, x.get(), 1);
  ASSERT_CUDA(cudaEventRecord(middle, producer));
  run(producer, 1, 1, "add", add, x.get(), 10);
  ASSERT_CUDA(cudaStreamWaitEvent(consumer, middle, 0));
  ASSERT_CUDA(cudaMemcpyAsync(host.data, x.get(), sizeof(int), cudaMemcpyDeviceToHost, consumer));

  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, middle), cudaErrorNotReady);
  ASSERT_CUDA(cudaStreamSynchronize(consumer));
  EXPECT_EQ(*host.data, 1);
  EXPECT_EQ(queued_commands(), 1u);
  ASSERT_CUDA(cudaEventElapsedTime(&milliseconds, start, middle));
  EXPECT_GE(milliseconds, 0.0f);
  ASSERT_CUDA(cudaEventSynchronize(middle));
  EXPECT_EQ(cudaEventQuery(middle), cudaSuccess);
  ASSERT_CUDA(cudaDeviceSynchronize());
  ASSERT_CUDA(cudaEventDestroy(start));
  ASSERT_CUDA(cudaEventDestroy(middle));
  EXPECT_EQ(cudaEventRecord(middle, producer), cudaErrorInvalidResourceHandle);
}

TEST(Graphs, ACaptureRunsNothingAndAReplayRunsAllOfIt) {
  DeviceArray<int> x(std::vector<int>{0});
  Stream stream;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  run(stream, 1, 1, "add", add, x.get(), 1);
  run(stream, 1, 1, "add", add, x.get(), 10);
  cudaGraph_t graph = nullptr;
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  ASSERT_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(x.values(), std::vector<int>{0});
  ASSERT_CUDA(cudaGraphUpload(executable, stream));
  ASSERT_CUDA(cudaGraphLaunch(executable, stream));
  ASSERT_CUDA(cudaGraphLaunch(executable, stream));
  EXPECT_EQ(queued_commands(), 4u);
  EXPECT_EQ(x.values(), std::vector<int>{22});
  ASSERT_CUDA(cudaGraphExecDestroy(executable));
}

TEST(Graphs, AForbiddenCallInvalidatesTheCapture) {
  Stream stream;
  cudaGraph_t graph = nullptr;
  void* pointer = nullptr;
  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_EQ(cudaMalloc(&pointer, 16), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT_EQ(cudaFree(pointer), cudaSuccess);
  ASSERT_CUDA(cudaThreadExchangeStreamCaptureMode(&mode));
  ASSERT_CUDA(cudaStreamEndCapture(stream, &graph));
  ASSERT_CUDA(cudaGraphDestroy(graph));
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, mode), cudaErrorStreamCaptureUnsupported);
}

}  // namespace
}  // namespace dlbench::cuda_emulation::test
