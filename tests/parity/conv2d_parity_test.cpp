// conv2d in both layouts: kernels, strides, borders, bias and activation, empty extents, unaligned addresses.
#include "parity/training_parity.h"

namespace dlbench::test {
namespace {

class Conv2dParity : public TrainingParity {
 protected:
  static std::string describe(const Conv2dSpec& s) {
    return fmt::format("{} N={} C={} H={} W={} K={} {}x{} stride={} pad={}{}{}", name_of(s.layout), s.n, s.c, s.h, s.w,
                       s.k, s.r, s.s, s.stride, s.pad, s.bias ? " bias" : "",
                       s.activation == Activation::relu ? " relu" : "");
  }
  static int64_t images(const Conv2dSpec& s) { return s.n * s.c * s.h * s.w; }
  static int64_t filters(const Conv2dSpec& s) { return s.k * s.c * s.r * s.s; }
  static int64_t outputs(const Conv2dSpec& s) { return s.n * s.k * s.p() * s.q(); }
  static CaseBuffer conv_workspace(const Conv2dSpec& s, ConvPass pass) {
    return workspace_for([&](const Ops& ops) { return ops.conv2d_workspace_bytes(s, pass); });
  }
  static double root(int64_t terms) { return std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1))); }

  static OpCase forward_case(const Conv2dSpec& s) {
    const int64_t terms = s.c * s.r * s.s;
    const CaseBuffer space = conv_workspace(s, ConvPass::forward);
    const bool work = space.elements > 0;
    return {name(Op::conv2d_forward, describe(s)),
            {input("x", type(), images(s)), input("w", type(), filters(s)), input("bias", type(), s.bias ? s.k : 0),
             output("y", type(), outputs(s), tolerance(Op::conv2d_forward, terms, root(terms + s.bias))), space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.conv2d_forward(s, p[0], p[1], or_null(s.bias, p[2]), p[3], or_null(work, p[4]));
            }};
  }
  static OpCase backward_data_case(const Conv2dSpec& s) {
    const int64_t terms = s.k * s.r * s.s;
    const CaseBuffer space = conv_workspace(s, ConvPass::backward_data);
    const bool work = space.elements > 0;
    const double magnitude = std::max(1.0, root(terms) / static_cast<double>(s.stride));
    return {name(Op::conv2d_backward_data, describe(s)),
            {input("dy", type(), outputs(s)), input("w", type(), filters(s)),
             output("dx", type(), images(s), tolerance(Op::conv2d_backward_data, terms, magnitude)), space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.conv2d_backward_data(s, p[0], p[1], p[2], or_null(work, p[3]));
            }};
  }
  static OpCase backward_weights_case(const Conv2dSpec& s) {
    const int64_t terms = s.n * s.p() * s.q();
    const OutputTolerance allowed = tolerance(Op::conv2d_backward_weights, terms, root(terms));
    const CaseBuffer space = conv_workspace(s, ConvPass::backward_weights);
    const bool work = space.elements > 0;
    return {name(Op::conv2d_backward_weights, describe(s)),
            {input("x", type(), images(s)), input("dy", type(), outputs(s)), output("dw", type(), filters(s), allowed),
             output("dbias", type(), s.bias ? s.k : 0, allowed), space},
            [s, work](Ops& ops, const std::vector<void*>& p) {
              ops.conv2d_backward_weights(s, p[0], p[1], p[2], or_null(s.bias, p[3]), or_null(work, p[4]));
            }};
  }
  /// All three passes, in both layouts.
  static void check_conv(Conv2dSpec s, int64_t offset = 0) {
    s.precision = precision();
    for (const ImageLayout layout : kLayouts) {
      s.layout = layout;
      const auto check_moved = [offset](Op op, OpCase op_case) {
        for (CaseBuffer& b : op_case.buffers) b.offset = b.scratch ? 0 : offset;
        check(op, op_case);
      };
      check_moved(Op::conv2d_forward, forward_case(s));
      check_moved(Op::conv2d_backward_data, backward_data_case(s));
      check_moved(Op::conv2d_backward_weights, backward_weights_case(s));
    }
  }
};

TEST_P(Conv2dParity, Kernels) {
  check_conv({.n = 2, .c = 5, .h = 9, .w = 7, .k = 6, .r = 3, .s = 3, .pad = 1});
  check_conv({.n = 1, .c = 3, .h = 13, .w = 11, .k = 5, .r = 5, .s = 5, .pad = 2});
  check_conv({.n = 1, .c = 3, .h = 17, .w = 15, .k = 4, .r = 7, .s = 7, .stride = 2, .pad = 3});
  check_conv({.n = 2, .c = 4, .h = 6, .w = 8, .k = 3, .r = 2, .s = 3});
  check_conv({.n = 2, .c = 4, .h = 8, .w = 9, .k = 3, .r = 3, .s = 1, .pad = 1});
  check_conv({.n = 3, .c = 2, .h = 5, .w = 4, .k = 3, .r = 5, .s = 4});  // one window per image
}

TEST_P(Conv2dParity, OneByOne) {
  check_conv({.n = 2, .c = 7, .h = 5, .w = 3, .k = 9});
  check_conv({.n = 3, .c = 64, .h = 7, .w = 7, .k = 33, .bias = true, .activation = Activation::relu});
  check_conv({.n = 2, .c = 9, .h = 7, .w = 6, .k = 5, .stride = 2});
  check_conv({.n = 1, .c = 3, .h = 4, .w = 5, .k = 2, .pad = 1});
  check_conv({.n = 4, .c = 130, .h = 1, .w = 1, .k = 70, .bias = true});
}

TEST_P(Conv2dParity, StridesAndBorders) {
  for (const int64_t stride : {1, 2, 3}) {
    for (const int64_t pad : {0, 1, 2})
      check_conv({.n = 2, .c = 3, .h = 10, .w = 9, .k = 4, .r = 3, .s = 3, .stride = stride, .pad = pad});
  }
  check_conv({.n = 1, .c = 2, .h = 11, .w = 11, .k = 3, .r = 2, .s = 2, .stride = 3});  // pixels that no window sees
  check_conv({.n = 1, .c = 2, .h = 2, .w = 3, .k = 3, .r = 5, .s = 5, .pad = 3});       // more border than image
}

TEST_P(Conv2dParity, BiasAndActivation) {
  for (const bool bias : {false, true}) {
    for (const Activation activation : {Activation::none, Activation::relu}) {
      check_conv(
          {.n = 2, .c = 5, .h = 6, .w = 7, .k = 9, .r = 3, .s = 3, .pad = 1, .bias = bias, .activation = activation});
      check_conv({.n = 2,
                  .c = 5,
                  .h = 6,
                  .w = 7,
                  .k = 9,
                  .r = 3,
                  .s = 3,
                  .stride = 2,
                  .bias = bias,
                  .activation = activation});
    }
  }
}

TEST_P(Conv2dParity, Ones) {
  check_conv({.n = 1, .c = 1, .h = 1, .w = 1, .k = 1});
  check_conv({.n = 1, .c = 1, .h = 1, .w = 1, .k = 1, .r = 3, .s = 3, .pad = 1, .bias = true});
  check_conv({.n = 1, .c = 1, .h = 8, .w = 1, .k = 1, .r = 3, .s = 1});
  check_conv({.n = 1, .c = 1, .h = 1, .w = 9, .k = 4, .r = 1, .s = 3, .stride = 2});
  check_conv({.n = 5, .c = 1, .h = 6, .w = 6, .k = 1, .r = 3, .s = 3, .pad = 1});
}

TEST_P(Conv2dParity, EmptyExtents) {
  check_conv({.n = 0, .c = 3, .h = 5, .w = 5, .k = 4, .r = 3, .s = 3, .pad = 1, .bias = true});
  check_conv({.n = 2, .c = 0, .h = 5, .w = 5, .k = 4, .r = 3, .s = 3, .pad = 1, .bias = true});
  check_conv({.n = 2, .c = 3, .h = 5, .w = 5, .k = 0, .r = 3, .s = 3, .pad = 1});
  check_conv({.n = 0, .c = 3, .h = 5, .w = 5, .k = 4});
  check_conv({.n = 2, .c = 0, .h = 5, .w = 5, .k = 4});
}

/// Sizes that leave a rest in every tile, with channels like those of ResNet.
TEST_P(Conv2dParity, BeyondTileLimits) {
  check_conv({.n = 2, .c = 33, .h = 14, .w = 14, .k = 34, .r = 3, .s = 3, .pad = 1});
  check_conv({.n = 1, .c = 64, .h = 15, .w = 13, .k = 65, .r = 3, .s = 3, .stride = 2, .pad = 1});
  check_conv({.n = 1, .c = 3, .h = 37, .w = 35, .k = 16, .r = 7, .s = 7, .stride = 2, .pad = 3});
  check_conv({.n = 3, .c = 16, .h = 32, .w = 31, .k = 8, .r = 3, .s = 3, .pad = 1});
  check_conv({.n = 2, .c = 65, .h = 9, .w = 9, .k = 130});
  check_conv({.n = 1, .c = 130, .h = 8, .w = 7, .k = 66, .stride = 2});
  check_conv({.n = 1, .c = 32, .h = 56, .w = 57, .k = 8, .r = 3, .s = 3, .pad = 1});
}

TEST_P(Conv2dParity, UnalignedAddresses) {
  check_conv({.n = 2, .c = 8, .h = 8, .w = 8, .k = 16, .r = 3, .s = 3, .pad = 1, .bias = true}, 1);
  check_conv({.n = 2, .c = 16, .h = 8, .w = 8, .k = 8}, 1);
}

TEST_P(Conv2dParity, NaNStaysInItsWindows) {
  Conv2dSpec s{.precision = precision(), .n = 2, .c = 4, .h = 9, .w = 9, .k = 5, .r = 3, .s = 3, .pad = 1};
  for (const ImageLayout layout : kLayouts) {
    s.layout = layout;
    OpCase op_case = forward_case(s);
    CaseBuffer& x = op_case.buffers[0];
    x.start = Start::values;
    x.values.assign(static_cast<size_t>(x.elements), 0.5);
    x.values[static_cast<size_t>(x.elements / 2)] = std::numeric_limits<double>::quiet_NaN();
    op_case.name += " NaN";
    check(Op::conv2d_forward, op_case);
  }
}

TEST_P(Conv2dParity, ContradictionsAreRefused) {
  if (!supported(Op::conv2d_forward)) return;
  const auto refused = [](Conv2dSpec s) {
    s.precision = precision();
    const std::string what = describe(s);
    const auto call = [&](Ops& ops, void* p, ConvPass pass) {
      if (pass == ConvPass::forward) ops.conv2d_forward(s, p, p, p, p, p);
      if (pass == ConvPass::backward_data) ops.conv2d_backward_data(s, p, p, p, p);
      if (pass == ConvPass::backward_weights) ops.conv2d_backward_weights(s, p, p, p, p, p);
    };
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_weights}) {
      expect_refused(Op::conv2d_forward, what, [&](Ops& ops, void* p) { call(ops, p, pass); });
    }
  };
  refused({.n = -1, .c = 1, .h = 4, .w = 4, .k = 1});
  refused({.n = 1, .c = 1, .h = 4, .w = 4, .k = 1, .stride = 0});
  refused({.n = 1, .c = 1, .h = 4, .w = 4, .k = 1, .pad = -1});
  refused({.n = 1, .c = 1, .h = 4, .w = 4, .k = 1, .r = 5, .s = 1});
  refused({.n = 1, .c = 1, .h = 4, .w = 4, .k = 1, .r = 0});
  refused({.n = int64_t{1} << 40, .c = int64_t{1} << 40, .h = 4, .w = 4, .k = 1});
}

DLB_EVERY_PRECISION(Conv2dParity);

}  // namespace
}  // namespace dlbench::test
