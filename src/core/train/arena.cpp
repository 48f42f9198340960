#include "core/train/arena.h"

#include <algorithm>
#include <numeric>

#include "core/base/error.h"

namespace dlbench {

namespace {

constexpr int64_t kMostBytes = int64_t{1} << 62;

int64_t aligned(int64_t bytes) {
  if (bytes < 0 || bytes > kMostBytes) throw Error("the activations of the step have more than 2^62 bytes");
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

int64_t sum(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result) || result > kMostBytes) {
    throw Error("the activations of the step have more than 2^62 bytes together");
  }
  return result;
}

/// The most bytes alive at one instruction.
int64_t most_alive(const std::vector<ArenaTensor>& tensors) {
  int64_t end = 0;
  for (const ArenaTensor& tensor : tensors) end = std::max(end, tensor.last + 1);
  std::vector<int64_t> starts(static_cast<size_t>(end) + 1), ends(static_cast<size_t>(end) + 1);
  for (const ArenaTensor& tensor : tensors) {
    int64_t& at_first = starts[static_cast<size_t>(tensor.first)];
    int64_t& behind_last = ends[static_cast<size_t>(tensor.last) + 1];
    at_first = sum(at_first, aligned(tensor.bytes));
    behind_last = sum(behind_last, aligned(tensor.bytes));
  }
  int64_t alive = 0, most = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    alive = sum(alive - ends[i], starts[i]);
    most = std::max(most, alive);
  }
  return most;
}

}  // namespace

ArenaPlan plan_arena(const std::vector<ArenaTensor>& tensors) {
  ArenaPlan plan;
  plan.offsets.assign(tensors.size(), 0);
  plan.lower_bound = most_alive(tensors);
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tensors[a].bytes > tensors[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (const size_t i : order) {
    const ArenaTensor& tensor = tensors[i];
    const int64_t bytes = aligned(tensor.bytes);
    int64_t offset = 0;
    for (const size_t j : placed) {
      const ArenaTensor& other = tensors[j];
      if (other.last < tensor.first || tensor.last < other.first) continue;
      if (plan.offsets[j] >= sum(offset, bytes)) break;  // the gap before it is large enough
      offset = std::max(offset, plan.offsets[j] + aligned(other.bytes));
    }
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, sum(offset, bytes));
    const auto place = std::upper_bound(placed.begin(), placed.end(), offset,
                                        [&](int64_t value, size_t j) { return value < plan.offsets[j]; });
    placed.insert(place, i);
  }
  return plan;
}

}  // namespace dlbench
