// Offsets of activations in one block of memory: tensors that never live at the same time share bytes.
//
// Why: all memory of a training step is planned before it runs, so that a point which can't fit is refused with its
// size and the timed region allocates nothing. Greedy by size, as TensorFlow Lite's planner (Pisarchyk & Lee,
// "Efficient memory management for deep neural net inference", 2020): the largest tensor first, each at the lowest
// place that no tensor alive at the same time occupies. Promises: deterministic; offsets are multiples of
// kArenaAlignment.
#pragma once

#include <cstdint>
#include <vector>

namespace dlbench {

/// As far apart as what Device::allocate returns.
inline constexpr int64_t kArenaAlignment = 256;

/// Alive from instruction `first` to instruction `last`, both included.
struct ArenaTensor {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct ArenaPlan {
  std::vector<int64_t> offsets;  ///< bytes, per tensor
  int64_t bytes = 0;             ///< of the whole arena
  int64_t lower_bound = 0;       ///< the most bytes that are alive at once: no plan needs less
};

/// @throws Error when the bytes can't be counted in 63 bits.
ArenaPlan plan_arena(const std::vector<ArenaTensor>& tensors);

}  // namespace dlbench
