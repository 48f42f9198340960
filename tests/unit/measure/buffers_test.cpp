#include "core/measure/buffers.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "core/base/random.h"
#include "core/device/reference_device.h"
#include "unit/measure/test_workload.h"

namespace dlbench {
namespace {

using test::buffer;

class Buffers : public testing::Test {
 protected:
  std::unique_ptr<Device> device = make_reference_device({});
};

TEST_F(Buffers, StartFromTheCounterBasedGenerator) {
  BufferSets sets(*device, {buffer("x", BufferRole::input, 5)}, 2, 42);
  const float factor = static_cast<float>(kIrwinHallScale);
  for (int set = 0; set < 2; ++set) {
    const HostTensor x = sets.read(0, set);
    for (int64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(x.at(i), normal_value(42, stream_of("x", set), static_cast<uint64_t>(i), factor));
    }
  }
  EXPECT_NE(sets.read(0, 0).at(0), sets.read(0, 1).at(0));
}

TEST_F(Buffers, IndicesStayBelowTheirBound) {
  BufferSpec spec = buffer("tokens", BufferRole::input, 1000, DType::i32, BufferInit::uniform_index);
  spec.index_bound = 7;
  const HostTensor tokens = BufferSets(*device, {spec}, 1, 1).read(0);
  double largest = 0;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens.at(i), uniform_index(1, stream_of("tokens", 0), static_cast<uint64_t>(i), 7));
    largest = std::max(largest, tokens.at(i));
  }
  EXPECT_EQ(largest, 6);
}

TEST_F(Buffers, OnlyInputsAreCopiedPerSet) {
  const std::vector<BufferSpec> specs = {buffer("x", BufferRole::input, 4), buffer("w", BufferRole::parameter, 4),
                                         buffer("y", BufferRole::output, 4)};
  BufferSets sets(*device, specs, 3, 0);
  ASSERT_EQ(sets.sets(), 3);
  EXPECT_NE(sets.binding(0)[0], sets.binding(1)[0]);
  EXPECT_EQ(sets.binding(0)[1], sets.binding(2)[1]);
  EXPECT_EQ(sets.binding(0)[2], sets.binding(2)[2]);
  EXPECT_EQ(bytes_needed(specs, 3), (3 + 1 + 1) * (16 + 2 * 256));
}

TEST_F(Buffers, OutputsStartAsTheMarkerInEveryType) {
  for (const DType type : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    const HostTensor y = BufferSets(*device, {buffer("y", BufferRole::output, 3, type)}, 1, 0).read(0);
    for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y.at(i))) << to_string(type);
    EXPECT_TRUE(is_marker(y.data(), y.bytes()));
  }
}

TEST_F(Buffers, ResetRestoresEverything) {
  BufferSets sets(*device, {buffer("s", BufferRole::state, 4)}, 1, 3);
  const double before = sets.read(0).at(2);
  std::memset(static_cast<char*>(sets.binding(0)[0]) - 4, 0, 24);
  EXPECT_NE(sets.check_guards(), "");
  sets.reset();
  EXPECT_EQ(sets.check_guards(), "");
  EXPECT_EQ(sets.read(0).at(2), before);
}

TEST_F(Buffers, GuardsNameTheBufferAndTheEnd) {
  BufferSets sets(*device, {buffer("x", BufferRole::input, 4), buffer("y", BufferRole::output, 3)}, 2, 0);
  EXPECT_EQ(sets.check_guards(), "");
  static_cast<char*>(sets.binding(0)[1])[12 + 5] = 0;
  EXPECT_THAT(
      sets.check_guards(),
      testing::HasSubstr("buffer y [3] of f32: the guard zone behind it was overwritten, first 5 bytes past its end"));
  sets.reset();
  static_cast<char*>(sets.binding(1)[0])[-1] = 0;
  EXPECT_THAT(sets.check_guards(),
              testing::HasSubstr(
                  "buffer x [4] of f32: the guard zone before it was overwritten, first 1 bytes before its start"));
}

TEST_F(Buffers, SizesBeyond63BitsAreRefused) {
  EXPECT_THROW(bytes_needed({buffer("x", BufferRole::input, int64_t{1} << 60)}, 4), std::exception);
}

}  // namespace
}  // namespace dlbench
