// elementwise: memory-bound passes over a matrix of batch rows and `features` columns.
//
// Why: half of a training step is such passes; here the comparison is one of memory bandwidth.
// Every op is out of place, so inputs keep their values over any number of steps.
#include <cmath>

#include "core/base/error.h"
#include "workloads/catalog.h"
#include "workloads/op_workload.h"

namespace dlbench {

namespace {

struct OpName {
  const char* word;
  Op op;
};
constexpr OpName kOps[] = {
    {"copy", Op::copy},
    {"bias", Op::bias},
    {"relu_forward", Op::relu_forward},
    {"relu_backward", Op::relu_backward},
    {"gelu_forward", Op::gelu_forward},
    {"gelu_backward", Op::gelu_backward},
    {"reduce_rows", Op::reduce},
    {"reduce_columns", Op::reduce},
    {"reduce_all", Op::reduce},
    {"convert", Op::convert},
};

Op op_of(const std::string& word) {
  for (const OpName& row : kOps) {
    if (word == row.word) return row.op;
  }
  throw Error("elementwise: no op " + word);
}

std::vector<std::string> op_words() {
  std::vector<std::string> words;
  for (const OpName& row : kOps) words.emplace_back(row.word);
  return words;
}

/// y[R,C] = f(x[R,C]): copy, relu and gelu forward.
class UnaryWorkload final : public OpWorkload {
 public:
  UnaryWorkload(Op op, Precision precision, int64_t rows, int64_t columns) : OpWorkload(op, precision) {
    add_input("x", {rows, columns});
    add_output("y", {rows, columns});
    spec_ = {.precision = precision, .n = element_count({rows, columns})};
    declare_work(cost_of(op, spec_), rows, "rows");
  }
  void step(Device& device, const Binding& b) override {
    if (op_ == Op::copy) return device.ops().copy(spec_, b[0], b[1]);
    if (op_ == Op::relu_forward) return device.ops().relu_forward(spec_, b[0], b[1]);
    device.ops().gelu_forward(spec_, b[0], b[1]);
  }

 private:
  VectorSpec spec_;
};

/// dx[R,C] from dy[R,C] and what the forward pass left: y for relu, x for gelu.
class BackwardWorkload final : public OpWorkload {
 public:
  BackwardWorkload(Op op, Precision precision, int64_t rows, int64_t columns) : OpWorkload(op, precision) {
    add_input("dy", {rows, columns});
    add_input(op == Op::relu_backward ? "y" : "x", {rows, columns});
    add_output("dx", {rows, columns});
    spec_ = {.precision = precision, .n = element_count({rows, columns})};
    declare_work(cost_of(op, spec_), rows, "rows");
  }
  void step(Device& device, const Binding& b) override {
    if (op_ == Op::relu_backward) return device.ops().relu_backward(spec_, b[0], b[1], b[2]);
    device.ops().gelu_backward(spec_, b[0], b[1], b[2]);
  }

 private:
  VectorSpec spec_;
};

/// y[R,C] = x[R,C] + bias[C]
class BiasWorkload final : public OpWorkload {
 public:
  BiasWorkload(Precision precision, int64_t rows, int64_t columns)
      : OpWorkload(Op::bias, precision), spec_{.precision = precision, .rows = rows, .columns = columns} {
    add_input("x", {rows, columns});
    add_input("bias", {columns}, 1.0, BufferRole::parameter);
    add_output("y", {rows, columns});
    declare_work(cost_of(Op::bias, spec_), rows, "rows");
  }
  void step(Device& device, const Binding& b) override { device.ops().bias(spec_, b[0], b[1], b[2]); }

 private:
  MatrixSpec spec_;
};

/// Sums of rows y[R], of columns y[C] (a bias gradient), or of everything y[1].
class ReduceWorkload final : public OpWorkload {
 public:
  ReduceWorkload(const std::string& word, Precision precision, int64_t rows, int64_t columns)
      : OpWorkload(Op::reduce, precision), spec_{.precision = precision} {
    add_input("x", {rows, columns});
    if (word == "reduce_rows") {
      spec_.outer = rows, spec_.extent = columns;
    } else if (word == "reduce_columns") {
      spec_.extent = rows, spec_.inner = columns;
    } else {
      spec_.extent = element_count({rows, columns});
    }
    add_output("y", {spec_.outer * spec_.inner});
    reduction_length_ = spec_.extent;
    magnitude_ = std::sqrt(static_cast<double>(spec_.extent));  // of a sum of values of unit variance
    declare_work(cost_of(spec_), rows, "rows");
  }
  void step(Device& device, const Binding& b) override { device.ops().reduce(spec_, b[0], b[1]); }

 private:
  ReduceSpec spec_;
};

/// fp32 is rounded to bf16; every other precision is converted from its storage type to fp32.
class ConvertWorkload final : public OpWorkload {
 public:
  ConvertWorkload(Precision precision, int64_t rows, int64_t columns) : OpWorkload(Op::convert, precision) {
    add_input("x", {rows, columns});
    spec_ = {.from = storage(),
             .to = storage() == DType::f32 ? DType::bf16 : DType::f32,
             .n = element_count({rows, columns})};
    add_output("y", {rows, columns}, spec_.to);
    declare_work(cost_of(spec_), rows, "rows");
  }
  /// The rounding is that of the coarser of the two types.
  OutputTolerance tolerance(size_t) const override {
    const bool narrows = spec_.to == DType::bf16;
    return {.op_class = class_of(op_), .reduction_length = 1, .precision = narrows ? Precision::bf16 : precision_};
  }
  void step(Device& device, const Binding& b) override { device.ops().convert(spec_, b[0], b[1]); }

 private:
  ConvertSpec spec_;
};

std::unique_ptr<Workload> create(const Point& point) {
  const std::string& word = point.word("op");
  const Precision precision = point.precision();
  const int64_t rows = point.integer("batch"), columns = point.integer("features");
  const Op op = op_of(word);
  if (op == Op::bias) return std::make_unique<BiasWorkload>(precision, rows, columns);
  if (op == Op::convert) return std::make_unique<ConvertWorkload>(precision, rows, columns);
  if (op == Op::reduce) return std::make_unique<ReduceWorkload>(word, precision, rows, columns);
  if (op == Op::relu_backward || op == Op::gelu_backward) {
    return std::make_unique<BackwardWorkload>(op, precision, rows, columns);
  }
  return std::make_unique<UnaryWorkload>(op, precision, rows, columns);
}

}  // namespace

const WorkloadDescriptor& elementwise_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "elementwise",
      .workload_class = "ops",
      .summary = "memory-bound passes over a matrix: copy, bias, activations, reductions, conversion",
      .sweep_axis = "batch",
      .axes = {{.name = "op",
                .kind = AxisKind::word,
                .fallback = "relu_forward",
                .words = op_words(),
                .summary = "what is done to each element"},
               {.name = "features",
                .fallback = int64_t{1024},
                .high = int64_t{1} << 31,
                .summary = "columns of the matrix"},
               {.name = "batch", .fallback = int64_t{1024}, .summary = "rows of the matrix"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = create};
  return descriptor;
}

}  // namespace dlbench
