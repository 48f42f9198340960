// The one place that decides how CPU work is spread over threads. Twin: src/gpu/parallel.cuh.
//
// Why: a training step at batch 1 is a train of operations of 5 to 50 microseconds each; waking a sleeping thread costs
// as much. The threads belong to a oneTBB arena; between operations they stay for a while in a task that waits for the
// next one, so that fork and join cost a cache line each way (the workload `launch` measures it).
// Promises: exactly one level of parallelism at any time. Either this team works and every BLAS call in it uses one
// thread, or a BLAS call uses its own threads while the team is asleep (`BlasThreads`). Work is split by position,
// never by timing: part p of P is the same range in every call. A part whose worker is late is done by the caller, so
// nothing ever waits for the operating system to schedule a thread that has not begun.
#pragma once

#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dlbench::cpu {

/// Flush denormals to zero, on results and operands, in this thread (x86 MXCSR bits 15 and 6). @return the old state
uint32_t enable_flush_to_zero();
void restore_floating_point_state(uint32_t state);

/// [begin, end) of part `part` out of `parts` of n items, boundaries at multiples of `align` (the last may be ragged).
struct Range {
  int64_t begin = 0, end = 0;
};
Range part_of(int64_t n, int part, int parts, int64_t align);

class Team {
 public:
  /// @param threads  the caller included
  /// @param cpus     CPU numbers that workers are pinned to, one each after the caller's; empty: not pinned. The caller
  ///                 itself is never pinned: threads that the program starts later would inherit the one CPU.
  Team(int threads, std::vector<int> cpus);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const { return threads_; }
  /// How many workers are pinned; threads() - 1 unless the system refused.
  int pinned_workers() const { return pinned_.load(std::memory_order_relaxed); }

  /// body(part) for every part in [0, threads()).
  template <typename Body>
  void run(const Body& body) {
    if (threads_ == 1) return body(0);
    dispatch([](const void* context, int part) { (*static_cast<const Body*>(context))(part); }, &body);
  }

  /// body(begin, end) over [0, n) in at most threads() equal parts of at least `grain` items; one part runs at once
  /// here.
  template <typename Body>
  void parallel_for(int64_t n, int64_t grain, int64_t align, const Body& body) {
    const int parts = static_cast<int>(std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, threads_));
    if (n <= 0) return;
    if (parts == 1) return body(int64_t{0}, n);
    run([&](int part) {
      if (part >= parts) return;
      const Range r = part_of(n, part, parts, align);
      if (r.begin < r.end) body(r.begin, r.end);
    });
  }

  /// body(task, part) for every task in [0, count): each part starts with its own share and then helps the others, so
  /// which thread does a task depends on timing, but what a task computes does not.
  template <typename Body>
  void parallel_tasks(int64_t count, const Body& body) {
    if (threads_ == 1 || count <= 1) {
      for (int64_t task = 0; task < count; ++task) body(task, 0);
      return;
    }
    for (int p = 0; p < threads_; ++p)
      shares_[static_cast<size_t>(p)].next.store(part_of(count, p, threads_, 1).begin, std::memory_order_relaxed);
    run([&](int part) {
      for (int step = 0; step < threads_; ++step) {
        const int victim = part + step < threads_ ? part + step : part + step - threads_;
        std::atomic<int64_t>& next = shares_[static_cast<size_t>(victim)].next;
        const int64_t end = part_of(count, victim, threads_, 1).end;
        for (int64_t task = next.fetch_add(1, std::memory_order_relaxed); task < end;
             task = next.fetch_add(1, std::memory_order_relaxed)) {
          body(task, part);
        }
      }
    });
  }

  /// Sends the waiting workers to sleep, so that another thread pool gets the cores. The next `run` wakes them again.
  void stand_down();

 private:
  using Job = void (*)(const void* context, int part);
  struct alignas(128) Slot {
    std::atomic<uint64_t> claimed{0};   ///< last epoch whose part was begun, by the worker or by the caller
    std::atomic<uint64_t> done{0};      ///< last epoch whose part is complete
    std::atomic<bool> resident{false};  ///< a worker is in, or on its way into, `wait_for_work`
  };
  struct alignas(128) Share {
    std::atomic<int64_t> next{0};
  };
  class Observer;

  void dispatch(Job job, const void* context);
  void wait_for_work(int part);
  void pin(int part);

  int threads_;
  std::vector<int> cpus_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Share[]> shares_;
  std::atomic<int> pinned_{0};
  std::atomic<bool> stop_{false};
  alignas(128) std::atomic<uint64_t> epoch_{0};
  Job job_ = nullptr;
  const void* context_ = nullptr;
  std::unique_ptr<tbb::task_arena> arena_;
  std::unique_ptr<Observer> observer_;
};

}  // namespace dlbench::cpu
