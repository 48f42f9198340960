// The suite on devices that are wrong in one way each: every proof of check_case must fail where it should.
#include <cstring>

#include "core/device/reference_device.h"
#include "parity/parity.h"
#include "support/forwarding_device.h"

namespace dlbench::test {
namespace {

constexpr int64_t kM = 6, kN = 10, kK = 8;
const GemmSpec kSpec{.m = kM, .n = kN, .k = kK, .lda = kK + 1, .ldb = kN + 2, .ldc = kN + 3};

OpCase gemm_case() {
  const OutputTolerance tolerance = tolerance_of(Op::gemm, Precision::fp32, kK);
  return {"gemm",
          {input("a", DType::f32, kM * kSpec.lda), input("b", DType::f32, kK * kSpec.ldb),
           output("c", DType::f32, kM * kSpec.ldc, tolerance)},
          [](Ops& ops, const std::vector<void*>& p) { ops.gemm(kSpec, p[0], p[1], nullptr, p[2], nullptr); }};
}

/// A reference device whose gemm is `Wrong`.
template <typename Wrong>
std::string verdict(const OpCase& op_case) {
  auto device = std::make_unique<ForwardingDevice>(make_reference_device({}));
  device->set_ops(std::make_unique<Wrong>(*device));
  return check_case(*device, oracle(), op_case);
}

class WrongOps : public ForwardingOps {
 public:
  explicit WrongOps(ForwardingDevice& device) : ForwardingOps(device.inner().ops()), device_(device) {}

 protected:
  ForwardingDevice& device_;
  int calls_ = 0;
};

struct Right : WrongOps {
  using WrongOps::WrongOps;
};

struct OneElementOff : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    ForwardingOps::gemm(s, a, b, bias, c, pre);
    static_cast<float*>(c)[s.ldc * 3 + 4] += 1e-4f;
  }
};

struct IgnoresLeadingDimensionOfA : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    GemmSpec dense = s;
    dense.lda = 0;
    ForwardingOps::gemm(dense, a, b, bias, c, pre);
  }
};

struct IgnoresLeadingDimensionOfC : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    GemmSpec dense = s;
    dense.ldc = 0;
    ForwardingOps::gemm(dense, a, b, bias, c, pre);
  }
};

struct LeavesLastElementOut : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    ForwardingOps::gemm(s, a, b, bias, c, pre);
    std::memset(static_cast<float*>(c) + s.ldc * (s.m - 1) + s.n - 1, 0xFF, sizeof(float));
  }
};

struct WritesBehindTheBuffer : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    ForwardingOps::gemm(s, a, b, bias, c, pre);
    static_cast<float*>(c)[s.m * s.ldc] = 0;
  }
};

struct WritesIntoItsInput : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    ForwardingOps::gemm(s, a, b, bias, c, pre);
    *static_cast<float*>(const_cast<void*>(a)) = 0;
  }
};

struct NeverTheSameTwice : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    ForwardingOps::gemm(s, a, b, bias, c, pre);
    if (calls_++ % 2) {
      uint32_t bits;
      std::memcpy(&bits, c, sizeof bits);
      bits ^= 1;
      std::memcpy(c, &bits, sizeof bits);
    }
  }
};

struct AllocatesEveryTime : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    const DeviceBuffer scratch(device_, 16);
    ForwardingOps::gemm(s, a, b, bias, c, pre);
  }
};

struct GivesNaN : WrongOps {
  using WrongOps::WrongOps;
  void gemm(const GemmSpec& s, const void* a, const void* b, const void* bias, void* c, void* pre) override {
    ForwardingOps::gemm(s, a, b, bias, c, pre);
    static_cast<float*>(c)[0] = __builtin_nanf("");
  }
};

TEST(SuiteFails, NotOnTheRightDevice) {
  EXPECT_EQ(verdict<Right>(gemm_case()), "");
}

TEST(SuiteFails, OnEachWrongDevice) {
  using ::testing::HasSubstr;
  EXPECT_THAT(verdict<OneElementOff>(gemm_case()), HasSubstr("1 of 60 compared values are wrong"));
  EXPECT_THAT(verdict<IgnoresLeadingDimensionOfA>(gemm_case()), HasSubstr("compared values are wrong"));
  EXPECT_THAT(verdict<IgnoresLeadingDimensionOfC>(gemm_case()), HasSubstr("isn't part of the result"));
  EXPECT_THAT(verdict<LeavesLastElementOut>(gemm_case()), HasSubstr("never written"));
  EXPECT_THAT(verdict<WritesBehindTheBuffer>(gemm_case()), HasSubstr("c was written outside of, 1 byte(s) behind it"));
  EXPECT_THAT(verdict<WritesIntoItsInput>(gemm_case()), HasSubstr("input a was changed at element 0"));
  EXPECT_THAT(verdict<NeverTheSameTwice>(gemm_case()), HasSubstr("two calls gave different bits"));
  EXPECT_THAT(verdict<AllocatesEveryTime>(gemm_case()), HasSubstr("the second call made 1 allocation(s)"));
  EXPECT_THAT(verdict<GivesNaN>(gemm_case()), HasSubstr("nan where reference has"));
}

/// A fill that is off by one unit in the last place passes a tolerance, not a comparison of bits.
struct FillsOneBitOff : WrongOps {
  using WrongOps::WrongOps;
  void fill_normal(const FillSpec& s, void* x) override {
    ForwardingOps::fill_normal(s, x);
    static_cast<unsigned char*>(x)[0] ^= 1;
  }
};

TEST(SuiteFails, OnOneBit) {
  OpCase op_case{
      "fill",
      {output("x", DType::f32, 100, tolerance_of(Op::gemm, Precision::fp32, 100))},
      [](Ops& ops, const std::vector<void*>& p) { ops.fill_normal({.type = DType::f32, .n = 100, .seed = 1}, p[0]); }};
  EXPECT_EQ(verdict<FillsOneBitOff>(op_case), "");
  op_case.buffers[0].bitwise = true;
  EXPECT_THAT(verdict<FillsOneBitOff>(op_case), ::testing::HasSubstr("bits must be equal"));
  EXPECT_EQ(verdict<Right>(op_case), "");
}

constexpr Conv2dSpec kConv{.n = 1, .c = 2, .h = 5, .w = 5, .k = 3, .r = 3, .s = 3, .pad = 1};

OpCase conv_case() {
  const OutputTolerance tolerance = tolerance_of(Op::conv2d_forward, Precision::fp32, 18);
  return {
      "conv2d",
      {input("x", DType::f32, 50), input("w", DType::f32, 54), output("y", DType::f32, 75, tolerance), workspace(16)},
      [](Ops& ops, const std::vector<void*>& p) { ops.conv2d_forward(kConv, p[0], p[1], nullptr, p[2], p[3]); }};
}

/// Its workspace may hold anything afterwards, and something else after the next call.
struct LeavesItsWorkspaceDirty : WrongOps {
  using WrongOps::WrongOps;
  void conv2d_forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y,
                      void* space) override {
    ForwardingOps::conv2d_forward(s, x, w, bias, y, space);
    std::memset(space, ++calls_, 16);
  }
};

struct OverrunsItsWorkspace : WrongOps {
  using WrongOps::WrongOps;
  void conv2d_forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y,
                      void* space) override {
    ForwardingOps::conv2d_forward(s, x, w, bias, y, space);
    std::memset(space, 0, 17);
  }
};

struct CountsOnAZeroedWorkspace : WrongOps {
  using WrongOps::WrongOps;
  void conv2d_forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y,
                      void* space) override {
    ForwardingOps::conv2d_forward(s, x, w, bias, y, space);
    static_cast<float*>(y)[7] += *static_cast<const float*>(space);
  }
};

struct TurnsTheFilterRound : WrongOps {
  using WrongOps::WrongOps;
  void conv2d_forward(const Conv2dSpec& s, const void* x, const void* w, const void* bias, void* y,
                      void* space) override {
    std::vector<float> turned(54);
    for (size_t i = 0; i < turned.size(); ++i) turned[i] = static_cast<const float*>(w)[i / 9 * 9 + 8 - i % 9];
    ForwardingOps::conv2d_forward(s, x, turned.data(), bias, y, space);
  }
};

TEST(SuiteFails, OnAWrongConvolutionAndAWrongWorkspace) {
  using ::testing::HasSubstr;
  EXPECT_EQ(verdict<Right>(conv_case()), "");
  EXPECT_EQ(verdict<LeavesItsWorkspaceDirty>(conv_case()), "");
  EXPECT_THAT(verdict<OverrunsItsWorkspace>(conv_case()),
              HasSubstr("workspace was written outside of, 1 byte(s) behind"));
  EXPECT_THAT(verdict<CountsOnAZeroedWorkspace>(conv_case()), HasSubstr("1 of 75 compared values are wrong"));
  EXPECT_THAT(verdict<TurnsTheFilterRound>(conv_case()), HasSubstr("compared values are wrong"));
}

/// A graph that replays only half of what was captured.
class ForgetfulDevice : public ForwardingDevice {
 public:
  ForgetfulDevice() : ForwardingDevice(make_reference_device({})) {}
  Support supports_graphs() const override { return {}; }
  std::unique_ptr<Graph> capture(const std::function<void(Ops&)>& body) override {
    struct Replay : Graph {
      explicit Replay(std::function<void()> f) : run(std::move(f)) {}
      void replay() override { run(); }
      std::function<void()> run;
    };
    return std::make_unique<Replay>([this, body] {
      if (++replays_ > 1) body(ops());
    });
  }

 private:
  int replays_ = 0;
};

TEST(SuiteFails, OnAGraphThatForgets) {
  ForgetfulDevice device;
  EXPECT_THAT(check_case(device, oracle(), gemm_case()), ::testing::HasSubstr("a replayed graph gave other bits"));
}

}  // namespace
}  // namespace dlbench::test
