// What the parity cases of the training ops share: types, tolerances and inputs with a meaning.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "core/math/optimizer.h"
#include "core/measure/buffers.h"
#include "parity/parity.h"

namespace dlbench::test {

constexpr ImageLayout kLayouts[] = {ImageLayout::nchw, ImageLayout::nhwc};
inline const char* name_of(ImageLayout layout) {
  return layout == ImageLayout::nchw ? "nchw" : "nhwc";
}

class TrainingParity : public Parity {
 protected:
  /// Means, losses and optimizer state.
  static DType statistics_type() { return accumulate_of(GetParam()); }

  /// Of an output in the storage type. A matrix-only precision is its storage type in every op but products.
  static OutputTolerance tolerance(Op op, int64_t reduction_length, double magnitude = 0) {
    const bool products = op == Op::conv2d_forward || op == Op::conv2d_backward_data ||
                          op == Op::conv2d_backward_weights || op == Op::attention_forward ||
                          op == Op::attention_backward;
    const Precision p = info(GetParam()).matrix_only && !products ? Precision::fp32 : GetParam();
    return tolerance_of(op, p, reduction_length, magnitude);
  }
  /// Of an output in the statistics type that is made of inputs as they are: nothing was rounded to the storage type.
  static OutputTolerance exact_input_tolerance(Op op, int64_t reduction_length, double magnitude = 0) {
    const Precision p = statistics_type() == DType::f64 ? Precision::fp64 : Precision::fp32;
    return tolerance_of(op, p, reduction_length, magnitude);
  }

  /// center + spread * N(0,1), and positive.
  static CaseBuffer positive(const std::string& buffer, DType dtype, int64_t elements, double center = 1,
                             double spread = 0.2) {
    std::vector<double> values(static_cast<size_t>(elements));
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::fabs(center + spread * normal(buffer, i));
    return input_values(buffer, dtype, values);
  }
  static double normal(const std::string& buffer, size_t i) {
    return static_cast<double>(normal_value(2, stream_of(buffer, 0), i, static_cast<float>(kIrwinHallScale)));
  }

  /// The state of training as 16 words.
  static CaseBuffer state_input(const TrainingState& state) { return input_values("state", DType::i32, words(state)); }
  static std::vector<double> words(const TrainingState& state) {
    int32_t raw[16];
    std::memcpy(raw, &state, sizeof raw);
    return std::vector<double>(raw, raw + 16);
  }

  /// The call must throw std::invalid_argument before it touches anything.
  static void expect_refused(Op op, const std::string& what, const std::function<void(Ops& ops, void* memory)>& call) {
    DeviceBuffer memory(device_under_test(), 1 << 12);
    try {
      call(device_under_test().ops(), memory.data());
      ADD_FAILURE() << to_string(op) << " accepted " << what;
    } catch (const std::invalid_argument&) {
    }
  }
  /// The larger of what the device and the oracle ask for.
  template <typename Query>
  static CaseBuffer workspace_for(Query query) {
    return workspace(std::max(query(device_under_test().ops()), query(oracle().ops())));
  }
};

inline void* or_null(bool wanted, void* pointer) {
  return wanted ? pointer : nullptr;
}

}  // namespace dlbench::test
