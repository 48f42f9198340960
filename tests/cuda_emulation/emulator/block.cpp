#include "cuda_emulation/emulator/block.h"

#include <bit>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdlib>
#include <cstring>

#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/sanitizer.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace dlbench::cuda_emulation {
namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = sanitizer::kActive ? 512 * 1024 : 128 * 1024;

struct KeptStack {  // the stacks of the pool are never given back
  context::stack_context allocate() { return {}; }
  void deallocate(context::stack_context&) {}
};

std::string to_text(const std::source_location& where) {
  const std::string file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line());
}

bool same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

ThreadOrder order_from_environment() {
  const char* text = std::getenv("DLBENCH_EMULATION_THREAD_ORDER");
  return text && std::string(text) == "reverse" ? ThreadOrder::reverse : ThreadOrder::forward;
}

}  // namespace

// A fibre that runs threads until one waits; then it is resumed when that wait is over.
class Worker {
 public:
  explicit Worker(BlockRunner& runner) : runner_(runner) {
    const context::stack_context stack = context::protected_fixedsize_stack(kStackBytes).allocate();
    // Below the usable stack lies the guard page, which `size` counts.
    bottom_ = static_cast<uint8_t*>(stack.sp) - stack.size;
    size_ = stack.size;
    fiber_ = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), KeptStack{},
                            [this](context::fiber&& from) { return main(std::move(from)); });
  }

  void resume() {
    runner_.worker_ = this;
    void* saved = nullptr;
    sanitizer::leave_for(&saved, bottom_, size_);
    fiber_ = std::move(fiber_).resume();
    sanitizer::arrive(saved, nullptr, nullptr);
    runner_.worker_ = nullptr;
  }

  void yield() {
    void* saved = nullptr;
    sanitizer::leave_for(&saved, scheduler_bottom_, scheduler_size_);
    scheduler_ = std::move(scheduler_).resume();
    sanitizer::arrive(saved, &scheduler_bottom_, &scheduler_size_);
  }

 private:
  context::fiber main(context::fiber&& from) {
    sanitizer::arrive(nullptr, &scheduler_bottom_, &scheduler_size_);
    scheduler_ = std::move(from);
    for (;;) {
      runner_.run_started_threads();
      yield();
    }
  }

  BlockRunner& runner_;
  context::fiber fiber_, scheduler_;
  const void *bottom_, *scheduler_bottom_ = nullptr;
  size_t size_, scheduler_size_ = 0;
};

BlockRunner& BlockRunner::instance() {
  static BlockRunner* runner = new BlockRunner;  // never destroyed: its fibres never end
  return *runner;
}

BlockRunner::BlockRunner() : order_(order_from_environment()) {}

void BlockRunner::run(const Launch& launch) {
  launch_ = &launch;
  gridDim = launch.grid;
  blockDim = launch.block;
  count_ = launch.block.x * launch.block.y * launch.block.z;
  for (blockIdx.z = 0; blockIdx.z < launch.grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < launch.grid.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < launch.grid.x; ++blockIdx.x) run_block();
    }
  }
  launch_ = nullptr;
}

void BlockRunner::run_block() {
  reset_shared();
  threads_.assign(count_, Thread{});
  started_ = ended_ = 0;
  const unsigned warps = (count_ + kWarpLanes - 1) / kWarpLanes;
  const auto for_each_warp = [&](auto visit) {
    for (unsigned w = 0; w < warps; ++w) visit((order_ == ThreadOrder::forward ? w : warps - 1 - w) * kWarpLanes);
  };
  for_each_warp([&](unsigned first) {
    start_warp(first);
    finish_warp_calls(first);
  });
  while (ended_ < count_) {
    resolve_barrier();
    for_each_warp([&](unsigned first) {
      resume_released(first);
      finish_warp_calls(first);
    });
  }
  check_shared();
}

void BlockRunner::start_warp(unsigned first) {
  start_limit_ = order_ == ThreadOrder::forward ? std::min(first + kWarpLanes, count_) : count_ - first;
  while (started_ < start_limit_) {
    if (idle_.empty()) idle_.push_back(new Worker(*this));
    Worker* worker = idle_.back();
    idle_.pop_back();
    worker->resume();
  }
}

void BlockRunner::finish_warp_calls(unsigned first) {
  while (resolve_warp(first)) resume_released(first);
}

void BlockRunner::resume_released(unsigned first) {
  const unsigned end = std::min(first + kWarpLanes, count_);
  for (unsigned i = first; i < end; ++i) {
    Thread& t = threads_[order_ == ThreadOrder::forward ? i : end - 1 - (i - first)];
    if (t.state != State::released) continue;
    t.state = State::running;
    t.worker->resume();
  }
}

// On a fibre: plain calls, one thread after another. A thread that waits leaves this loop's fibre in the middle.
void BlockRunner::run_started_threads() {
  while (take_next_thread()) {
    launch_->body();
    threads_[current_].state = State::ended;
    ++ended_;
  }
  idle_.push_back(worker_);
}

bool BlockRunner::take_next_thread() {
  if (started_ == start_limit_) return false;
  const unsigned index = order_ == ThreadOrder::forward ? started_ : count_ - 1 - started_;
  ++started_;
  threads_[index].state = State::running;
  enter(index);
  return true;
}

void BlockRunner::enter(unsigned index) {
  current_ = index;
  threadIdx.x = index % blockDim.x;
  threadIdx.y = index / blockDim.x % blockDim.y;
  threadIdx.z = index / (blockDim.x * blockDim.y);
}

void BlockRunner::wait() {
  const unsigned index = current_;
  threads_[index].worker = worker_;
  worker_->yield();
  enter(index);
}

int BlockRunner::block_barrier(BarrierOp op, int predicate, const std::source_location& where) {
  Thread& t = threads_[current_];
  t.state = State::at_barrier;
  t.barrier = op;
  t.value = predicate != 0;
  t.where = where;
  wait();
  return static_cast<int>(threads_[current_].result);
}

uint64_t BlockRunner::warp_collective(WarpOp op, uint32_t mask, uint64_t value, int source,
                                      const std::source_location& where) {
  Thread& t = threads_[current_];
  t.state = State::at_warp_op;
  t.op = op;
  t.mask = mask;
  t.value = value;
  t.source = source;
  t.where = where;
  wait();
  return threads_[current_].result;
}

// Every thread of the warp waits or has ended; false when none waits for others of the warp.
bool BlockRunner::resolve_warp(unsigned first) {
  bool progress = false;
  const unsigned end = std::min(first + kWarpLanes, count_);
  for (unsigned i = first; i < end; ++i) {
    if (threads_[i].state != State::at_warp_op) continue;
    check_warp_group(first, i);
    release_warp_group(first, threads_[i].mask);
    progress = true;
  }
  return progress;
}

// CUDA C++ Programming Guide, "Warp Shuffle Functions": every lane named in the mask must execute the same intrinsic
// with the same mask. Lanes beyond the end of the block are allowed in it, as long as nothing is read from them.
void BlockRunner::check_warp_group(unsigned first, unsigned waiting) {
  const Thread& t = threads_[waiting];
  const std::string at = to_text(t.where);
  if (!(t.mask >> (waiting - first) & 1)) {
    fail_thread(waiting, fmt::format("isn't named in its own mask 0x{:08x} at {}", t.mask, at));
  }
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    const unsigned i = first + lane;
    if (!(t.mask >> lane & 1) || i >= count_) continue;
    const Thread& other = threads_[i];
    if (other.state == State::ended) {
      fail_thread(waiting,
                  fmt::format("waits at {} for lane {} of mask 0x{:08x}, but that thread has ended", at, lane, t.mask));
    }
    if (other.state != State::at_warp_op || other.op != t.op || other.mask != t.mask) {
      fail_thread(waiting, fmt::format("waits at {} for lane {} of mask 0x{:08x}, but that thread waits at {}{}", at,
                                       lane, t.mask, to_text(other.where),
                                       other.state == State::at_warp_op ? fmt::format(" with mask 0x{:08x}", other.mask)
                                                                        : " for the whole block"));
    }
  }
  if (t.op != WarpOp::shuffle) return;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (!(t.mask >> lane & 1) || first + lane >= count_) continue;
    const int source = threads_[first + lane].source;
    const bool there = source >= 0 && source < kWarpLanes && (t.mask >> source & 1) && first + source < count_;
    if (!there)
      fail_thread(first + lane, fmt::format("reads lane {} at {}, which isn't in mask 0x{:08x} or not in the block",
                                            source, at, t.mask));
  }
}

void BlockRunner::release_warp_group(unsigned first, uint32_t mask) {
  const WarpOp op = threads_[first + static_cast<unsigned>(std::countr_zero(mask))].op;
  uint64_t ballot = 0, all = 1;
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (!(mask >> lane & 1) || first + lane >= count_) continue;
    const bool predicate = threads_[first + lane].value != 0;
    ballot |= static_cast<uint64_t>(predicate) << lane;
    all &= predicate;
  }
  for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
    if (!(mask >> lane & 1) || first + lane >= count_) continue;
    Thread& t = threads_[first + lane];
    switch (op) {
      case WarpOp::sync:
        break;
      case WarpOp::shuffle:
        t.result = threads_[first + static_cast<unsigned>(t.source)].value;
        break;
      case WarpOp::ballot:
        t.result = ballot;
        break;
      case WarpOp::any:
        t.result = ballot != 0;
        break;
      case WarpOp::all:
        t.result = all;
        break;
    }
    t.state = State::released;
  }
}

void BlockRunner::resolve_barrier() {
  unsigned waiting = 0;
  while (threads_[waiting].state != State::at_barrier) ++waiting;
  const Thread& t = threads_[waiting];
  int sum = 0;
  for (unsigned i = 0; i < count_; ++i) {
    const Thread& other = threads_[i];
    if (other.state == State::ended) {
      fail_thread(waiting,
                  fmt::format("waits at the barrier {} that thread {} never reached: it has ended (barrier divergence)",
                              to_text(t.where), name_of(i)));
    }
    if (!same_place(other.where, t.where)) {
      fail_thread(waiting, fmt::format("waits at the barrier {} while thread {} waits at {} (barrier divergence)",
                                       to_text(t.where), name_of(i), to_text(other.where)));
    }
    sum += static_cast<int>(other.value);
  }
  for (unsigned i = 0; i < count_; ++i) {
    switch (threads_[i].barrier) {
      case BarrierOp::sync:
        break;
      case BarrierOp::count:
        threads_[i].result = static_cast<uint64_t>(sum);
        break;
      case BarrierOp::both:
        threads_[i].result = sum == static_cast<int>(count_);
        break;
      case BarrierOp::either:
        threads_[i].result = sum != 0;
        break;
    }
    threads_[i].state = State::released;
  }
}

uint32_t BlockRunner::live_lanes() const {
  const unsigned first = current_ / kWarpLanes * kWarpLanes;
  uint32_t lanes = 0;
  for (unsigned i = first; i < std::min(first + kWarpLanes, count_); ++i) {
    lanes |= static_cast<uint32_t>(threads_[i].state != State::ended) << (i - first);
  }
  return lanes;
}

std::string BlockRunner::name_of(unsigned index) const {
  return fmt::format("({},{},{})", index % blockDim.x, index / blockDim.x % blockDim.y,
                     index / (blockDim.x * blockDim.y));
}

std::string BlockRunner::running_thread() const {
  if (!launch_) return "";
  return fmt::format("kernel {}, block ({},{},{}), thread {}", launch_->name, blockIdx.x, blockIdx.y, blockIdx.z,
                     name_of(current_));
}

void BlockRunner::fail_thread(unsigned index, const std::string& what) const {
  fail(fmt::format("kernel {}, block ({},{},{}): thread {} {}", launch_->name, blockIdx.x, blockIdx.y, blockIdx.z,
                   name_of(index), what));
}

int block_barrier(BarrierOp op, int predicate, const std::source_location& where) {
  return BlockRunner::instance().block_barrier(op, predicate, where);
}

uint64_t warp_collective(WarpOp op, uint32_t mask, uint64_t value, int source, const std::source_location& where) {
  return BlockRunner::instance().warp_collective(op, mask, value, source, where);
}

int lane_index() {
  return BlockRunner::instance().lane_index();
}
uint32_t live_lanes() {
  return BlockRunner::instance().live_lanes();
}

}  // namespace dlbench::cuda_emulation
