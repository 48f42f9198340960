// The work that an op declares: FLOPs and compulsory bytes, from shapes alone.
//
// Why: rates are derived in one place from declared work, never counted by the code that is timed.
// Promises: bytes are compulsory traffic (each input read once, each output written once); one multiply-add is 2 FLOPs.
#pragma once

namespace dlbench {

struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;

  double bytes() const { return bytes_read + bytes_written; }
  Cost& operator+=(const Cost& o) {
    flops += o.flops;
    bytes_read += o.bytes_read;
    bytes_written += o.bytes_written;
    return *this;
  }
};

struct GemmSpec;
struct GemvSpec;
struct VectorSpec;
struct MatrixSpec;
struct ReduceSpec;
struct ConvertSpec;
struct FillSpec;
struct Conv2dSpec;
struct PoolSpec;
struct BatchNormSpec;
struct LayerNormSpec;
struct RowsSpec;
struct EmbeddingSpec;
struct AttentionSpec;
struct GradientSpec;
struct SgdSpec;
struct AdamWSpec;
enum class ConvPass : unsigned char;
enum class Op : unsigned char;

Cost cost_of(const GemmSpec& spec);
Cost cost_of(const GemvSpec& spec);
Cost cost_of(const ReduceSpec& spec);
Cost cost_of(const ConvertSpec& spec);
Cost cost_of(const FillSpec& spec);
/// copy, triad, axpy, dot, relu_*, gelu_*. GELU counts its arithmetic operations (see cost.cpp), tanh as one.
Cost cost_of(Op op, const VectorSpec& spec);
/// bias
Cost cost_of(Op op, const MatrixSpec& spec);

/// What each op of training declares, by the textbook formula: an algorithm that needs fewer multiplications (Winograd)
/// declares the same. `backward` of an op with two passes.
Cost cost_of(const Conv2dSpec& spec, ConvPass pass);
Cost cost_of(const PoolSpec& spec, bool backward);
Cost cost_of(const BatchNormSpec& spec, bool backward);
Cost cost_of(const LayerNormSpec& spec, bool backward);
/// softmax_forward, softmax_backward, cross_entropy (with the gradient)
Cost cost_of(Op op, const RowsSpec& spec);
Cost cost_of(const EmbeddingSpec& spec, bool backward);
/// The T*T products; causal counts the half that is needed, T*(T+1)/2.
Cost cost_of(const AttentionSpec& spec, bool backward);
Cost cost_of(const GradientSpec& spec);
Cost cost_of(const SgdSpec& spec);
Cost cost_of(const AdamWSpec& spec);

}  // namespace dlbench
