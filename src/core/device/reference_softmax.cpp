// Softmax and cross-entropy of the reference, row by row; the largest value of a row is subtracted first.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/device/reference_elements.h"
#include "core/device/reference_ops.h"
#include "core/math/elementwise.h"
#include "core/math/optimizer.h"

namespace dlbench {

namespace {

int64_t stride_of(const RowsSpec& s) {
  return s.row_stride != 0 ? s.row_stride : s.columns;
}

/// Replaces the row by e^(x - largest) and gives its sum and the largest value.
struct Exponentials {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  explicit Exponentials(std::vector<double>& row) {
    for (const double value : row) largest = MaxOfTwo{}(largest, value);
    for (double& value : row) {
      value = std::exp(value - largest);
      sum += value;
    }
  }
};

}  // namespace

void ReferenceOps::softmax_forward(const RowsSpec& s, const void* x, void* y) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  for (int64_t r = 0; r < s.rows; ++r) {
    const Run run{r * stride_of(s), s.columns, 1};
    std::vector<double> row = load_run(type, x, run);
    const Exponentials exponentials(row);
    for (double& value : row) value /= exponentials.sum;
    store_run(type, y, run, row);
  }
}

void ReferenceOps::softmax_backward(const RowsSpec& s, const void* dy, const void* y, void* dx) {
  require_valid(s);
  const DType type = storage_of(s.precision);
  for (int64_t r = 0; r < s.rows; ++r) {
    const Run run{r * stride_of(s), s.columns, 1};
    const std::vector<double> probability = load_run(type, y, run);
    std::vector<double> gradient = load_run(type, dy, run);
    double mean = 0;
    for (size_t i = 0; i < gradient.size(); ++i) mean += gradient[i] * probability[i];
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = probability[i] * (gradient[i] - mean);
    store_run(type, dx, run, gradient);
  }
}

void ReferenceOps::cross_entropy(const RowsSpec& s, const void* logits, const int32_t* targets,
                                 const TrainingState* state, void* losses, void* dlogits) {
  require_valid(s);
  const DType type = storage_of(s.precision), statistics = accumulate_of(s.precision);
  const double scale = (state ? static_cast<double>(state->loss_scale) : 1.0) / static_cast<double>(s.rows);
  for (int64_t r = 0; r < s.rows; ++r) {
    std::vector<double> row = load_run(type, logits, {r * stride_of(s), s.columns, 1});
    const int64_t target = targets[r];
    const bool counts = target >= 0 && target < s.columns;
    const double chosen = counts ? row[static_cast<size_t>(target)] : 0;
    const Exponentials exponentials(row);
    const double loss = counts ? std::log(exponentials.sum) - (chosen - exponentials.largest) : 0;
    store_run(statistics, losses, {r, 1, 1}, &loss);
    if (!dlogits) continue;
    std::vector<double> gradient(static_cast<size_t>(stride_of(s)));
    for (size_t i = 0; counts && i < row.size(); ++i) {
      gradient[i] = (row[i] / exponentials.sum - (static_cast<int64_t>(i) == target ? 1 : 0)) * scale;
    }
    store_run(type, dlogits, {r * stride_of(s), stride_of(s), 1}, gradient);
  }
}

}  // namespace dlbench
