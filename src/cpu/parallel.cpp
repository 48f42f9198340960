#include "cpu/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <chrono>
#include <thread>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace dlbench::cpu {

namespace {

/// How long a worker waits for the next operation before it gives its core back. Longer than the gap between two
/// operations of a step, shorter than anything that the harness does between two blocks of timings.
constexpr auto kWaitForWork = std::chrono::microseconds(200);

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

thread_local int pinned_to = -1;

}  // namespace

#if defined(__x86_64__)
uint32_t enable_flush_to_zero() {
  const uint32_t old = _mm_getcsr();
  _mm_setcsr(old | 0x8040u);
  return old;
}
void restore_floating_point_state(uint32_t state) {
  _mm_setcsr(state);
}
#else
uint32_t enable_flush_to_zero() {
  return 0;
}
void restore_floating_point_state(uint32_t) {}
#endif

Range part_of(int64_t n, int part, int parts, int64_t align) {
  // Whole units of `align` items, spread so that no part has more than one unit above another.
  const int64_t units = (n + align - 1) / align, base = units / parts, extra = units % parts;
  const int64_t first = base * part + std::min<int64_t>(part, extra);
  const int64_t count = base + (part < extra ? 1 : 0);
  return {std::min(n, first * align), std::min(n, (first + count) * align)};
}

/// Hands a thread that leaves the arena back to oneTBB as it was.
class Team::Observer final : public tbb::task_scheduler_observer {
 public:
  explicit Observer(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena) {
    cpu_set_t set;
    all_known_ = sched_getaffinity(0, sizeof set, &set) == 0;
    all_ = set;
    observe(true);
  }
  ~Observer() override { observe(false); }
  void on_scheduler_exit(bool is_worker) override {
    if (is_worker && pinned_to >= 0 && all_known_) {
      pthread_setaffinity_np(pthread_self(), sizeof all_, &all_);
      pinned_to = -1;
    }
  }

 private:
  cpu_set_t all_;
  bool all_known_ = false;
};

Team::Team(int threads, std::vector<int> cpus)
    : threads_(std::max(1, threads)),
      cpus_(std::move(cpus)),
      slots_(std::make_unique<Slot[]>(static_cast<size_t>(threads_))),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(threads_))) {
  // The caller is part 0 wherever it runs now; workers take the CPUs after that one.
  const auto here = std::find(cpus_.begin(), cpus_.end(), sched_getcpu());
  if (here != cpus_.end()) std::rotate(cpus_.begin(), here, cpus_.end());
  if (threads_ == 1) return;
  arena_ = std::make_unique<tbb::task_arena>(threads_, 1);
  arena_->initialize();
  observer_ = std::make_unique<Observer>(*arena_);
}

Team::~Team() {
  if (threads_ == 1) return;
  stand_down();
  observer_.reset();
  arena_.reset();
}

void Team::pin(int part) {
  if (static_cast<size_t>(part) >= cpus_.size()) return;
  const int cpu = cpus_[static_cast<size_t>(part)];
  if (pinned_to == cpu) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) return;
  pinned_to = cpu;
  int known = pinned_.load(std::memory_order_relaxed);
  while (known < part && !pinned_.compare_exchange_weak(known, part, std::memory_order_relaxed)) {
  }
}

void Team::wait_for_work(int part) {
  pin(part);
  // Set here and not where a thread enters the arena: oneTBB may load the state kept with the task after that.
  const uint32_t floating_point_state = enable_flush_to_zero();
  Slot& slot = slots_[static_cast<size_t>(part)];
  auto idle_since = std::chrono::steady_clock::now();
  for (int spin = 1;; ++spin) {
    const uint64_t epoch = epoch_.load(std::memory_order_acquire);
    uint64_t previous = epoch - 1;
    if (slot.claimed.load(std::memory_order_relaxed) == previous && epoch != 0 &&
        slot.claimed.compare_exchange_strong(previous, epoch, std::memory_order_acquire)) {
      job_(context_, part);
      slot.done.store(epoch, std::memory_order_release);
      spin = 0;
      continue;
    }
    if (stop_.load(std::memory_order_relaxed)) break;
    relax();
    if (spin == 1) idle_since = std::chrono::steady_clock::now();
    if (spin % 64 == 0 && std::chrono::steady_clock::now() - idle_since > kWaitForWork) break;
  }
  restore_floating_point_state(floating_point_state);
  slot.resident.store(false, std::memory_order_release);
}

void Team::dispatch(Job job, const void* context) {
  const uint64_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  job_ = job;
  context_ = context;
  epoch_.store(epoch, std::memory_order_release);
  for (int part = 1; part < threads_; ++part) {
    Slot& slot = slots_[static_cast<size_t>(part)];
    if (!slot.resident.load(std::memory_order_relaxed)) {
      slot.resident.store(true, std::memory_order_relaxed);
      arena_->enqueue([this, part] { wait_for_work(part); });
    }
  }
  job(context, 0);
  for (int part = 1; part < threads_; ++part) {
    Slot& slot = slots_[static_cast<size_t>(part)];
    uint64_t previous = epoch - 1;
    if (slot.claimed.load(std::memory_order_relaxed) == previous &&
        slot.claimed.compare_exchange_strong(previous, epoch, std::memory_order_relaxed)) {
      job(context, part);
      slot.done.store(epoch, std::memory_order_relaxed);
    }
  }
  for (int part = 1; part < threads_; ++part) {
    for (int spin = 1; slots_[static_cast<size_t>(part)].done.load(std::memory_order_acquire) != epoch; ++spin) {
      relax();
      if (spin % 65536 == 0) std::this_thread::yield();
    }
  }
}

void Team::stand_down() {
  if (threads_ == 1) return;
  stop_.store(true, std::memory_order_relaxed);
  for (int part = 1; part < threads_; ++part) {
    while (slots_[static_cast<size_t>(part)].resident.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  stop_.store(false, std::memory_order_relaxed);
}

}  // namespace dlbench::cpu
