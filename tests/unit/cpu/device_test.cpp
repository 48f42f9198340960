// Memory, identity, and the ops that the parity suite doesn't reach: peaks, and equal results whatever the threads.
#include "cpu/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/usable_cpus.h"
#include "core/math/float_types.h"

namespace dlbench::cpu {
namespace {

TEST(CpuDevice, MemoryIsAlignedAndCounted) {
  CpuDevice device{DeviceOptions{}};
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, size_t{9} << 20}) {
    const int64_t before = device.allocation_count();
    DeviceBuffer buffer(device, bytes);
    EXPECT_EQ(device.allocation_count(), before + 1);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 256, 0u);
    device.set_bytes(buffer.data(), 7, bytes);
    std::vector<char> host(bytes);
    device.copy_to_host(host.data(), buffer.data(), bytes);
    for (const char c : host) ASSERT_EQ(c, 7);
  }
}

#if !defined(__SANITIZE_ADDRESS__)  // there each buffer is a block of its own
TEST(CpuDevice, SmallBuffersLieSideBySideInWholeHugePages) {
  CpuDevice device{DeviceOptions{}};
  constexpr size_t kHugePage = size_t{2} << 20;
  uintptr_t first = 0;
  {
    const DeviceBuffer a(device, 1000), b(device, 5000);
    first = reinterpret_cast<uintptr_t>(a.data());
    EXPECT_EQ(first % kHugePage, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()), first + 1024);
  }
  // The next point finds the same memory: its buffers share the same cache lines as the last one's did.
  const DeviceBuffer again(device, 1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(again.data()), first);
}
#endif

TEST(CpuDevice, ManySmallBuffersNeverOverlapAndTheirMemoryComesBack) {
  CpuDevice device{DeviceOptions{}};
  const int64_t free_before = device.free_memory();
  std::vector<DeviceBuffer> buffers;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i) {
      buffers.emplace_back(device, size_t{700001});
      device.set_bytes(buffers.back().data(), static_cast<uint8_t>(buffers.size()), buffers.back().bytes());
    }
    for (size_t i = 0; i < buffers.size(); ++i) {
      const auto* bytes = static_cast<const uint8_t*>(buffers[i].data());
      ASSERT_EQ(bytes[0], static_cast<uint8_t>(i + 1));
      ASSERT_EQ(bytes[700000], static_cast<uint8_t>(i + 1));
    }
    buffers.erase(buffers.begin(), buffers.begin() + 30);
    for (size_t i = 0; i < buffers.size(); ++i) {
      device.set_bytes(buffers[i].data(), static_cast<uint8_t>(i + 1), buffers[i].bytes());
    }
  }
  buffers.clear();
  EXPECT_EQ(device.free_memory(), free_before);
}

TEST(CpuDevice, MoreMemoryThanThereIsIsOutOfMemory) {
  CpuDevice device{DeviceOptions{}};
  try {
    device.allocate(size_t{1} << 50);
    FAIL() << "got a pebibyte";
  } catch (const OutOfMemoryError& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("1125899906842624"));
  }
  EXPECT_GT(device.free_memory(), 0);
  EXPECT_LE(device.free_memory(), device.info().memory_bytes);
}

TEST(CpuDevice, MoreThreadsThanCpusIsAUsageError) {
  EXPECT_THROW(CpuDevice{DeviceOptions{.threads = usable_cpus().count + 1}}, UsageError);
}

TEST(CpuDevice, HasNoGraphs) {
  CpuDevice device{DeviceOptions{}};
  EXPECT_EQ(device.supports_graphs().level, SupportLevel::no);
  EXPECT_EQ(device.capture([](Ops&) {}), nullptr);
}

TEST(CpuDevice, NamesItsFacts) {
  const DeviceInfo info = describe_cpu(Blas::instance(), 0);
  for (const char* fact : {"isa", "usable_cpus", "openblas_config", "openblas_core", "openblas_threading",
                           "openblas_library", "denormals"}) {
    EXPECT_TRUE(info.facts.count(fact)) << fact;
  }
}

TEST(CpuOps, EveryFmaUnitCountsExactly) {
  CpuDevice device{DeviceOptions{}};
  for (const FmaUnit unit : {FmaUnit::vector_auto, FmaUnit::scalar, FmaUnit::sse2, FmaUnit::avx2, FmaUnit::avx512,
                             FmaUnit::dot_product, FmaUnit::cuda_core}) {
    for (const Precision precision : all_precisions()) {
      const Support support = device.ops().supports_fma_unit(unit, precision);
      const FmaPeakSpec spec{precision, unit, 100003};
      if (support.level == SupportLevel::no) {
        EXPECT_FALSE(support.reason.empty());
        EXPECT_THROW(device.ops().fma_peak_outputs(spec), UnsupportedError);
        continue;
      }
      std::vector<float> out(static_cast<size_t>(device.ops().fma_peak_outputs(spec)), -1.0f);
      device.ops().fma_peak(spec, out.data());
      const float expected = precision == Precision::bf16 ? 200006.0f : 100003.0f;
      for (const float v : out) ASSERT_EQ(v, expected) << to_string(unit) << " " << to_string(precision);
      EXPECT_GE(device.ops().fma_peak_flops(spec), 2.0 * 100003 * static_cast<double>(out.size()));
    }
  }
}

TEST(CpuOps, ReductionsAreEqualForAnyNumberOfThreads) {
  std::vector<std::vector<float>> results;
  for (int threads = 1; threads <= usable_cpus().count; ++threads) {
    CpuDevice device{DeviceOptions{.threads = threads}};
    Ops& ops = device.ops();
    const int64_t n = 1000003;
    std::vector<float> x(static_cast<size_t>(n)), y(4096);
    ops.fill_normal({.n = n, .seed = 3}, x.data());
    std::vector<float> result(3 + 1000 + 1000);
    ops.reduce({.extent = n}, x.data(), &result[0]);
    ops.reduce({.reduction = Reduction::max, .extent = n}, x.data(), &result[1]);
    ops.dot({.n = n}, x.data(), x.data(), &result[2]);
    ops.reduce({.extent = 1000, .inner = 1000}, x.data(), &result[3]);
    ops.gemv({.trans = Transpose::yes, .m = 1000, .n = 1000}, x.data(), x.data(), &result[1003]);
    results.push_back(result);
  }
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST(CpuOps, LargeStreamingStoresWriteEverything) {
  CpuDevice device{DeviceOptions{}};
  const int64_t n = (int64_t{20} << 20) + 13;  // 80 MiB a vector: past the caches
  DeviceBuffer x(device, static_cast<size_t>(n) * 4), y(device, static_cast<size_t>(n) * 4),
      z(device, static_cast<size_t>(n) * 4);
  device.ops().fill_normal({.n = n, .seed = 1}, x.data());
  device.ops().fill_normal({.n = n, .seed = 2}, y.data());
  device.ops().triad({.n = n}, 3.0f, x.data(), y.data(), z.data());
  const float *xs = static_cast<const float*>(x.data()), *ys = static_cast<const float*>(y.data()),
              *zs = static_cast<const float*>(z.data());
  for (int64_t i = 0; i < n; ++i) ASSERT_NEAR(zs[i], xs[i] + 3.0f * ys[i], 1e-5) << i;
  device.ops().copy({.n = n}, x.data(), z.data());
  EXPECT_EQ(std::memcmp(x.data(), z.data(), static_cast<size_t>(n) * 4), 0);
  device.ops().relu_forward({.n = n}, x.data(), z.data());
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(zs[i], xs[i] > 0 ? xs[i] : 0.0f) << i;
}

}  // namespace
}  // namespace dlbench::cpu
