// What a kernel may do: indices, shared memory with barriers, shuffles, votes, atomics.
#include <gmock/gmock.h>

#include <numeric>

#include "cuda_emulation/test_support.h"

namespace dlbench::cuda_emulation::test {
namespace {

__global__ void write_index(int* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned i = block * blockDim.x * blockDim.y * blockDim.z + thread;
  out[i] = static_cast<int>(i);
}

TEST(Kernel, EveryThreadOfEveryBlockRunsOnceWithItsIndex) {
  DeviceArray<int> out(3 * 2 * 2 * 4 * 3 * 2);
  run(nullptr, dim3(3, 2, 2), dim3(4, 3, 2), "write_index", write_index, out.get());
  const std::vector<int> values = out.values();
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<int>(i));
}

constexpr int kBlock = 256;

// Tree in shared memory: a barrier after every level.
__global__ void sum_tree(const float* x, int n, float* out) {
  DLB_SHARED(float, partial, kBlock);
  const int thread = static_cast<int>(threadIdx.x);
  const int i = static_cast<int>(blockIdx.x) * kBlock + thread;
  partial[thread] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int step = kBlock / 2; step > 0; step /= 2) {
    if (thread < step) partial[thread] += partial[thread + step];
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = partial[0];
}

class BothOrders : public testing::TestWithParam<ThreadOrder> {
 protected:
  void SetUp() override { set_thread_order(GetParam()); }
  void TearDown() override { set_thread_order(ThreadOrder::forward); }
};
INSTANTIATE_TEST_SUITE_P(Order, BothOrders, testing::Values(ThreadOrder::forward, ThreadOrder::reverse),
                         [](const auto& which) { return which.param == ThreadOrder::forward ? "forward" : "reverse"; });

TEST_P(BothOrders, ASharedMemoryReductionWithBarriersIsRight) {
  constexpr int kN = 1000, kBlocks = 4;
  std::vector<float> x(kN);
  std::iota(x.begin(), x.end(), 1.0f);
  DeviceArray<float> in(x), out(kBlocks);
  run(nullptr, kBlocks, kBlock, "sum_tree", sum_tree, in.get(), kN, out.get());
  const std::vector<float> sums = out.values();
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0.0f), 500500.0f);
}

__global__ void warp_sums(const int* x, int* down, int* butterfly, unsigned* votes) {
  const int i = static_cast<int>(threadIdx.x);
  int a = x[i], b = x[i];
  for (int offset = 16; offset > 0; offset /= 2) {
    a += __shfl_down_sync(0xFFFFFFFFu, a, static_cast<unsigned>(offset));
    b += __shfl_xor_sync(0xFFFFFFFFu, b, offset);
  }
  if (i % 32 == 0) down[i / 32] = a;
  butterfly[i] = b;
  votes[i] = __ballot_sync(0xFFFFFFFFu, x[i] % 2);
  if (!__any_sync(0xFFFFFFFFu, i % 32 == 5) || __all_sync(0xFFFFFFFFu, i % 32 < 31)) votes[i] = 0;
}

TEST_P(BothOrders, ShufflesAndVotesFollowTheProgrammingGuide) {
  std::vector<int> x(64);
  std::iota(x.begin(), x.end(), 0);
  DeviceArray<int> in(x), down(2), butterfly(64);
  DeviceArray<unsigned> votes(64);
  run(nullptr, 1, 64, "warp_sums", warp_sums, in.get(), down.get(), butterfly.get(), votes.get());
  EXPECT_EQ(down.values(), (std::vector<int>{496, 1520}));
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(butterfly.values()[static_cast<size_t>(i)], i < 32 ? 496 : 1520);
    EXPECT_EQ(votes.values()[static_cast<size_t>(i)], 0xAAAAAAAAu);
  }
}

__global__ void segments(int* up, int* broadcast, int* half) {
  const int i = static_cast<int>(threadIdx.x);
  up[i] = __shfl_up_sync(0xFFFFFFFFu, i, 1, 8);
  broadcast[i] = __shfl_sync(0xFFFFFFFFu, i, 3, 8);
  half[i] = i < 16 ? __shfl_xor_sync(0x0000FFFFu, i, 1) : __shfl_xor_sync(0xFFFF0000u, 100 + i, 1);
}

TEST_P(BothOrders, AShuffleStaysInItsSegmentAndItsMask) {
  DeviceArray<int> up(32), broadcast(32), half(32);
  run(nullptr, 1, 32, "segments", segments, up.get(), broadcast.get(), half.get());
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_EQ(up.values()[at], i % 8 == 0 ? i : i - 1);
    EXPECT_EQ(broadcast.values()[at], i / 8 * 8 + 3);
    EXPECT_EQ(half.values()[at], (i < 16 ? 0 : 100) + (i ^ 1));
  }
}

__global__ void counts(int* out, int* total) {
  const int i = static_cast<int>(threadIdx.x);
  const int odd = __syncthreads_count(i % 2);
  out[i] = odd + 1000 * __syncthreads_or(i == 7) + 2000 * __syncthreads_and(i < 40);
  atomicAdd(total, i);
  atomicMax(total + 1, i);
}

TEST_P(BothOrders, PredicateBarriersAndAtomicsCombineAllThreads) {
  DeviceArray<int> out(40), total(std::vector<int>{0, 0});
  run(nullptr, 1, 40, "counts", counts, out.get(), total.get());
  for (const int value : out.values()) EXPECT_EQ(value, 20 + 1000 + 2000);
  EXPECT_EQ(total.values(), (std::vector<int>{780, 39}));
}

__global__ void reverse_dynamic(int* data, int n) {
  int* shared = static_cast<int*>(dynamic_shared());
  const int i = static_cast<int>(threadIdx.x);
  shared[i] = data[i];
  __syncthreads();
  data[i] = shared[n - 1 - i];
}

TEST_P(BothOrders, DynamicSharedMemoryBelongsToTheBlock) {
  DeviceArray<int> data(std::vector<int>{1, 2, 3, 4, 5});
  ASSERT_CUDA(launch_kernel(nullptr, 1, 5, 5 * sizeof(int), "reverse_dynamic", reverse_dynamic, data.get(), 5));
  EXPECT_EQ(data.values(), (std::vector<int>{5, 4, 3, 2, 1}));
}

__global__ void read_fresh(float* out) {
  DLB_SHARED(float, fresh, 32);
  out[blockIdx.x] = fresh[0];
  fresh[0] = 1.0f;
}

TEST(Kernel, SharedMemoryIsFilledWithNanInEveryBlock) {
  DeviceArray<float> out(2);
  run(nullptr, 2, 1, "read_fresh", read_fresh, out.get());
  for (const float value : out.values()) EXPECT_TRUE(std::isnan(value));
}

__global__ void fill(float* x, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] = static_cast<float>(i);
}

TEST(Kernel, AMillionThreadsWithoutBarriersTakeMilliseconds) {
  constexpr int kN = 1 << 20;
  DeviceArray<float> x(kN);
  run(nullptr, kN / 256, 256, "fill", fill, x.get(), kN);
  EXPECT_EQ(x.values().back(), kN - 1);
}

TEST(Kernel, LaunchesBeyondTheDeviceAreRefused) {
  DeviceArray<float> x(1);
  EXPECT_EQ(launch_kernel(nullptr, 1, 1025, 0, "fill", fill, x.get(), 1), cudaErrorInvalidConfiguration);
  EXPECT_THAT(why(), testing::HasSubstr("a block of 1025 threads"));
  EXPECT_EQ(launch_kernel(nullptr, 0, 1, 0, "fill", fill, x.get(), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_kernel(nullptr, 1, 1, 64 * 1024, "fill", fill, x.get(), 1), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace dlbench::cuda_emulation::test
