// Ops: the arithmetic of a training step, at the granularity at which both sides have a fast path.
//
// Why: a workload is written once against this class; src/cpu and src/gpu implement it file by file. Whatever differs
// between the two sides (loops, memory, vendor library) is below this line, whatever is compared is above it.
// Promises, for every op:
//   * tensors are row-major and contiguous unless a leading dimension or stride says otherwise; extents may be 0 or 1;
//     element offsets are 64-bit;
//   * pointers are device memory of the same device; outputs don't overlap inputs unless "in place" is stated;
//   * execution is asynchronous and in the order of the calls; `Device::synchronize` waits;
//   * the first call with a spec may tune, query heuristics and allocate; later calls with an equal spec do not;
//   * the arithmetic type is the compute type of the precision, sums are held in its accumulate type;
//   * a matrix-only precision (tf32) behaves as its storage type in ops that aren't matrix products;
//   * UnsupportedError when `supports` says no, std::invalid_argument for a spec that contradicts itself: every device
//     calls `require_valid` (or GemmSpec::resolved) before anything else.
// Letters: gemm m n k; vectors n; rows x columns for element-wise ops over a matrix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/device/cost.h"
#include "core/device/training_specs.h"
#include "core/tensor/precision.h"

namespace dlbench {

enum class Op : uint8_t {
#define DLB_OP(name, op_class) name,
#include "core/device/ops.def"
#undef DLB_OP
};
enum class OpClass : uint8_t { exact, rounding, transcendental, reduction };

std::string_view to_string(Op op);
OpClass class_of(Op op);

/// native: runs in the precision's own types. emulated: converted to a wider type first, measured but marked
/// everywhere.
enum class SupportLevel : uint8_t { native, emulated, no };
std::string_view to_string(SupportLevel level);

struct Support {
  SupportLevel level = SupportLevel::native;
  std::string reason;  ///< how it is emulated, or why it can't be done and what would be needed; empty when native
};

enum class Transpose : uint8_t { no, yes };
enum class Epilogue : uint8_t { none, bias, bias_relu, bias_gelu };
enum class Reduction : uint8_t { sum, max };
/// Which execution unit fma_peak exercises. `vector_auto` is the widest the device has.
enum class FmaUnit : uint8_t { vector_auto, scalar, sse2, avx2, avx512, dot_product, cuda_core };

/// C[m,n] = epilogue(alpha * op(A)[m,k] * op(B)[k,n] + beta * C + bias[n]), `batch` times.
/// A is [m,k] (transposed: [k,m]) with leading dimension lda, likewise B [k,n] / [n,k] and C [m,n]. The default leading
/// dimensions are the dense ones. Epilogue: bias is a vector of n in the storage type; gelu is the tanh form.
/// With an epilogue `beta` must be 0, and activation applies after the bias. C isn't read when beta is 0: NaN in it is
/// overwritten. k = 0 gives beta * C (+ bias).
struct GemmSpec {
  Precision precision = Precision::fp32;
  Transpose trans_a = Transpose::no, trans_b = Transpose::no;
  int64_t m = 0, n = 0, k = 0;
  int64_t batch = 1;
  int64_t lda = 0, ldb = 0, ldc = 0;                    ///< elements; 0: dense
  int64_t stride_a = -1, stride_b = -1, stride_c = -1;  ///< elements between matrices; -1: dense; 0 (a, b only): shared
  float alpha = 1.0f, beta = 0.0f;
  Epilogue epilogue = Epilogue::none;

  bool operator==(const GemmSpec&) const = default;
  /// Fills the dense defaults in and checks the rest. @throws std::invalid_argument
  GemmSpec resolved() const;
};

/// y[m] (transposed: [n]) = op(A) x for `batch` independent dense matrices A[m,n] (one matrix for all when
/// shared_matrix).
struct GemvSpec {
  Precision precision = Precision::fp32;
  Transpose trans = Transpose::no;
  int64_t m = 0, n = 0, batch = 1;
  bool shared_matrix = false;
  bool operator==(const GemvSpec&) const = default;
};

/// `batch` vectors of n elements, contiguous one after another.
struct VectorSpec {
  Precision precision = Precision::fp32;
  int64_t n = 0, batch = 1;
  bool operator==(const VectorSpec&) const = default;
};

/// A matrix [rows, columns].
struct MatrixSpec {
  Precision precision = Precision::fp32;
  int64_t rows = 0, columns = 0;
  bool operator==(const MatrixSpec&) const = default;
};

/// x[outer, extent, inner] -> y[outer, inner]. outer = inner = 1: of everything; inner = 1: rows; outer = 1: columns
/// (a bias gradient). Sums are held in the accumulate type; y has the storage type. Deterministic. NaN among the
/// elements gives NaN, for max as well.
struct ReduceSpec {
  Precision precision = Precision::fp32;
  Reduction reduction = Reduction::sum;
  int64_t outer = 1, extent = 0, inner = 1;  ///< extent 0: sum gives 0, max gives -infinity
  bool operator==(const ReduceSpec&) const = default;
};

/// n elements, from one element type to another; to nearest, ties to even; overflow to infinity.
struct ConvertSpec {
  DType from = DType::f32, to = DType::bf16;
  int64_t n = 0;
  bool operator==(const ConvertSpec&) const = default;
};

/// x[i] = scale * normal_value(seed, stream, i) rounded to `type` (core/base/random.h): equal bits on every device.
struct FillSpec {
  DType type = DType::f32;
  int64_t n = 0;
  uint64_t seed = 0, stream = 0;
  double scale = 1.0;
  bool operator==(const FillSpec&) const = default;
};

/// Chains of fused multiply-adds held in registers on every core: out[i] of `lanes()` values, after `iterations`
/// rounds. Work: what the device says in fma_peak_flops. Checked: every chain's value is known in closed form.
struct FmaPeakSpec {
  Precision precision = Precision::fp32;
  FmaUnit unit = FmaUnit::vector_auto;
  int64_t iterations = 0;
  bool operator==(const FmaPeakSpec&) const = default;
};

std::string_view to_string(FmaUnit unit);
std::string_view to_string(Epilogue epilogue);

/// @throws std::invalid_argument for a negative extent, a number of elements beyond 63 bits, a scale that isn't finite,
/// or more iterations than 2^24. GemmSpec has `resolved`.
void require_valid(const GemvSpec& spec);
void require_valid(const VectorSpec& spec);
void require_valid(const MatrixSpec& spec);
void require_valid(const ReduceSpec& spec);
void require_valid(const ConvertSpec& spec);
void require_valid(const FillSpec& spec);
void require_valid(const FmaPeakSpec& spec);

class Ops {
 public:
  virtual ~Ops() = default;

  /// Whether this device does `op` at `precision`, and how.
  virtual Support supports(Op op, Precision precision) const = 0;

  // Control -----------------------------------------------------------------------------------------------------
  /// The smallest parallel work there is: a TBB dispatch over all threads that does nothing / an empty kernel.
  virtual void noop() = 0;
  virtual void fill_normal(const FillSpec& spec, void* x) = 0;

  // Memory-bound, element-wise ----------------------------------------------------------------------------------
  virtual void copy(const VectorSpec& spec, const void* x, void* y) = 0;                           ///< y = x
  virtual void convert(const ConvertSpec& spec, const void* x, void* y) = 0;                       ///< y = to(x)
  virtual void triad(const VectorSpec& spec, float a, const void* x, const void* y, void* z) = 0;  ///< z = x + a*y
  virtual void axpy(const VectorSpec& spec, float a, const void* x, void* y) = 0;  ///< y = a*x + y, in place
  virtual void bias(const MatrixSpec& spec, const void* x, const void* bias,
                    void* y) = 0;  ///< y[r,c] = x[r,c] + bias[c]; y may be x
  virtual void relu_forward(const VectorSpec& spec, const void* x,
                            void* y) = 0;  ///< y = max(x, 0); NaN stays NaN; y may be x
  virtual void relu_backward(const VectorSpec& spec, const void* dy, const void* y,
                             void* dx) = 0;  ///< dx = y > 0 ? dy : 0; dx may be dy
  virtual void gelu_forward(const VectorSpec& spec, const void* x,
                            void* y) = 0;  ///< tanh form (Hendrycks & Gimpel 2016)
  virtual void gelu_backward(const VectorSpec& spec, const void* dy, const void* x,
                             void* dx) = 0;  ///< dx = dy * gelu'(x); dx may be dy

  // Reductions and products --------------------------------------------------------------------------------------
  virtual void reduce(const ReduceSpec& spec, const void* x, void* y) = 0;
  /// out[batch] in the accumulate type of the precision.
  virtual void dot(const VectorSpec& spec, const void* x, const void* y, void* out) = 0;
  virtual void gemv(const GemvSpec& spec, const void* a, const void* x, void* y) = 0;
  /// `bias` is null unless the epilogue has one. `pre_activation`, laid out like C (ldc, stride_c), or null: receives
  /// the value before the activation, which its backward pass needs; only with bias_relu and bias_gelu.
  virtual void gemm(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c,
                    void* pre_activation) = 0;

  // Images. `workspace` has at least the bytes that the query gives; null where that is 0. --------------------------
  virtual ImageLayout preferred_image_layout() const { return ImageLayout::nchw; }
  virtual int64_t conv2d_workspace_bytes(const Conv2dSpec& /*spec*/, ConvPass /*pass*/) const { return 0; }
  virtual void conv2d_forward(const Conv2dSpec& spec, const void* x, const void* w, const void* bias, void* y,
                              void* workspace) = 0;
  /// dx is overwritten.
  virtual void conv2d_backward_data(const Conv2dSpec& spec, const void* dy, const void* w, void* dx,
                                    void* workspace) = 0;
  /// dw, and dbias [K] where spec.bias, are overwritten.
  virtual void conv2d_backward_weights(const Conv2dSpec& spec, const void* x, const void* dy, void* dw, void* dbias,
                                       void* workspace) = 0;
  /// `index` (max only, else null), one uint8 per output: the winner's place in its window, r*S + s.
  virtual void pool_forward(const PoolSpec& spec, const void* x, void* y, uint8_t* index) = 0;
  virtual void pool_backward(const PoolSpec& spec, const void* dy, const uint8_t* index, void* dx) = 0;
  /// gamma, beta [C] storage type; running_* and saved_* [C] statistics type; saved_* are written. y may be x.
  virtual void batch_norm_forward(const BatchNormSpec& spec, const void* x, const void* gamma, const void* beta,
                                  const void* residual, void* y, void* running_mean, void* running_variance,
                                  void* saved_mean, void* saved_rstd) = 0;
  /// y (what forward wrote) decides where relu let the gradient pass; null without activation. dresidual (null without
  /// residual) is dy behind the activation. dx may be dy; dresidual may not. dgamma, dbeta overwritten.
  virtual void batch_norm_backward(const BatchNormSpec& spec, const void* dy, const void* x, const void* y,
                                   const void* gamma, const void* saved_mean, const void* saved_rstd, void* dx,
                                   void* dresidual, void* dgamma, void* dbeta) = 0;

  // Sequences -----------------------------------------------------------------------------------------------------
  /// With residual: sum = x + residual (storage type; may be x), y = norm(sum). Else residual and sum are null.
  /// saved_mean, saved_rstd [rows], statistics type, are written.
  virtual void layer_norm_forward(const LayerNormSpec& spec, const void* x, const void* residual, const void* gamma,
                                  const void* beta, void* sum, void* y, void* saved_mean, void* saved_rstd) = 0;
  /// x: what was normalized (the sum). dx = gradient of x + dx_add (null: nothing; may be dx). dgamma, dbeta
  /// overwritten.
  virtual void layer_norm_backward(const LayerNormSpec& spec, const void* dy, const void* x, const void* gamma,
                                   const void* saved_mean, const void* saved_rstd, const void* dx_add, void* dx,
                                   void* dgamma, void* dbeta) = 0;
  virtual void softmax_forward(const RowsSpec& spec, const void* x, void* y) = 0;                    ///< y may be x
  virtual void softmax_backward(const RowsSpec& spec, const void* dy, const void* y, void* dx) = 0;  ///< dx may be dy
  /// losses[r] = -log softmax(logits[r])[target[r]], statistics type. dlogits (null: not wanted; may be logits) =
  /// (softmax - onehot) * state->loss_scale / rows; state null: scale 1. Columns beyond `columns` of a strided row get
  /// 0. A target outside [0, columns) gives loss 0 and a zero gradient row (PyTorch's ignore_index), still divided by
  /// rows.
  virtual void cross_entropy(const RowsSpec& spec, const void* logits, const int32_t* targets,
                             const TrainingState* state, void* losses, void* dlogits) = 0;
  virtual void embedding_forward(const EmbeddingSpec& spec, const int32_t* tokens, const void* token_table,
                                 const void* position_table, void* y) = 0;
  /// Deterministic scatter-add. dposition (null without positions) [T, C] is overwritten; rows beyond T aren't touched.
  virtual int64_t embedding_workspace_bytes(const EmbeddingSpec& /*spec*/) const { return 0; }
  virtual void embedding_backward(const EmbeddingSpec& spec, const int32_t* tokens, const void* dy, void* dtoken,
                                  void* dposition, void* workspace) = 0;
  virtual int64_t attention_workspace_bytes(const AttentionSpec& /*spec*/, bool /*backward*/) const { return 0; }
  virtual void attention_forward(const AttentionSpec& spec, const void* qkv, void* y, void* log_sum_exp,
                                 void* workspace) = 0;
  virtual void attention_backward(const AttentionSpec& spec, const void* qkv, const void* y, const void* dy,
                                  const void* log_sum_exp, void* dqkv, void* workspace) = 0;

  // Update --------------------------------------------------------------------------------------------------------
  virtual int64_t update_workspace_bytes(const GradientSpec& /*spec*/) const { return 0; }
  virtual void prepare_update(const GradientSpec& spec, const void* gradient, TrainingState* state,
                              void* workspace) = 0;
  /// master, momentum, m, v: statistics type, in place; `parameter` in the storage type is written from master, null
  /// where they are one (fp32). One pass over memory.
  virtual void sgd_step(const SgdSpec& spec, const TrainingState* state, const void* gradient, void* master,
                        void* momentum, void* parameter) = 0;
  virtual void adamw_step(const AdamWSpec& spec, const TrainingState* state, const void* gradient, void* master,
                          void* m, void* v, void* parameter) = 0;

  // Peak ---------------------------------------------------------------------------------------------------------
  virtual Support supports_fma_unit(FmaUnit unit, Precision precision) const = 0;
  /// FLOPs of one call (2 per multiply-add, over all cores and chains) and the number of values written to `out` (f32).
  virtual double fma_peak_flops(const FmaPeakSpec& spec) const = 0;
  virtual int64_t fma_peak_outputs(const FmaPeakSpec& spec) const = 0;
  /// Every chain counts: x_0 = 0, x_{t+1} = fma(x_t, one, one) with `one` a run-time value, so out[i] == iterations
  /// exactly (dot products of pairs count in twos: 2*iterations). iterations <= 2^24, where f32 still counts. Chains
  /// with a 16-bit accumulator start again at 0 while they can still count (every 2^11 rounds in f16, every 2^8 in
  /// bf16), add the counts up, and write iterations mod 2^11. A skipped round shows.
  virtual void fma_peak(const FmaPeakSpec& spec, void* out) = 0;
};

}  // namespace dlbench
