// cpu_stream: copy, triad, axpy and relu of the CPU backend against plain loops on plain threads, in and out of cache.
//
// Goal: at least 0.95 of the plain loop (McCalpin's STREAM: one thread per CPU, static halves, -O3) at the same size
// and number of threads. The plain threads meet at a barrier that spins, so their fork and join cost as little as they
// can; up to 1024 elements, where even that costs more than the loop, the plain side is one thread without any. Results
// are compared before anything is timed. Exit code 1 when one is below its goal or wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstring>
#include <functional>
#include <thread>

#include "cpu/device.h"
#include "micro/interleaved.h"

namespace dlbench::micro {
namespace {

/// Threads that run loop(part) when told to, waiting in between by spinning; asleep outside turns.
class PlainThreads {
 public:
  explicit PlainThreads(int threads) : threads_(threads) {
    for (int p = 1; p < threads; ++p) workers_.emplace_back([this, p] { work(p); });
  }
  ~PlainThreads() {
    quit_ = true;
    for (auto& w : workers_) w.join();
  }
  void awake(bool on) { awake_ = on; }
  template <typename Loop>
  void run(const Loop& loop) {
    body_ = [](const void* l, int part) { (*static_cast<const Loop*>(l))(part); };
    loop_ = &loop;
    left_.store(threads_ - 1, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    loop(0);
    while (left_.load(std::memory_order_acquire) != 0) __builtin_ia32_pause();
  }

 private:
  void work(int part) {
    cpu::enable_flush_to_zero();
    for (uint64_t seen = 0; !quit_;) {
      if (!awake_.load(std::memory_order_relaxed)) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        if (round_.load(std::memory_order_acquire) == seen) continue;
      }
      const uint64_t round = round_.load(std::memory_order_acquire);
      if (round == seen) {
        __builtin_ia32_pause();
        continue;
      }
      seen = round;
      body_(loop_, part);
      left_.fetch_sub(1, std::memory_order_release);
    }
  }
  int threads_;
  std::vector<std::thread> workers_;
  std::atomic<bool> awake_{false}, quit_{false};
  alignas(128) std::atomic<uint64_t> round_{0};
  alignas(128) std::atomic<int> left_{0};
  void (*body_)(const void*, int) = nullptr;
  const void* loop_ = nullptr;
};

// The plain loops, for whatever this program is compiled for.
void copy_loop(const float* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i];
}
void triad_loop(float a, const float* __restrict x, const float* __restrict y, float* __restrict z, int64_t n) {
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + a * y[i];
}
void axpy_loop(float a, const float* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
void relu_loop(const float* __restrict x, float* __restrict y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

/// Elements up to which one plain thread is the faster one.
constexpr int64_t kAlone = 1024;

struct Case {
  const char* name;
  double bytes_per_element;
  std::function<void(Ops&, const VectorSpec&, const float*, const float*, float*)> ours;
  void (*plain)(const float* x, const float* y, float* z, int64_t n);
};

const Case kCases[] = {
    {"copy", 8, [](Ops& o, const VectorSpec& s, const float* x, const float*, float* z) { o.copy(s, x, z); },
     [](const float* x, const float*, float* z, int64_t n) { copy_loop(x, z, n); }},
    {"triad", 12,
     [](Ops& o, const VectorSpec& s, const float* x, const float* y, float* z) { o.triad(s, 0.5f, x, y, z); },
     [](const float* x, const float* y, float* z, int64_t n) { triad_loop(0.5f, x, y, z, n); }},
    {"axpy", 12, [](Ops& o, const VectorSpec& s, const float* x, const float*, float* z) { o.axpy(s, 1e-9f, x, z); },
     [](const float* x, const float*, float* z, int64_t n) { axpy_loop(1e-9f, x, z, n); }},
    {"relu", 8, [](Ops& o, const VectorSpec& s, const float* x, const float*, float* z) { o.relu_forward(s, x, z); },
     [](const float* x, const float*, float* z, int64_t n) { relu_loop(x, z, n); }},
};

}  // namespace

int run(int threads, bool quick, double goal) {
  cpu::CpuDevice device({.threads = threads});
  threads = device.info().threads;
  PlainThreads plain(threads);
  int below = 0, wrong = 0;
  fmt::print("{:6} {:>12} {:>8} {:>10} {:>10}\n", "op", "elements", "ratio", "GB/s", "plain GB/s");
  for (const int64_t n : {int64_t{1} << 10, int64_t{1} << 12, int64_t{1} << 14, int64_t{1} << 16, int64_t{1} << 18,
                          int64_t{1} << 20, int64_t{1} << 25}) {
    const size_t bytes = static_cast<size_t>(n) * 4;
    DeviceBuffer x(device, bytes), y(device, bytes), z(device, bytes), expected(device, bytes);
    device.ops().fill_normal({.n = n, .seed = 1}, x.data());
    device.ops().fill_normal({.n = n, .seed = 2}, y.data());
    const auto *px = static_cast<const float*>(x.data()), *py = static_cast<const float*>(y.data());
    auto *pz = static_cast<float*>(z.data()), *pe = static_cast<float*>(expected.data());
    const VectorSpec spec{.n = n};
    for (const Case& c : kCases) {
      const bool alone = n <= kAlone;
      const auto loop = [&](float* to) {
        if (alone) return c.plain(px, py, to, n);
        plain.run([&](int part) {
          const cpu::Range r = cpu::part_of(n, part, threads, 16);
          c.plain(px + r.begin, py + r.begin, to + r.begin, r.end - r.begin);
        });
      };
      std::memset(pe, 0, bytes);
      std::memset(pz, 0, bytes);
      plain.awake(true);
      loop(pe);
      plain.awake(false);
      c.ours(device.ops(), spec, px, py, pz);
      bool right = true;
      for (int64_t i = 0; i < n; ++i) right = right && pz[i] - pe[i] <= 1e-6f && pe[i] - pz[i] <= 1e-6f;
      wrong += !right;
      const std::vector<Side> sides = {{[&] { c.ours(device.ops(), spec, px, py, pz); }, [&] { plain.awake(false); }},
                                       {[&] { loop(pz); },
                                        [&] {
                                          device.team().stand_down();
                                          plain.awake(!alone);
                                        }}};
      const auto seconds = time_in_turns(sides, quick ? 7 : 15, quick ? 0.003 : 0.010);
      plain.awake(false);
      std::vector<double> ratios;
      for (size_t t = 0; t < seconds[0].size(); ++t) ratios.push_back(seconds[1][t] / seconds[0][t]);
      const double ratio = median(ratios), gb = 1e-9 * c.bytes_per_element * static_cast<double>(n);
      below += ratio < goal;
      fmt::print("{:6} {:12} {:8.2f} {:10.1f} {:10.1f}{}\n", c.name, n, ratio, gb / median(seconds[0]),
                 gb / median(seconds[1]),
                 !right         ? "  WRONG RESULT"
                 : ratio < goal ? "  BELOW GOAL"
                                : "");
    }
  }
  fmt::print("{} below {}, {} wrong\n", below, goal, wrong);
  return below + wrong > 0 ? 1 : 0;
}

}  // namespace dlbench::micro

int main(int argc, char** argv) {
  CLI::App app{"copy, triad, axpy and relu of the CPU backend against plain loops on plain threads"};
  bool quick = false;
  int threads = 0;
  double goal = 0.95;
  app.add_option("--threads", threads, "Threads of either side; 0: every usable CPU");
  app.add_option("--goal", goal, "Ratio that must be reached");
  app.add_flag("--quick", quick, "Fewer and shorter turns");
  CLI11_PARSE(app, argc, argv);
  return dlbench::micro::run(threads, quick, goal);
}
