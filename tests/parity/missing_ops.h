// The ops of which a device may still say that it has no implementation, though its `supports` doesn't.
//
// Why a list: a case of an op that came on one side first must neither be left out nor keep the suite from passing.
// Promises: nothing else in the suite tolerates a missing op; an entry that is no longer needed hides nothing, because
// an implementation that exists is checked whether it is listed or not.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/device/ops.h"

namespace dlbench::test {

inline bool may_be_missing(std::string_view kind, Op op) {
  static const std::vector<std::pair<std::string_view, Op>> missing = {
      {"cpu", Op::conv2d_forward},
      {"cpu", Op::conv2d_backward_data},
      {"cpu", Op::conv2d_backward_weights},
      {"cpu", Op::pool_forward},
      {"cpu", Op::pool_backward},
      {"cpu", Op::batch_norm_forward},
      {"cpu", Op::batch_norm_backward},
      {"cpu", Op::layer_norm_forward},
      {"cpu", Op::layer_norm_backward},
      {"cpu", Op::softmax_forward},
      {"cpu", Op::softmax_backward},
      {"cpu", Op::cross_entropy},
      {"cpu", Op::embedding_forward},
      {"cpu", Op::embedding_backward},
      {"cpu", Op::attention_forward},
      {"cpu", Op::attention_backward},
      {"cpu", Op::prepare_update},
      {"cpu", Op::sgd_step},
      {"cpu", Op::adamw_step},
      {"gpu", Op::conv2d_forward},
      {"gpu", Op::conv2d_backward_data},
      {"gpu", Op::conv2d_backward_weights},
      {"gpu", Op::pool_forward},
      {"gpu", Op::pool_backward},
      {"gpu", Op::batch_norm_forward},
      {"gpu", Op::batch_norm_backward},
      {"gpu", Op::layer_norm_forward},
      {"gpu", Op::layer_norm_backward},
      {"gpu", Op::softmax_forward},
      {"gpu", Op::softmax_backward},
      {"gpu", Op::cross_entropy},
      {"gpu", Op::embedding_forward},
      {"gpu", Op::embedding_backward},
      {"gpu", Op::attention_forward},
      {"gpu", Op::attention_backward},
      {"gpu", Op::prepare_update},
      {"gpu", Op::sgd_step},
      {"gpu", Op::adamw_step},
  };
  for (const auto& [device, listed] : missing) {
    if (device == kind && listed == op) return true;
  }
  return false;
}

}  // namespace dlbench::test
