// Shapes that don't fit are errors, not wrapped numbers; HostTensor holds any element type.
#include "core/tensor/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"

namespace dlbench {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

TEST(Shape, CountsElementsAndBytes) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({64, 784}), 50176);
  EXPECT_EQ(element_count({64, 0, 784}), 0);
  EXPECT_EQ(byte_count({3, 5}, DType::bf16), 30);
  EXPECT_EQ(byte_count({}, DType::f64), 8);
  EXPECT_EQ(to_string(Shape{64, 784}), "[64, 784]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(Shape, OverflowThrows) {
  EXPECT_EQ(element_count({kLargest}), kLargest);
  EXPECT_THROW(element_count({kLargest, 2}), Error);
  EXPECT_THROW(element_count({int64_t{1} << 32, int64_t{1} << 31}), Error);
  EXPECT_THROW(element_count({-1}), Error);
  EXPECT_THROW(element_count({0, -1}), Error);
  EXPECT_THROW(byte_count({kLargest}, DType::f32), Error);
  EXPECT_THROW(byte_count({kLargest / 4 + 1}, DType::f32), Error);
  EXPECT_EQ(byte_count({kLargest / 4}, DType::f32), kLargest / 4 * 4);
}

TEST(HostTensor, RoundsWhenSetAndWidensWhenRead) {
  HostTensor t({4}, DType::bf16);
  EXPECT_EQ(t.bytes(), 8u);
  EXPECT_EQ(t.at(3), 0);  // zero at the start
  t.set(0, 1.00390625);   // a tie: to the even neighbour
  EXPECT_EQ(t.at(0), 1.0);
  t.set(1, 1e300);
  EXPECT_EQ(t.at(1), std::numeric_limits<double>::infinity());
  t.set(2, -std::numeric_limits<double>::infinity());
  EXPECT_EQ(t.at(2), -std::numeric_limits<double>::infinity());
  t.set(3, std::nan(""));
  EXPECT_TRUE(std::isnan(t.at(3)));
}

TEST(HostTensor, EveryElementType) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i32, DType::u8}) {
    HostTensor t({2, 3}, type);
    EXPECT_EQ(t.size(), 6);
    EXPECT_EQ(t.dtype(), type);
    t.set(5, 100);
    EXPECT_EQ(t.at(5), 100) << to_string(type);
    EXPECT_EQ(t.at(4), 0) << to_string(type);
  }
  EXPECT_EQ(HostTensor().size(), 0);
}

}  // namespace
}  // namespace dlbench
