#include "core/measure/probes.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

namespace dlbench {

namespace {

using SteadyTime = std::chrono::steady_clock;

double seconds_since(SteadyTime::time_point start) {
  return std::chrono::duration<double>(SteadyTime::now() - start).count();
}

/// Pins the calling thread; a thread that may not be pinned still measures, only less sharply.
void pin_to(int cpu) {
  cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpu) + 1);
  if (!set) return;
  const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpu) + 1);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(static_cast<size_t>(cpu), bytes, set);
  pthread_setaffinity_np(pthread_self(), bytes, set);
  CPU_FREE(set);
}

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

constexpr double kPingPongSeconds = 1e-3, kPingPongLimitSeconds = 20e-3;
constexpr int kRoundTripsPerBatch = 200;
constexpr size_t kLeastBatches = 5;

/// The time that a cache line takes from one CPU to the other and back: of the fastest batch, since an interrupt only
/// ever adds to it, while a placement changes every batch.
double ping_pong(int first, int second) {
  struct alignas(128) Line {  // two 64-byte lines: adjacent-line prefetchers move pairs
    std::atomic<int> value{0};
  } line;
  std::atomic<bool> ready{false};
  std::thread echo([&] {
    pin_to(second);
    ready.store(true, std::memory_order_release);
    for (int expected = 1;; expected += 2) {  // odd: on its way out; even: back again
      int seen = 0;
      while ((seen = line.value.load(std::memory_order_acquire)) != expected) {
        if (seen < 0) return;
      }
      line.value.store(expected + 1, std::memory_order_release);
    }
  });
  std::vector<double> batches;
  std::thread drive([&] {
    pin_to(first);
    while (!ready.load(std::memory_order_acquire)) std::this_thread::yield();
    int value = 0;
    const auto start = SteadyTime::now();
    double elapsed = 0;
    do {
      const auto batch_start = SteadyTime::now();
      for (int i = 0; i < kRoundTripsPerBatch; ++i) {
        line.value.store(++value, std::memory_order_release);
        ++value;
        while (line.value.load(std::memory_order_acquire) != value) {
        }
      }
      batches.push_back(seconds_since(batch_start) / kRoundTripsPerBatch);
      elapsed = seconds_since(start);
    } while (elapsed < kPingPongSeconds || (batches.size() < kLeastBatches && elapsed < kPingPongLimitSeconds));
    line.value.store(-1, std::memory_order_release);
  });
  drive.join();
  echo.join();
  return *std::min_element(batches.begin(), batches.end());
}

constexpr double kFmaSeconds = 5e-3;
constexpr int kFmaPieces = 5;
constexpr int kRoundsPerCheck = 2048;

/// Independent multiply-add chains in registers: 8 chains of 4 floats keep two pipes of latency 4 busy.
double multiply_add_rate(double seconds) {
  using Float4 = float __attribute__((vector_size(16)));
  Float4 a{1, 1, 1, 1}, b = a, c = a, d = a, e = a, f = a, g = a, h = a;
  const Float4 scale{0.5f, 0.5f, 0.5f, 0.5f}, add{0.25f, 0.25f, 0.25f, 0.25f};  // converges to 0.5: no denormals
  int64_t rounds = 0;
  const auto start = SteadyTime::now();
  double elapsed = 0;
  do {
    for (int i = 0; i < kRoundsPerCheck; ++i) {
      a = a * scale + add, b = b * scale + add, c = c * scale + add, d = d * scale + add;
      e = e * scale + add, f = f * scale + add, g = g * scale + add, h = h * scale + add;
    }
    asm volatile("" : "+m"(a), "+m"(b), "+m"(c), "+m"(d), "+m"(e), "+m"(f), "+m"(g), "+m"(h));  // keeps the loop
    rounds += kRoundsPerCheck;
    elapsed = seconds_since(start);
  } while (elapsed < seconds);
  return static_cast<double>(rounds) * 8 * 4 * 2 / elapsed;
}

/// Sum over the CPUs, each the median of its pieces, all at work at the same time.
double multiply_add_on_all(std::span<const int> cpus) {
  std::vector<double> rates(cpus.size());
  std::atomic<size_t> waiting{cpus.size()};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < cpus.size(); ++i) {
    threads.emplace_back([&, i] {
      pin_to(cpus[i]);
      --waiting;
      while (waiting.load(std::memory_order_acquire) > 0) std::this_thread::yield();
      std::vector<double> pieces;
      for (int p = 0; p < kFmaPieces; ++p) pieces.push_back(multiply_add_rate(kFmaSeconds / kFmaPieces));
      rates[i] = median_of(pieces);
    });
  }
  for (std::thread& thread : threads) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

}  // namespace

ProbeValues run_probes(std::span<const int> cpus) {
  ProbeValues values;
  if (cpus.size() >= 2) values.ping_pong_seconds = ping_pong(cpus[0], cpus[1]);
  values.fma_flop_per_s = multiply_add_on_all(cpus);
  return values;
}

}  // namespace dlbench
