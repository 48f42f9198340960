// Layers over images: convolution, batch norm, pooling.
#include <cmath>

#include "core/train/layers.h"

namespace dlbench {

Shape image_shape(ImageLayout layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  return layout == ImageLayout::nchw ? Shape{n, c, h, w} : Shape{n, h, w, c};
}

TorchView image_view(ImageLayout layout, int64_t n, int64_t c, int64_t h, int64_t w) {
  if (layout == ImageLayout::nchw) return {};
  return {.stored = {n, h, w, c}, .order = {0, 3, 1, 2}, .shape = {n, c, h, w}};
}

namespace {

Images images(ModelBuilder& b, const std::string& name, int64_t n, int64_t c, int64_t h, int64_t w) {
  return {.tensor = b.activation(name, image_shape(b.layout(), n, c, h, w)), .n = n, .c = c, .h = h, .w = w};
}

std::function<int64_t(const Ops&)> workspace_of(const Conv2dSpec& spec, ConvPass pass) {
  return [spec, pass](const Ops& ops) { return ops.conv2d_workspace_bytes(spec, pass); };
}

void emit_conv_backward(ModelBuilder& b, const std::string& name, const Conv2dSpec& spec, TensorId x, TensorId y,
                        const ModelParameter& weight, const ModelParameter* bias) {
  const TensorId dy = b.gradient_of(y);
  if (spec.activation == Activation::relu) {
    const VectorSpec vector{.precision = b.precision(), .n = element_count(b.program().tensor(y).shape)};
    b.emit({.op = Op::relu_backward,
            .name = name + " activation gradient",
            .operands = {updates(dy, b.tolerance(Op::relu_backward)), reads(y)},
            .cost = cost_of(Op::relu_backward, vector),
            .call = [vector](Ops& ops, void* const* p) { ops.relu_backward(vector, p[0], p[1], p[0]); }});
  }
  const int64_t places = spec.n * spec.p() * spec.q();
  const OutputTolerance weights = b.tolerance(Op::conv2d_backward_weights, places);
  b.emit(
      {.op = Op::conv2d_backward_weights,
       .name = name + " weight gradient",
       .operands = {reads(x), reads(dy), writes(weight.gradient, weights),
                    writes(bias ? bias->gradient : kNoTensor, weights)},
       .cost = cost_of(spec, ConvPass::backward_weights),
       .workspace_bytes = workspace_of(spec, ConvPass::backward_weights),
       .call = [spec](Ops& ops, void* const* p) { ops.conv2d_backward_weights(spec, p[0], p[1], p[2], p[3], p[4]); }});
  b.write_gradient(x, [&](TensorId dx) {
    b.emit({.op = Op::conv2d_backward_data,
            .name = name + " input gradient",
            .operands = {reads(dy), reads(weight.storage),
                         writes(dx, b.tolerance(Op::conv2d_backward_data, spec.k * spec.r * spec.s))},
            .cost = cost_of(spec, ConvPass::backward_data),
            .workspace_bytes = workspace_of(spec, ConvPass::backward_data),
            .call = [spec](Ops& ops, void* const* p) { ops.conv2d_backward_data(spec, p[0], p[1], p[2], p[3]); }});
  });
}

}  // namespace

Images conv2d(ModelBuilder& b, const std::string& name, const Images& x, int64_t k, const ConvOptions& options) {
  const Conv2dSpec spec{.precision = b.precision(),
                        .layout = b.layout(),
                        .n = x.n,
                        .c = x.c,
                        .h = x.h,
                        .w = x.w,
                        .k = k,
                        .r = options.size,
                        .s = options.size,
                        .stride = options.stride,
                        .pad = options.pad,
                        .bias = options.bias,
                        .activation = options.activation};
  require_valid(spec);
  const double scale = std::sqrt(2.0 / static_cast<double>(k * options.size * options.size));
  const ModelParameter weight = b.parameter(
      name + ".weight", image_shape(b.layout(), k, x.c, options.size, options.size),
      {.init = BufferInit::normal, .scale = scale}, image_view(b.layout(), k, x.c, options.size, options.size));
  ModelParameter bias;
  if (options.bias) bias = b.parameter(name + ".bias", {k}, {});
  const Images y = images(b, name, x.n, k, spec.p(), spec.q());
  b.emit({.op = Op::conv2d_forward,
          .name = name,
          .operands = {reads(x.tensor), reads(weight.storage), reads(bias.storage),
                       writes(y.tensor, b.tolerance(Op::conv2d_forward, x.c * options.size * options.size))},
          .cost = cost_of(spec, ConvPass::forward),
          .workspace_bytes = workspace_of(spec, ConvPass::forward),
          .call = [spec](Ops& ops, void* const* p) { ops.conv2d_forward(spec, p[0], p[1], p[2], p[3], p[4]); }});
  b.on_backward(
      [=, &b] { emit_conv_backward(b, name, spec, x.tensor, y.tensor, weight, options.bias ? &bias : nullptr); });
  return y;
}

Images batch_norm(ModelBuilder& b, const std::string& name, const Images& x, Activation activation,
                  const Images* residual) {
  const BatchNormSpec spec{.precision = b.precision(),
                           .layout = b.layout(),
                           .n = x.n,
                           .c = x.c,
                           .h = x.h,
                           .w = x.w,
                           .residual = residual != nullptr,
                           .activation = activation};
  require_valid(spec);
  const ModelParameter gamma = b.parameter(name + ".weight", {x.c}, {.init = BufferInit::constant, .scale = 1});
  const ModelParameter beta = b.parameter(name + ".bias", {x.c}, {});
  const TensorId running_mean = b.running(name + ".running_mean", x.c, 0);
  const TensorId running_variance = b.running(name + ".running_var", x.c, 1);
  const TensorId mean = b.activation(name + " mean", {x.c}, b.statistics());
  const TensorId rstd = b.activation(name + " rstd", {x.c}, b.statistics());
  const Images y = images(b, name, x.n, x.c, x.h, x.w);
  const TensorId added = residual ? residual->tensor : kNoTensor;
  const int64_t count = x.n * x.h * x.w;
  const OutputTolerance wide = b.statistics_tolerance(Op::batch_norm_forward, count);
  b.emit({.op = Op::batch_norm_forward,
          .name = name,
          .operands = {reads(x.tensor), reads(gamma.storage), reads(beta.storage), reads(added),
                       writes(y.tensor, b.tolerance(Op::batch_norm_forward, count)), updates(running_mean, wide),
                       updates(running_variance, wide), writes(mean, wide), writes(rstd, wide)},
          .cost = cost_of(spec, false),
          .call = [spec](Ops& ops, void* const* p) {
            ops.batch_norm_forward(spec, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]);
          }});
  b.on_backward([=, &b] {
    const TensorId dy = b.gradient_of(y.tensor);
    const TensorId dadded =
        added == kNoTensor ? kNoTensor : b.activation(name + " residual gradient", b.program().tensor(added).shape);
    const OutputTolerance tolerance = b.tolerance(Op::batch_norm_backward, count);
    b.emit({.op = Op::batch_norm_backward,
            .name = name + " gradient",
            .operands = {updates(dy, tolerance), reads(x.tensor),
                         reads(activation == Activation::none ? kNoTensor : y.tensor), reads(gamma.storage),
                         reads(mean), reads(rstd), writes(dadded, tolerance), writes(gamma.gradient, tolerance),
                         writes(beta.gradient, tolerance)},
            .cost = cost_of(spec, true),
            .call = [spec](Ops& ops, void* const* p) {
              ops.batch_norm_backward(spec, p[0], p[1], p[2], p[3], p[4], p[5], p[0], p[6], p[7], p[8]);
            }});
    b.give_gradient(x.tensor, dy);
    if (added != kNoTensor) b.give_gradient(added, dadded);
  });
  return y;
}

namespace {

TensorId pool(ModelBuilder& b, const std::string& name, TensorId x, const PoolSpec& spec, Shape y_shape) {
  require_valid(spec);
  const bool max = spec.pooling == Pooling::max;
  const TensorId y = b.activation(name, y_shape);
  const TensorId index = max ? b.activation(name + " winners", y_shape, DType::u8) : kNoTensor;
  const OutputTolerance tolerance = b.tolerance(Op::pool_forward, spec.r * spec.s);
  b.emit(
      {.op = Op::pool_forward,
       .name = name,
       .operands = {reads(x), writes(y, tolerance), writes(index, tolerance)},
       .cost = cost_of(spec, false),
       .call = [spec](Ops& ops, void* const* p) { ops.pool_forward(spec, p[0], p[1], static_cast<uint8_t*>(p[2])); }});
  b.on_backward([=, &b] {
    const TensorId dy = b.gradient_of(y);
    b.write_gradient(x, [&](TensorId dx) {
      b.emit({.op = Op::pool_backward,
              .name = name + " gradient",
              .operands = {reads(dy), reads(index), writes(dx, tolerance)},
              .cost = cost_of(spec, true),
              .call = [spec](Ops& ops, void* const* p) {
                ops.pool_backward(spec, p[0], static_cast<const uint8_t*>(p[1]), p[2]);
              }});
    });
  });
  return y;
}

PoolSpec pool_spec(const ModelBuilder& b, const Images& x, Pooling pooling) {
  return {.precision = b.precision(), .layout = b.layout(), .pooling = pooling, .n = x.n, .c = x.c, .h = x.h, .w = x.w};
}

}  // namespace

Images max_pool(ModelBuilder& b, const std::string& name, const Images& x, int64_t size, int64_t stride, int64_t pad) {
  PoolSpec spec = pool_spec(b, x, Pooling::max);
  spec.r = spec.s = size, spec.stride = stride, spec.pad = pad;
  const TensorId y = pool(b, name, x.tensor, spec, image_shape(b.layout(), x.n, x.c, spec.p(), spec.q()));
  return {.tensor = y, .n = x.n, .c = x.c, .h = spec.p(), .w = spec.q()};
}

TensorId global_average_pool(ModelBuilder& b, const std::string& name, const Images& x) {
  PoolSpec spec = pool_spec(b, x, Pooling::average);
  spec.r = x.h, spec.s = x.w;
  return pool(b, name, x.tensor, spec, {x.n, x.c});
}

}  // namespace dlbench
