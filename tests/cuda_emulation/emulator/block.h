// BlockRunner: runs the blocks of a kernel one after another, the threads of a block as fibres.
//
// Why fibres: a barrier or a shuffle stops a thread in the middle of a function; operating-system threads would be slow
// and would hide the order. Boost.Context switches in tens of nanoseconds.
// How: a fibre takes the next thread that hasn't started and runs it as a plain call; when it ends, the next one. Only
// a thread that waits keeps its fibre, and another fibre goes on. So a kernel without synchronisation costs one switch
// per block, and one with barriers a fibre per thread. When every thread waits or has ended, what they wait for is
// resolved. Promises: deterministic; threads run in increasing order up to their first wait (or decreasing,
// ThreadOrder::reverse, so that a missing barrier shows in both directions).
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "cuda_emulation/emulation.h"

namespace dlbench::cuda_emulation {

enum class ThreadOrder : uint8_t { forward, reverse };

inline constexpr unsigned kMaxThreadsPerBlock = 1024;
inline constexpr size_t kMaxSharedBytes =
    48 * 1024;  // without opting in to more (Programming Guide, "Technical Specifications")
inline constexpr int kWarpLanes = 32;

struct Launch {
  std::string name;
  dim3 grid, block;
  size_t shared_bytes = 0;
  std::function<void()> body;
};

class Worker;

class BlockRunner {
 public:
  static BlockRunner& instance();
  void run(const Launch& launch);
  void set_order(ThreadOrder order) { order_ = order; }

  /// "kernel f, block (0,0,0), thread (1,0,0)"; empty when none runs.
  std::string running_thread() const;

  // Called by the running thread.
  int block_barrier(BarrierOp op, int predicate, const std::source_location& where);
  uint64_t warp_collective(WarpOp op, uint32_t mask, uint64_t value, int source, const std::source_location& where);
  int lane_index() const { return static_cast<int>(current_ % kWarpLanes); }
  uint32_t live_lanes() const;
  void* dynamic_shared();
  void* static_shared(const void* key, size_t bytes, size_t alignment, const char* name);

 private:
  friend class Worker;
  enum class State : uint8_t { not_started, running, at_barrier, at_warp_op, released, ended };
  struct Thread {
    State state = State::not_started;
    Worker* worker = nullptr;
    std::source_location where;
    BarrierOp barrier = BarrierOp::sync;
    WarpOp op = WarpOp::sync;
    uint32_t mask = 0;
    int source = 0;
    uint64_t value = 0, result = 0;
  };
  struct SharedArray {
    const void* key;
    const char* name;
    size_t offset, bytes;
  };

  BlockRunner();
  void run_block();
  void run_started_threads();
  bool take_next_thread();
  void enter(unsigned index);
  void wait();
  void start_warp(unsigned first);
  void finish_warp_calls(unsigned first);
  void resume_released(unsigned first);
  bool resolve_warp(unsigned first);
  void release_warp_group(unsigned first, uint32_t mask);
  void check_warp_group(unsigned first, unsigned waiting);
  void resolve_barrier();
  void reset_shared();
  void check_shared() const;
  std::string name_of(unsigned index) const;
  [[noreturn]] void fail_thread(unsigned index, const std::string& what) const;

  const Launch* launch_ = nullptr;
  ThreadOrder order_;
  std::vector<Thread> threads_;
  std::vector<Worker*> idle_;
  Worker* worker_ = nullptr;  ///< runs now
  unsigned current_ = 0, started_ = 0, start_limit_ = 0, ended_ = 0, count_ = 0;
  std::unique_ptr<uint8_t[]> static_arena_, dynamic_arena_;
  std::vector<SharedArray> arrays_;
};

}  // namespace dlbench::cuda_emulation
