// What a Device promises beside its ops: memory, copies, order, graphs, identity.
#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "parity/parity.h"

namespace dlbench::test {
namespace {

std::vector<std::byte> pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> data(bytes);
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(uniform_index(seed, 0, i, 256));
  return data;
}

TEST(DeviceParity, TellsWhoItIs) {
  const DeviceInfo& info = device_under_test().info();
  EXPECT_FALSE(info.id.empty());
  EXPECT_TRUE(info.id.starts_with(info.kind)) << info.id << ' ' << info.kind;
  EXPECT_FALSE(info.name.empty());
  EXPECT_GT(info.memory_bytes, 0);
  EXPECT_GE(info.threads, 1);
}

TEST(DeviceParity, MemoryIsAlignedAndCounted) {
  Device& device = device_under_test();
  const int64_t count_before = device.allocation_count();
  const DeviceBuffer large(device, size_t{64} << 20), odd(device, 1001), one(device, 1), none(device, 0);
  for (const DeviceBuffer* b : {&large, &odd, &one}) EXPECT_EQ(reinterpret_cast<uintptr_t>(b->data()) % 256, 0u);
  EXPECT_GE(device.allocation_count(), count_before + 3);
  // How much is free changes with what else runs on the machine; only the bounds are certain.
  EXPECT_GT(device.free_memory(), 0);
  EXPECT_LE(device.free_memory(), device.info().memory_bytes);
}

TEST(DeviceParity, TooLargeAnAllocationIsOutOfMemory) {
  Device& device = device_under_test();
  for (const size_t bytes : {size_t{1} << 62, static_cast<size_t>(device.info().memory_bytes) * 4}) {
    try {
      DeviceBuffer memory(device, bytes);
      FAIL() << bytes << " bytes were allocated";
    } catch (const OutOfMemoryError& e) {
      EXPECT_NE(std::string(e.what()).find(std::to_string(bytes)), std::string::npos)
          << "must name the size: " << e.what();
    }
  }
  DeviceBuffer still_works(device, 1024);
  device.set_bytes(still_works.data(), 1, 1024);
  device.synchronize();
}

TEST(DeviceParity, CopiesOfEverySizeFromBothKindsOfHostMemory) {
  Device& device = device_under_test();
  for (const HostMemory kind : {HostMemory::pageable, HostMemory::pinned}) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{3}, size_t{255}, size_t{4096}, (size_t{3} << 20) + 17}) {
      auto* host = static_cast<std::byte*>(device.allocate_host(bytes + 1, kind));
      const std::vector<std::byte> data = pattern(bytes, bytes);
      if (bytes) std::memcpy(host, data.data(), bytes);
      host[bytes] = std::byte{0x5C};
      const DeviceBuffer first(device, bytes + 2), second(device, bytes + 2);
      // Off by one byte at both ends: no copy may need alignment.
      auto* a = static_cast<std::byte*>(first.data()) + 1;
      auto* b = static_cast<std::byte*>(second.data()) + 1;
      device.set_bytes(first.data(), 0, bytes + 2);
      device.copy_to_device(a, host, bytes);
      device.copy_on_device(b, a, bytes);
      device.synchronize();
      if (bytes) std::memset(host, 0, bytes);
      device.copy_to_host(host, b, bytes);
      device.synchronize();
      EXPECT_TRUE(bytes == 0 || std::memcmp(host, data.data(), bytes) == 0) << bytes;
      EXPECT_EQ(host[bytes], std::byte{0x5C}) << bytes;
      device.deallocate_host(host, kind);
    }
  }
}

TEST(DeviceParity, SetBytes) {
  Device& device = device_under_test();
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{1000}, (size_t{2} << 20) + 3}) {
    const DeviceBuffer memory(device, bytes + 2);
    std::vector<std::byte> host(bytes + 2);
    device.set_bytes(memory.data(), 0x11, bytes + 2);
    device.set_bytes(static_cast<std::byte*>(memory.data()) + 1, 0xEE, bytes);
    device.copy_to_host(host.data(), memory.data(), bytes + 2);
    device.synchronize();
    EXPECT_EQ(host.front(), std::byte{0x11});
    EXPECT_EQ(host.back(), std::byte{0x11});
    for (size_t i = 1; i <= bytes; ++i) ASSERT_EQ(host[i], std::byte{0xEE}) << i;
  }
}

/// Ops that feed each other, without a synchronisation between them: the stream keeps their order.
void chain(Ops& ops, const std::vector<void*>& p) {
  constexpr int64_t kRows = 37, kColumns = 53, kDepth = 41;
  const VectorSpec vector{.precision = Precision::fp32, .n = kRows * kColumns};
  ops.noop();
  ops.fill_normal({.type = DType::f32, .n = kRows * kDepth, .seed = 7, .stream = 1, .scale = 1.0}, p[0]);
  ops.fill_normal({.type = DType::f32, .n = kDepth * kColumns, .seed = 7, .stream = 2, .scale = 0.1}, p[1]);
  ops.gemm({.precision = Precision::fp32, .m = kRows, .n = kColumns, .k = kDepth}, p[0], p[1], nullptr, p[2], nullptr);
  ops.relu_forward(vector, p[2], p[3]);
  ops.axpy(vector, 0.5f, p[3], p[2]);
  ops.copy(vector, p[2], p[3]);
  ops.reduce(
      {.precision = Precision::fp32, .reduction = Reduction::sum, .outer = 1, .extent = kRows, .inner = kColumns}, p[3],
      p[4]);
}

OpCase chain_case() {
  const OutputTolerance tolerance = tolerance_of(Op::gemm, Precision::fp32, 41 * 37);
  return {"chain of dependent ops",
          {output("a", DType::f32, 37 * 41, tolerance), output("b", DType::f32, 41 * 53, tolerance),
           output("c", DType::f32, 37 * 53, tolerance), output("d", DType::f32, 37 * 53, tolerance),
           output("e", DType::f32, 53, tolerance)},
          chain};
}

TEST(DeviceParity, OpsRunInTheOrderOfTheCalls) {
  for (int repeat = 0; repeat < 20; ++repeat) EXPECT_EQ(check_case(device_under_test(), oracle(), chain_case()), "");
}

TEST(DeviceParity, GraphsOrAReasonWhyNot) {
  Device& device = device_under_test();
  const Support support = device.supports_graphs();
  if (support.level == SupportLevel::no) {
    EXPECT_FALSE(support.reason.empty());
    EXPECT_EQ(device.capture([](Ops& ops) { ops.noop(); }), nullptr);
    return;
  }
  // Capturing runs nothing; every replay runs all of it. What was captured may go on being used directly.
  constexpr int64_t kN = 1000;
  const VectorSpec spec{.precision = Precision::fp32, .n = kN};
  const DeviceBuffer x(device, kN * 4), y(device, kN * 4);
  device.ops().fill_normal({.type = DType::f32, .n = kN, .seed = 1, .stream = 1}, x.data());
  device.set_bytes(y.data(), 0, kN * 4);
  device.ops().axpy(spec, 0.0f, x.data(), y.data());
  device.synchronize();
  const std::unique_ptr<Graph> graph = device.capture([&](Ops& ops) {
    ops.axpy(spec, 1.0f, x.data(), y.data());
    ops.axpy(spec, 1.0f, x.data(), y.data());
  });
  HostTensor host_x({kN}, DType::f32), host_y({kN}, DType::f32);
  const auto read = [&] {
    device.copy_to_host(host_x.data(), x.data(), kN * 4);
    device.copy_to_host(host_y.data(), y.data(), kN * 4);
    device.synchronize();
  };
  read();
  for (int64_t i = 0; i < kN; ++i) ASSERT_EQ(host_y.at(i), 0) << "capturing ran the ops";
  for (int replay = 0; replay < 4; ++replay) graph->replay();
  read();
  for (int64_t i = 0; i < kN; ++i) {
    const float value = static_cast<float>(host_x.at(i));
    float expected = 0;
    for (int sum = 0; sum < 8; ++sum) expected += value;  // a multiplication by one is exact, each sum rounds once
    ASSERT_EQ(host_y.at(i), expected);
  }
}

/// The loop that device.h describes, over batches that differ: each step must see its own batch, and no batch may
/// arrive in buffers that a step still reads.
TEST(DeviceParity, UploadsReachTheStepTheyAreFor) {
  Device& device = device_under_test();
  constexpr int64_t kN = 4099;
  constexpr int kSteps = 7;
  constexpr size_t kBytes = kN * 4, kHalf = kN / 2 * 4;
  for (const HostMemory kind : {HostMemory::pageable, HostMemory::pinned}) {
    const DeviceBuffer slots[2] = {DeviceBuffer(device, kBytes), DeviceBuffer(device, kBytes)};
    const DeviceBuffer results(device, kBytes * kSteps);
    std::vector<float*> batches;
    for (int i = 0; i < kSteps; ++i) {
      batches.push_back(static_cast<float*>(device.allocate_host(kBytes, kind)));
      for (int64_t k = 0; k < kN; ++k) batches.back()[k] = static_cast<float>(1000 * i + k % 100);
    }
    device.synchronize();
    const int64_t allocations = device.allocation_count();
    const VectorSpec spec{.precision = Precision::fp32, .n = kN};
    device.start_upload(0, slots[0].data(), batches[0], kBytes);
    for (int i = 0; i < kSteps; ++i) {
      const int slot = i % 2;
      device.finish_upload(slot);
      device.ops().relu_forward(spec, slots[slot].data(), static_cast<float*>(results.data()) + i * kN);
      device.release_upload(slot);
      if (i + 1 == kSteps) break;
      // In two parts: a batch is more than one buffer.
      float* next = static_cast<float*>(slots[1 - slot].data());
      device.start_upload(1 - slot, next, batches[static_cast<size_t>(i) + 1], kHalf);
      device.start_upload(1 - slot, next + kN / 2, batches[static_cast<size_t>(i) + 1] + kN / 2, kBytes - kHalf);
    }
    device.synchronize();
    EXPECT_EQ(device.allocation_count(), allocations);
    HostTensor got({kSteps, kN}, DType::f32);
    device.copy_to_host(got.data(), results.data(), kBytes * kSteps);
    device.synchronize();
    for (int64_t i = 0; i < kSteps * kN; ++i) {
      ASSERT_EQ(got.at(i), static_cast<double>(1000 * (i / kN) + i % kN % 100)) << i;
    }
    for (float* batch : batches) device.deallocate_host(batch, kind);
  }
}

TEST(DeviceParity, TimeGoesForwardAndCountersDoNotFail) {
  Device& device = device_under_test();
  const double start = device.clock().now_seconds();
  device.start_device_timer();
  device.ops().noop();
  const std::optional<double> device_seconds = device.stop_device_timer_seconds();
  device.synchronize();
  EXPECT_GE(device.clock().now_seconds(), start);
  EXPECT_GE(device_seconds.value_or(0), 0);
  const Telemetry telemetry = device.telemetry();
  EXPECT_GT(telemetry.clock_hz.value_or(1), 0);
}

TEST(DeviceParity, EveryOpAnswersWhetherItIsSupported) {
  const Ops& ops = device_under_test().ops();
  for (const Precision precision : all_precisions()) {
    for (int op = 0; op <= static_cast<int>(Op::fma_peak); ++op) {
      const Support support = ops.supports(static_cast<Op>(op), precision);
      if (support.level != SupportLevel::native) {
        EXPECT_FALSE(support.reason.empty()) << to_string(static_cast<Op>(op)) << ' ' << to_string(precision);
      }
    }
  }
  EXPECT_NE(ops.supports(Op::gemm, Precision::fp32).level, SupportLevel::no);
}

}  // namespace
}  // namespace dlbench::test
