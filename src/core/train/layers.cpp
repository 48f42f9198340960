// Layers over matrices: linear, and the tied head of a language model. Others: image_layers.cpp, sequence_layers.cpp.
#include "core/train/layers.h"

#include "core/base/error.h"

namespace dlbench {

namespace {

void emit_gemm(ModelBuilder& b, const std::string& name, const GemmSpec& given, TensorId a, TensorId w, TensorId bias,
               TensorId y, TensorId pre_activation) {
  const GemmSpec spec = given.resolved();
  OutputTolerance tolerance = b.tolerance(Op::gemm, spec.k);
  b.emit({.op = Op::gemm,
          .name = name,
          .operands = {reads(a), reads(w), reads(bias), writes(y, tolerance), writes(pre_activation, tolerance)},
          .cost = cost_of(spec),
          .call = [spec](Ops& ops, void* const* p) { ops.gemm(spec, p[0], p[1], p[2], p[3], p[4]); }});
}

/// db[columns] = sum of the rows of dy.
void emit_bias_gradient(ModelBuilder& b, const std::string& name, TensorId dy, TensorId db, int64_t rows,
                        int64_t columns) {
  const ReduceSpec spec{.precision = b.precision(), .outer = 1, .extent = rows, .inner = columns};
  require_valid(spec);
  b.emit({.op = Op::reduce,
          .name = name,
          .operands = {reads(dy), writes(db, b.tolerance(Op::reduce, rows))},
          .cost = cost_of(spec),
          .call = [spec](Ops& ops, void* const* p) { ops.reduce(spec, p[0], p[1]); }});
}

/// The gradient behind the activation, in place.
void emit_activation_gradient(ModelBuilder& b, const std::string& name, Epilogue epilogue, TensorId dy, TensorId kept,
                              int64_t count) {
  if (epilogue != Epilogue::bias_relu && epilogue != Epilogue::bias_gelu) return;
  const bool relu = epilogue == Epilogue::bias_relu;
  const Op op = relu ? Op::relu_backward : Op::gelu_backward;
  const VectorSpec spec{.precision = b.precision(), .n = count};
  b.emit({.op = op,
          .name = name,
          .operands = {updates(dy, b.tolerance(op)), reads(kept)},
          .cost = cost_of(op, spec),
          .call = [spec, relu](Ops& ops, void* const* p) {
            if (relu) return ops.relu_backward(spec, p[0], p[1], p[0]);
            ops.gelu_backward(spec, p[0], p[1], p[0]);
          }});
}

TorchView weight_view(const ModelBuilder& b, const LinearOptions& options, int64_t in, int64_t out) {
  const Images& x = options.flattened;
  if (x.tensor == kNoTensor || b.layout() == ImageLayout::nchw) return {};
  return {.stored = {out, x.h, x.w, x.c}, .order = {0, 3, 1, 2}, .shape = {out, in}};
}

}  // namespace

TensorId linear(ModelBuilder& b, const std::string& name, TensorId x, int64_t rows, int64_t in, int64_t out,
                const LinearOptions& options) {
  const bool out_in = options.order == WeightOrder::out_in;
  const ModelParameter weight =
      b.parameter(name + ".weight", out_in ? Shape{out, in} : Shape{in, out},
                  {.init = BufferInit::normal, .scale = options.weight_scale}, weight_view(b, options, in, out));
  const ModelParameter bias = b.parameter(name + ".bias", {out}, {});
  const TensorId y = b.activation(name, {rows, out});
  const bool gelu = options.epilogue == Epilogue::bias_gelu;
  const TensorId pre = gelu ? b.activation(name + " before gelu", {rows, out}) : kNoTensor;
  const Transpose transposed = out_in ? Transpose::yes : Transpose::no;
  const Transpose opposite = out_in ? Transpose::no : Transpose::yes;
  emit_gemm(
      b, name,
      {.precision = b.precision(), .trans_b = transposed, .m = rows, .n = out, .k = in, .epilogue = options.epilogue},
      x, weight.storage, bias.storage, y, pre);
  b.on_backward([=, &b] {
    const TensorId dy = b.gradient_of(y);
    emit_activation_gradient(b, name + " activation gradient", options.epilogue, dy, gelu ? pre : y,
                             element_count({rows, out}));
    emit_bias_gradient(b, name + " bias gradient", dy, bias.gradient, rows, out);
    GemmSpec wgrad{.precision = b.precision(), .trans_a = Transpose::yes, .m = out, .n = in, .k = rows};
    if (!out_in) std::swap(wgrad.m, wgrad.n);
    emit_gemm(b, name + " weight gradient", wgrad, out_in ? dy : x, out_in ? x : dy, kNoTensor, weight.gradient,
              kNoTensor);
    b.write_gradient(x, [&](TensorId dx) {
      emit_gemm(b, name + " input gradient",
                {.precision = b.precision(), .trans_b = opposite, .m = rows, .n = in, .k = out}, dy, weight.storage,
                kNoTensor, dx, kNoTensor);
    });
  });
  return y;
}

TensorId tied_head(ModelBuilder& b, TensorId x, const ModelParameter& table, int64_t rows, int64_t channels,
                   int64_t vocabulary, int64_t stride) {
  const TensorId logits = b.activation("logits", {rows, stride});
  emit_gemm(
      b, "head",
      {.precision = b.precision(), .trans_b = Transpose::yes, .m = rows, .n = vocabulary, .k = channels, .ldc = stride},
      x, table.storage, kNoTensor, logits, kNoTensor);
  b.on_backward([=, &b] {
    const TensorId dy = b.gradient_of(logits);
    emit_gemm(b, "head weight gradient",
              {.precision = b.precision(),
               .trans_a = Transpose::yes,
               .m = vocabulary,
               .n = channels,
               .k = rows,
               .lda = stride},
              dy, x, kNoTensor, table.gradient, kNoTensor);
    b.write_gradient(x, [&](TensorId dx) {
      emit_gemm(b, "head input gradient",
                {.precision = b.precision(), .m = rows, .n = channels, .k = vocabulary, .lda = stride}, dy,
                table.storage, kNoTensor, dx, kNoTensor);
    });
  });
  return logits;
}

}  // namespace dlbench
