// The parity suite: every op, at every precision, against `reference`, on the device that DLBENCH_TEST_DEVICE names.
//
// Why: one suite for every device; nothing in it knows which one runs, so that both sides of a comparison are held to
// the same contract (src/core/device/ops.h).
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "support/device_under_test.h"
#include "support/op_case.h"

namespace dlbench::test {

/// A test per precision. Where the device doesn't support the op, the call must say so.
class Parity : public ::testing::TestWithParam<Precision> {
 protected:
  static Precision precision() { return GetParam(); }
  static DType type() { return storage_of(GetParam()); }
  static bool supported(Op op) {
    const Support support = device_under_test().ops().supports(op, GetParam());
    if (support.level != SupportLevel::native) {
      EXPECT_FALSE(support.reason.empty())
          << to_string(op) << " is " << to_string(support.level) << " without a reason";
    }
    return support.level != SupportLevel::no;
  }
  /// Runs the case; where the op isn't supported, it must throw UnsupportedError.
  static void check(Op op, const OpCase& op_case) {
    if (supported(op)) {
      EXPECT_EQ(check_case(device_under_test(), oracle(), op_case), "");
    } else {
      EXPECT_THROW(check_case(device_under_test(), oracle(), op_case), UnsupportedError) << op_case.name;
    }
  }
  static std::string name(Op op, const std::string& what) {
    return fmt::format("{} {} {}", to_string(op), to_string(GetParam()), what);
  }
};

inline std::string precision_name(const ::testing::TestParamInfo<Precision>& info) {
  return std::string(to_string(info.param));
}

}  // namespace dlbench::test

/// Runs the TEST_Ps of `suite` at every precision.
#define DLB_EVERY_PRECISION(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::ValuesIn(::dlbench::all_precisions()), ::dlbench::test::precision_name)
