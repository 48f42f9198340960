// The meta device's time is a formula; its counts are the costs; its memory is an account; its faults are planted.
#include "core/device/meta_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.h"

namespace dlbench {
namespace {

constexpr double kLaunch = 1e-3, kFlopRate = 1e6, kByteRate = 1e5, kLinkRate = 1e4;

MetaOptions simple_options() {
  MetaOptions options;
  options.cpu.flop_per_s = kFlopRate;
  options.cpu.bytes_per_s = kByteRate;
  options.cpu.launch_seconds = kLaunch;
  options.cpu.memory_bytes = 10000;
  options.cpu.link_bytes_per_s = kLinkRate;
  options.cpu.threads = 4;
  options.gpu = options.cpu;
  return options;
}

/// Virtual seconds that `body` takes.
template <typename Body>
double seconds(Device& device, Body&& body) {
  const double start = device.clock().now_seconds();
  body();
  return device.clock().now_seconds() - start;
}

void copy_floats(Device& device, int64_t n = 100) {
  device.ops().copy({.n = n}, nullptr, nullptr);
}
constexpr double kCopySeconds = kLaunch + 800 / kByteRate;  // of 100 floats, read and written

void multiply(Device& device, int64_t size) {
  device.ops().gemm({.m = size, .n = size, .k = size}, nullptr, nullptr, nullptr, nullptr, nullptr);
}

TEST(MetaDevice, TimeIsTheFormula) {
  const auto device = make_meta_device(Side::cpu, simple_options());
  EXPECT_NEAR(seconds(*device, [&] { copy_floats(*device); }), kCopySeconds, 1e-12);
  // 20^3: 16000 FLOPs take 16 ms, 4800 bytes 48 ms; 200^3: 16 s against 4.8 s.
  EXPECT_NEAR(seconds(*device, [&] { multiply(*device, 20); }), kLaunch + 4800 / kByteRate, 1e-12);
  EXPECT_NEAR(seconds(*device, [&] { multiply(*device, 200); }), kLaunch + 16e6 / kFlopRate, 1e-9);
  EXPECT_NEAR(seconds(*device, [&] { device->ops().noop(); }), kLaunch, 1e-12);
  EXPECT_EQ(seconds(*device, [&] { device->synchronize(); }), 0);
}

TEST(MetaDevice, CopiesUseTheLinkOrTheMemory) {
  const auto device = make_meta_device(Side::gpu, simple_options());
  const DeviceBuffer a(*device, 1000), b(*device, 1000);
  std::vector<char> host(1000, 'x');
  EXPECT_NEAR(seconds(*device, [&] { device->copy_to_device(a.data(), host.data(), 1000); }),
              kLaunch + 1000 / kLinkRate, 1e-12);
  EXPECT_NEAR(seconds(*device, [&] { device->copy_on_device(b.data(), a.data(), 1000); }), kLaunch + 2000 / kByteRate,
              1e-12);
  EXPECT_NEAR(seconds(*device, [&] { device->set_bytes(b.data(), 1, 1000); }), kLaunch + 1000 / kByteRate, 1e-12);
  EXPECT_NEAR(seconds(*device, [&] { device->copy_to_host(host.data(), b.data(), 1000); }), kLaunch + 1000 / kLinkRate,
              1e-12);
  EXPECT_EQ(host, std::vector<char>(1000, 0));
}

TEST(MetaDevice, FewerThreadsAreSlower) {
  const auto copy_seconds = [](int threads) {
    const auto device = make_meta_device(Side::cpu, simple_options(), threads);
    EXPECT_EQ(device->info().threads, threads ? threads : 4);
    return seconds(*device, [&] { copy_floats(*device); });
  };
  EXPECT_NEAR(copy_seconds(4), kCopySeconds, 1e-12);
  EXPECT_NEAR(copy_seconds(0), kCopySeconds, 1e-12);
  EXPECT_NEAR(copy_seconds(9), kCopySeconds, 1e-12);
  EXPECT_NEAR(copy_seconds(1), kLaunch + 4 * 800 / kByteRate, 1e-12);
}

TEST(MetaDevice, GraphsPayOneLaunch) {
  const auto device = make_meta_device(Side::gpu, simple_options());
  EXPECT_EQ(device->supports_graphs().level, SupportLevel::native);
  std::unique_ptr<Graph> graph;
  const auto capture = [&] {
    graph = device->capture([](Ops& ops) {
      for (int i = 0; i < 10; ++i) ops.copy({.n = 100}, nullptr, nullptr);
    });
  };
  EXPECT_EQ(seconds(*device, capture), 0);
  EXPECT_EQ(device->total_cost().bytes(), 0);
  EXPECT_NEAR(seconds(*device, [&] { graph->replay(); }), kLaunch + 10 * 800 / kByteRate, 1e-12);
  EXPECT_EQ(device->total_cost().bytes(), 8000);

  const auto cpu = make_meta_device(Side::cpu, simple_options());
  EXPECT_EQ(cpu->supports_graphs().level, SupportLevel::no);
  EXPECT_EQ(cpu->capture([](Ops&) {}), nullptr);
}

TEST(MetaDevice, DeviceTimerLeavesLaunchesOut) {
  const auto device = make_meta_device(Side::gpu, simple_options());
  device->start_device_timer();
  copy_floats(*device);
  copy_floats(*device);
  EXPECT_NEAR(device->stop_device_timer_seconds().value(), 2 * 800 / kByteRate, 1e-12);
  EXPECT_EQ(make_meta_device(Side::cpu, simple_options())->stop_device_timer_seconds(), std::nullopt);
}

TEST(MetaDevice, RecordsWhatWasCalled) {
  const auto device = make_meta_device(Side::gpu, simple_options());
  Ops& ops = device->ops();
  ops.noop();
  device->record_ops(true);
  const GemmSpec gemm{.precision = Precision::bf16,
                      .trans_b = Transpose::yes,
                      .m = 8,
                      .n = 1024,
                      .k = 784,
                      .epilogue = Epilogue::bias_relu};
  ops.gemm(gemm, nullptr, nullptr, nullptr, nullptr, nullptr);
  ops.gemv({.m = 3, .n = 4, .batch = 2, .shared_matrix = true}, nullptr, nullptr, nullptr);
  ops.reduce({.reduction = Reduction::max, .outer = 2, .extent = 3, .inner = 4}, nullptr, nullptr);
  ops.convert({.from = DType::f32, .to = DType::f16, .n = 5}, nullptr, nullptr);
  ops.bias({.rows = 6, .columns = 7}, nullptr, nullptr, nullptr);
  const std::vector<OpRecord> records = device->take_records();
  ASSERT_EQ(records.size(), 5u);
  EXPECT_EQ(records[0].op, Op::gemm);
  EXPECT_EQ(records[0].precision, Precision::bf16);
  EXPECT_EQ(records[0].spec, "m=8 n=1024 k=784 NT bias_relu");
  EXPECT_EQ(records[0].cost.flops, 2.0 * 8 * 1024 * 784 + 2 * 8 * 1024);
  EXPECT_EQ(records[1].spec, "m=3 n=4 N batch=2 shared");
  EXPECT_EQ(records[2].spec, "max outer=2 extent=3 inner=4");
  EXPECT_EQ(records[3].spec, "n=5 f32->f16");
  EXPECT_EQ(records[4].spec, "rows=6 columns=7");
  EXPECT_TRUE(device->take_records().empty());
  device->record_ops(false);
  ops.noop();
  EXPECT_TRUE(device->take_records().empty());
}

TEST(MetaDevice, MemoryIsAnAccount) {
  const auto device = make_meta_device(Side::gpu, simple_options());
  EXPECT_EQ(device->free_memory(), 10000);
  {
    const DeviceBuffer a(*device, 6000);
    EXPECT_EQ(device->free_memory(), 4000);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 256, 0u);
    try {
      DeviceBuffer b(*device, 4001);
      FAIL();
    } catch (const OutOfMemoryError& e) {
      EXPECT_THAT(e.what(), ::testing::AllOf(::testing::HasSubstr("4001"), ::testing::HasSubstr("4000 of 10000")));
    }
    const DeviceBuffer c(*device, 4000);
    EXPECT_NE(c.data(), a.data());
    // Copies must stay inside a block, from any place in it.
    char host[16];
    device->copy_to_host(host, static_cast<char*>(a.data()) + 5990, 10);
    EXPECT_THROW(device->copy_to_host(host, static_cast<char*>(a.data()) + 5990, 11), Error);
    EXPECT_THROW(device->set_bytes(static_cast<char*>(a.data()) - 1, 0, 1), Error);
  }
  EXPECT_EQ(device->free_memory(), 10000);
  EXPECT_EQ(device->allocation_count(), 3);
}

TEST(MetaDevice, SidesSupportWhatRealSidesDo) {
  const auto cpu = make_meta_device(Side::cpu, {}), gpu = make_meta_device(Side::gpu, {});
  EXPECT_EQ(cpu->ops().supports(Op::gemm, Precision::tf32).level, SupportLevel::no);
  EXPECT_EQ(cpu->ops().supports(Op::gemm, Precision::bf16).level, SupportLevel::emulated);
  EXPECT_THROW(cpu->ops().gemm({.precision = Precision::tf32}, nullptr, nullptr, nullptr, nullptr, nullptr),
               UnsupportedError);
  EXPECT_THROW(cpu->ops().fma_peak({.unit = FmaUnit::cuda_core}, nullptr), UnsupportedError);
  EXPECT_EQ(gpu->ops().supports(Op::gemm, Precision::tf32).level, SupportLevel::native);
  EXPECT_THROW(gpu->ops().fma_peak({.unit = FmaUnit::avx2}, nullptr), UnsupportedError);
}

TEST(MetaDevice, NoiseIsDrawnPerTimingAndTheSameForTheSameSeed) {
  MetaOptions options = simple_options();
  options.noise_sd = 0.1;
  options.seed = 5;
  const auto timings = [](const MetaOptions& o) {
    const auto device = make_meta_device(Side::cpu, o);
    std::vector<double> values;
    for (int i = 0; i < 50; ++i) {
      device->synchronize();
      values.push_back(seconds(*device, [&] { copy_floats(*device); }));
      EXPECT_NEAR(seconds(*device, [&] { copy_floats(*device); }), values.back(), 1e-12);  // the same timing
    }
    return values;
  };
  const std::vector<double> a = timings(options);
  EXPECT_EQ(timings(options), a);
  options.seed = 6;
  EXPECT_NE(timings(options), a);
  double sum = 0, square = 0;
  for (const double t : a) {
    const double y = std::log(t / kCopySeconds);
    sum += y;
    square += y * y;
  }
  EXPECT_NEAR(sum / 50, 0, 3 * 0.1 / std::sqrt(50.0));
  EXPECT_NEAR(std::sqrt(square / 50), 0.1, 0.03);
}

TEST(MetaDevice, ProcessEffectBelongsToSeedAndOp) {
  MetaOptions options = simple_options();
  options.process_sd = 0.1;
  const auto effect = [&options](uint64_t seed, int64_t n, int others_before) {
    options.seed = seed;
    const auto device = make_meta_device(Side::cpu, options);
    for (int i = 0; i < others_before; ++i) copy_floats(*device, 7);
    return seconds(*device, [&] { copy_floats(*device, n); }) / (kLaunch + 8 * static_cast<double>(n) / kByteRate);
  };
  EXPECT_NEAR(effect(1, 100, 0), effect(1, 100, 9), 1e-12);  // whatever ran before
  EXPECT_NE(effect(1, 100, 0), effect(2, 100, 0));
  EXPECT_NE(effect(1, 100, 0), effect(1, 101, 0));
  double square = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) square += std::pow(std::log(effect(seed, 100, 0)), 2);
  EXPECT_NEAR(std::sqrt(square / 400), 0.1, 0.015);
}

TEST(MetaDevice, DriftGrowsWithTime) {
  MetaOptions options = simple_options();
  options.drift_per_second = 0.5;
  const auto device = make_meta_device(Side::cpu, options);
  const double first = seconds(*device, [&] { copy_floats(*device, 10000); });
  const double second = seconds(*device, [&] { copy_floats(*device, 10000); });
  EXPECT_NEAR(first, kLaunch + 80000 / kByteRate, 1e-12);
  EXPECT_NEAR(second, first * (1 + 0.5 * first), 1e-12);
}

TEST(MetaDevice, SpikesHappenAsOftenAsAskedFor) {
  MetaOptions options = simple_options();
  options.spike_probability = 0.1;
  const auto device = make_meta_device(Side::cpu, options);
  int spikes = 0;
  for (int i = 0; i < 2000; ++i) {
    const double t = seconds(*device, [&] { device->ops().noop(); });
    spikes += t > 5 * kLaunch;
    EXPECT_NEAR(t, t > 5 * kLaunch ? 10 * kLaunch : kLaunch, 1e-9);
  }
  EXPECT_NEAR(spikes, 200, 4 * std::sqrt(2000 * 0.1 * 0.9));
}

TEST(MetaDevice, PlantedFaults) {
  MetaOptions lost = simple_options();
  lost.fail_after_ops = 2;
  const auto device = make_meta_device(Side::gpu, lost);
  device->ops().noop();
  device->ops().noop();
  EXPECT_THROW(device->ops().noop(), DeviceLostError);
  EXPECT_THROW(device->ops().noop(), DeviceLostError);  // and it stays lost
  EXPECT_THROW(device->synchronize(), DeviceLostError);

  MetaOptions crash = simple_options();
  crash.crash_after_ops = 0;
  EXPECT_DEATH(make_meta_device(Side::gpu, crash)->ops().noop(), "");
}

}  // namespace
}  // namespace dlbench
