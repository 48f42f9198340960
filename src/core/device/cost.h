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

}  // namespace dlbench
