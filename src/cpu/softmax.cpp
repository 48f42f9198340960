// Softmax and its cross-entropy. Twin: src/gpu/softmax.cu.
#include "core/math/optimizer.h"
#include "cpu/ops.h"

namespace dlbench::cpu {

namespace {
/// Cost of an exponential beside moving a byte, for the decision to hand work over.
constexpr int64_t kExpCost = 4;

int64_t stride_of(const RowsSpec& s) {
  return s.row_stride == 0 ? s.columns : s.row_stride;
}
}  // namespace

void CpuOps::softmax_forward(const RowsSpec& s, const void* x, void* y) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::softmax_forward, s.precision);
  if (s.columns == 0) return;
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = stride_of(s) * e;
  const bool stream = x != y && streams_rows(2 * s.rows * row, y, row);
  team_.parallel_for(s.rows, grain(kExpCost * row), 1, [&](int64_t begin, int64_t end) {
    k.softmax_forward(static_cast<const char*>(x) + begin * row, static_cast<char*>(y) + begin * row, end - begin,
                      s.columns, stride_of(s), stream);
  });
}

void CpuOps::softmax_backward(const RowsSpec& s, const void* dy, const void* y, void* dx) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::softmax_backward, s.precision);
  if (s.columns == 0) return;
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = stride_of(s) * e;
  const bool stream = dx != dy && streams_rows(3 * s.rows * row, dx, row);
  team_.parallel_for(s.rows, grain(3 * row), 1, [&](int64_t begin, int64_t end) {
    k.softmax_backward(static_cast<const char*>(dy) + begin * row, static_cast<const char*>(y) + begin * row,
                       static_cast<char*>(dx) + begin * row, end - begin, s.columns, stride_of(s), stream);
  });
}

void CpuOps::cross_entropy(const RowsSpec& s, const void* logits, const int32_t* targets, const TrainingState* state,
                           void* losses, void* dlogits) {
  require_valid(s);
  const SequenceKernels& k = sequence(Op::cross_entropy, s.precision);
  const int64_t e = static_cast<int64_t>(size_of(storage_of(s.precision))), row = stride_of(s) * e;
  const int64_t wide = static_cast<int64_t>(size_of(accumulate_of(s.precision)));
  const double scale = state == nullptr ? 1.0 : static_cast<double>(state->loss_scale);
  team_.parallel_for(s.rows, grain(kExpCost * row), 1, [&](int64_t begin, int64_t end) {
    k.cross_entropy({.logits = static_cast<const char*>(logits) + begin * row,
                     .targets = targets + begin,
                     .losses = static_cast<char*>(losses) + begin * wide,
                     .dlogits = dlogits == nullptr ? nullptr : static_cast<char*>(dlogits) + begin * row,
                     .rows = end - begin,
                     .columns = s.columns,
                     .row_stride = stride_of(s),
                     .gradient_scale = scale / static_cast<double>(s.rows)});
  });
}

}  // namespace dlbench::cpu
