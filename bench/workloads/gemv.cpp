// gemv: y = A x for a batch of vectors, with one matrix for all of them (a layer at inference) or a matrix each.
//
// Why: it is what a linear layer becomes at batch 1, and it reads every weight once: bandwidth decides.
#include <cmath>

#include "workloads/catalog.h"
#include "workloads/op_workload.h"

namespace dlbench {

namespace {

class GemvWorkload final : public OpWorkload {
 public:
  explicit GemvWorkload(const Point& point) : OpWorkload(Op::gemv, point.precision()) {
    const int64_t n = point.integer("n"), batch = point.integer("batch");
    const bool shared = point.word("matrix") == "shared";
    spec_ = {.precision = precision_,
             .trans = point.word("transpose") == "t" ? Transpose::yes : Transpose::no,
             .m = n,
             .n = n,
             .batch = batch,
             .shared_matrix = shared};
    // Scaled so that y has unit variance, as in gemm.
    const double scale = 1.0 / std::sqrt(static_cast<double>(n));
    if (shared) {
      add_input("a", {n, n}, scale, BufferRole::parameter);
    } else {
      add_input("a", {batch, n, n}, scale);
    }
    add_input("x", {batch, n});
    add_output("y", {batch, n});
    reduction_length_ = n;
    declare_work(cost_of(spec_), batch, "vectors");
  }
  void step(Device& device, const Binding& b) override { device.ops().gemv(spec_, b[0], b[1], b[2]); }

 private:
  GemvSpec spec_;
};

}  // namespace

const WorkloadDescriptor& gemv_workload() {
  static const WorkloadDescriptor descriptor{
      .name = "gemv",
      .workload_class = "ops",
      .summary = "matrix times vector, n x n, for a batch of vectors",
      .sweep_axis = "batch",
      .axes = {{.name = "matrix",
                .kind = AxisKind::word,
                .fallback = "shared",
                .words = {"shared", "separate"},
                .summary = "one matrix for all vectors, or one each"},
               {.name = "transpose",
                .kind = AxisKind::word,
                .fallback = "n",
                .words = {"n", "t"},
                .summary = "whether the matrix is used transposed"},
               {.name = "n",
                .fallback = int64_t{1024},
                .high = int64_t{1} << 31,
                .summary = "rows and columns of the matrix"},
               {.name = "batch", .fallback = int64_t{1}, .summary = "vectors"}},
      .precisions = {Precision::fp32, Precision::bf16, Precision::fp16, Precision::fp64},
      .create = [](const Point& point) -> std::unique_ptr<Workload> { return std::make_unique<GemvWorkload>(point); }};
  return descriptor;
}

}  // namespace dlbench
