// gemm: the matrix products of training.
//
// Families: `square` (m = n = k = batch), `linear` (a layer of a named model: forward, and its two backward products)
// and `attention` (the two batched products). Weights are stored [n, k] as torch.nn.Linear does.
// Inputs have unit variance and the second factor is scaled by 1/sqrt(k), so that results have unit variance in every
// precision and fp16 can't overflow.
#include <cmath>
#include <span>

#include "workloads/catalog.h"
#include "workloads/op_workload.h"

namespace dlbench {

namespace {

struct Layer {
  const char* name;
  int64_t n, k;  ///< outputs, inputs
  int64_t rows;  ///< rows of a sample: T for layers over tokens
};

// mlp base: 784-1024-1024-10. gpt2: d -> 3d (qkv), d -> d (proj), d -> 4d (fc), 4d -> d (fcproj), d -> V (head) with
// d = 128, 384, 768, V = 8192 or GPT-2's 50257, T = 128, 256 and GPT-2's 1024 (Radford et al. 2019). resnet50: 2048 ->
// 1000 (He et al. 2016).
constexpr Layer kLayers[] = {
    {"mlp_base_fc1", 1024, 784, 1},      {"mlp_base_fc2", 1024, 1024, 1},        {"mlp_base_fc3", 10, 1024, 1},
    {"gpt2_nano_qkv", 384, 128, 128},    {"gpt2_nano_proj", 128, 128, 128},      {"gpt2_nano_fc", 512, 128, 128},
    {"gpt2_nano_fcproj", 128, 512, 128}, {"gpt2_nano_head", 8192, 128, 128},     {"gpt2_mini_qkv", 1152, 384, 256},
    {"gpt2_mini_proj", 384, 384, 256},   {"gpt2_mini_fc", 1536, 384, 256},       {"gpt2_mini_fcproj", 384, 1536, 256},
    {"gpt2_mini_head", 8192, 384, 256},  {"gpt2_small_qkv", 2304, 768, 1024},    {"gpt2_small_proj", 768, 768, 1024},
    {"gpt2_small_fc", 3072, 768, 1024},  {"gpt2_small_fcproj", 768, 3072, 1024}, {"gpt2_small_head", 50257, 768, 1024},
    {"resnet50_fc", 1000, 2048, 1},
};

std::vector<std::string> layer_names() {
  std::vector<std::string> names;
  for (const Layer& layer : kLayers) names.emplace_back(layer.name);
  names.emplace_back("custom");
  return names;
}

Layer layer_of(const Point& point) {
  const std::string& name = point.word("layer");
  for (const Layer& layer : kLayers) {
    if (name == layer.name) return layer;
  }
  return {"custom", point.integer("n"), point.integer("k"), 1};
}

/// a * b, or the largest number there is: such a shape is refused when its bytes are counted.
int64_t saturating_product(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

double inverse_root(int64_t k) {
  return 1.0 / std::sqrt(static_cast<double>(k));
}

class GemmWorkload final : public OpWorkload {
 public:
  explicit GemmWorkload(const Point& point) : OpWorkload(Op::gemm, point.precision()) {
    spec_.precision = precision_;
    const std::string& family = point.word("family");
    if (family == "square") {
      set_up_square(point);
    } else if (family == "linear") {
      set_up_linear(point);
    } else {
      set_up_attention(point);
    }
    reduction_length_ = spec_.k;
    spec_ = spec_.resolved();
    declare_work(cost_of(spec_), family == "attention" ? spec_.batch : rows_,
                 family == "attention" ? "matrices" : "rows");
  }

  void step(Device& device, const Binding& buffers) override {
    const bool has_bias = spec_.epilogue != Epilogue::none;
    device.ops().gemm(spec_, buffers[0], buffers[1], has_bias ? buffers[2] : nullptr, buffers.back(), nullptr);
  }

 private:
  void set_up_square(const Point& point) {
    const int64_t size = point.integer("batch");
    const std::string& transpose = point.word("transpose");
    spec_.m = spec_.n = spec_.k = rows_ = size;
    spec_.trans_a = transpose == "tn" ? Transpose::yes : Transpose::no;
    spec_.trans_b = transpose == "nt" ? Transpose::yes : Transpose::no;
    add_input("a", {size, size});
    add_input("b", {size, size}, inverse_root(size));
    add_output("c", {size, size});
  }

  /// forward y[m,n] = x[m,k] w[n,k]^T + bias[n]; dgrad dx[m,k] = dy[m,n] w[n,k]; wgrad dw[n,k] = dy[m,n]^T x[m,k].
  void set_up_linear(const Point& point) {
    const Layer layer = layer_of(point);
    const int64_t m = rows_ = saturating_product(point.integer("batch"), layer.rows);
    const std::string& pass = point.word("pass");
    if (pass == "forward") {
      spec_.m = m, spec_.n = layer.n, spec_.k = layer.k;
      spec_.trans_b = Transpose::yes;
      spec_.epilogue = epilogue_of(point.word("epilogue"));
      add_input("x", {m, layer.k});
      add_input("w", {layer.n, layer.k}, inverse_root(layer.k), BufferRole::parameter);
      if (spec_.epilogue != Epilogue::none) add_input("bias", {layer.n}, 1.0, BufferRole::parameter);
      add_output("y", {m, layer.n});
    } else if (pass == "dgrad") {
      spec_.m = m, spec_.n = layer.k, spec_.k = layer.n;
      add_input("dy", {m, layer.n});
      add_input("w", {layer.n, layer.k}, inverse_root(layer.n), BufferRole::parameter);
      add_output("dx", {m, layer.k});
    } else {
      spec_.m = layer.n, spec_.n = layer.k, spec_.k = m;
      spec_.trans_a = Transpose::yes;
      add_input("dy", {m, layer.n});
      add_input("x", {m, layer.k}, inverse_root(m));
      add_output("dw", {layer.n, layer.k});
    }
  }

  /// qk: S[T,T] = Q[T,d] K[T,d]^T / sqrt(d); pv: O[T,d] = P[T,T] V[T,d]; for `batch` heads (Vaswani et al. 2017).
  void set_up_attention(const Point& point) {
    const int64_t heads = point.integer("batch"), t = point.integer("seq"), d = point.integer("head_dim");
    spec_.batch = heads;
    if (point.word("product") == "qk") {
      spec_.m = t, spec_.n = t, spec_.k = d;
      spec_.trans_b = Transpose::yes;
      spec_.alpha = static_cast<float>(inverse_root(d));
      add_input("q", {heads, t, d});
      add_input("k", {heads, t, d});
      add_output("s", {heads, t, t});
    } else {
      spec_.m = t, spec_.n = d, spec_.k = t;
      add_input("p", {heads, t, t});
      add_input("v", {heads, t, d}, inverse_root(t));
      add_output("o", {heads, t, d});
    }
  }

  static Epilogue epilogue_of(const std::string& word) {
    for (const Epilogue e : {Epilogue::bias, Epilogue::bias_relu, Epilogue::bias_gelu}) {
      if (to_string(e) == word) return e;
    }
    return Epilogue::none;
  }

  GemmSpec spec_;
  int64_t rows_ = 0;
};

}  // namespace

const WorkloadDescriptor& gemm_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "gemm",
      .workload_class = "ops",
      .summary = "matrix products: square, the three products of linear layers, the two of attention",
      .sweep_axis = "batch",
      .axes = {{.name = "family",
                .kind = AxisKind::word,
                .fallback = "square",
                .words = {"square", "linear", "attention"},
                .summary = "where the shape comes from"},
               {.name = "transpose",
                .kind = AxisKind::word,
                .fallback = "nn",
                .words = {"nn", "nt", "tn"},
                .summary = "which factor is stored transposed",
                .only_when = {"family", {"square"}}},
               {.name = "layer",
                .kind = AxisKind::word,
                .fallback = "mlp_base_fc2",
                .words = layer_names(),
                .summary = "layer of a named model; custom takes n and k",
                .only_when = {"family", {"linear"}}},
               {.name = "n",
                .fallback = int64_t{1024},
                .high = int64_t{1} << 31,
                .summary = "outputs of the layer",
                .only_when = {"layer", {"custom"}}},
               {.name = "k",
                .fallback = int64_t{1024},
                .high = int64_t{1} << 31,
                .summary = "inputs of the layer",
                .only_when = {"layer", {"custom"}}},
               {.name = "pass",
                .kind = AxisKind::word,
                .fallback = "forward",
                .words = {"forward", "dgrad", "wgrad"},
                .summary = "forward product, gradient of the inputs, gradient of the weights",
                .only_when = {"family", {"linear"}}},
               {.name = "epilogue",
                .kind = AxisKind::word,
                .fallback = "bias",
                .words = {"none", "bias", "bias_relu", "bias_gelu"},
                .summary = "what is fused behind the product",
                .only_when = {"pass", {"forward"}}},
               {.name = "product",
                .kind = AxisKind::word,
                .fallback = "qk",
                .words = {"qk", "pv"},
                .summary = "scores Q K^T or weighted values P V",
                .only_when = {"family", {"attention"}}},
               {.name = "seq",
                .fallback = int64_t{256},
                .high = int64_t{1} << 31,
                .summary = "tokens of a sequence",
                .only_when = {"family", {"attention"}}},
               {.name = "head_dim",
                .fallback = int64_t{64},
                .high = int64_t{1} << 31,
                .summary = "width of a head",
                .only_when = {"family", {"attention"}}},
               {.name = "batch",
                .fallback = int64_t{64},
                .summary = "square: m = n = k; linear: samples (times T rows); attention: matrices"}},
      .precisions = {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> { return std::make_unique<GemmWorkload>(point); }};
  return descriptor;
}

}  // namespace dlbench
