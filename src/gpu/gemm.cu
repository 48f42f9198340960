// gemm: matrix products through cuBLASLt. Twin: src/cpu/gemm.cpp.
//
// cuBLASLt is column-major. A row-major C[m,n] with leading dimension ldc is a column-major [n,m]: C^T = op(B)^T
// op(A)^T, so B is passed first, with n and m exchanged and both transposes kept. The bias, a value per row of the
// column-major result, is then our vector of n.
//
// Math modes, written out (cuBLAS documentation, cublasComputeType_t):
//   fp32  CUBLAS_COMPUTE_32F: fp32 products and sums. TF32 is off: cuBLASLt takes it for 32F_FAST_TF32 only. Not
//         32F_PEDANTIC, which also forbids splitting k and so measures a handicapped library.
//   tf32  CUBLAS_COMPUTE_32F_FAST_TF32. bf16, fp16: CUBLAS_COMPUTE_32F over 16-bit matrices. fp64: CUBLAS_COMPUTE_64F.
// Split-k sums may be kept in the compute type only (never in a 16-bit output): CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE.
//
// Epilogues are fused where cuBLASLt has them: its GELU is the tanh form, as ours. Its ReLU keeps a bit mask instead of
// the pre-activation; and the aux output of GELU needs leading dimensions divisible by 8. Where a fusion isn't
// available the product goes to memory and one more pass of ours does the rest: the same formula, with the value before
// the activation rounded to the storage type.
#include "gpu/gemm.h"

#include <string>

#include "core/base/error.h"
#include "core/math/activation.h"
#include "gpu/parallel.cuh"

namespace dlbench::gpu {

/// Who applies bias and activation.
enum class Finish : uint8_t {
  fused,     ///< cuBLASLt
  in_place,  ///< our pass over C: bias and activation (and it writes pre_activation)
  from_pre,  ///< cuBLASLt wrote product + bias to pre_activation; our pass applies the activation
};

struct GemmPlan {
  explicit GemmPlan(const BlasFunctions& f) : functions(f) {}
  ~GemmPlan() {
    if (a != nullptr) static_cast<void>(functions.cublasLtMatrixLayoutDestroy(a));
    if (b != nullptr) static_cast<void>(functions.cublasLtMatrixLayoutDestroy(b));
    if (c != nullptr) static_cast<void>(functions.cublasLtMatrixLayoutDestroy(c));
    if (operation != nullptr) static_cast<void>(functions.cublasLtMatmulDescDestroy(operation));
  }
  GemmPlan(const GemmPlan&) = delete;
  GemmPlan& operator=(const GemmPlan&) = delete;

  const BlasFunctions& functions;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;  // of our A, B, C
  cublasLtMatmulAlgo_t algorithm = {};
  Finish finish = Finish::fused;
};

namespace {

struct LtTypes {
  cudaDataType_t data;
  cublasComputeType_t compute;
  cudaDataType_t scale;
};

LtTypes lt_types(Precision precision) {
  switch (precision) {
    case Precision::fp64:
      return {CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F};
    case Precision::fp32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case Precision::tf32:
      return {CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F};
    case Precision::bf16:
      return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F};
    case Precision::fp16:
      return {CUDA_R_16F, CUBLAS_COMPUTE_32F, CUDA_R_32F};
  }
  throw std::invalid_argument("not a precision");
}

bool has_activation(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
    case Epilogue::bias:
      return false;
    case Epilogue::bias_relu:
    case Epilogue::bias_gelu:
      return true;
  }
  throw std::invalid_argument("not an epilogue");
}

cublasLtEpilogue_t lt_epilogue(Epilogue epilogue, bool has_pre_activation) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_relu:
      return CUBLASLT_EPILOGUE_RELU_BIAS;
    case Epilogue::bias_gelu:
      return has_pre_activation ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_BIAS;
  }
  throw std::invalid_argument("not an epilogue");
}

cudaDataType_t lt_data_type(DType type) {
  switch (type) {
    case DType::f64:
      return CUDA_R_64F;
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::i32:
    case DType::u8:
      throw_not_a_float_type(type, "gemm");
  }
  throw std::invalid_argument("not an element type");
}

/// log2 of the alignment of a pointer, 8 (256 bytes) at most.
uint32_t alignment_log2(const void* pointer) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  uint32_t log2 = 0;
  while (log2 < 8 && (address >> log2 & 1) == 0) ++log2;
  return log2;
}

uint32_t pack_alignments(const void* a, const void* b, const void* c, const void* bias, const void* pre) {
  return alignment_log2(a) | alignment_log2(b) << 4 | alignment_log2(c) << 8 | alignment_log2(bias) << 12 |
         alignment_log2(pre) << 16;
}

template <typename T>
void set_operation(const GemmPlan& plan, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  DLB_CUBLAS(plan.functions.cublasLtMatmulDescSetAttribute(plan.operation, attribute, &value, sizeof value));
}

/// Makes the column-major layout of a row-major matrix of `rows` rows of `columns` elements.
void make_layout(const BlasFunctions& f, cublasLtMatrixLayout_t* layout, cudaDataType_t type, int64_t rows,
                 int64_t columns, int64_t leading, int64_t batch, int64_t stride) {
  DLB_CUBLAS(
      f.cublasLtMatrixLayoutCreate(layout, type, static_cast<uint64_t>(columns), static_cast<uint64_t>(rows), leading));
  if (batch == 1) return;
  const int32_t count = static_cast<int32_t>(batch);
  DLB_CUBLAS(f.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
  DLB_CUBLAS(
      f.cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
}

/// The preference object of one heuristics query.
class Preference {
 public:
  Preference(const BlasFunctions& f, uint64_t workspace_bytes, uint32_t alignments, bool c_is_pre) : f_(f) {
    DLB_CUBLAS(f.cublasLtMatmulPreferenceCreate(&preference_));
    set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
    set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
    const auto bytes = [&](int position) { return uint32_t{1} << (alignments >> (4 * position) & 0xFu); };
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, bytes(1));  // cuBLASLt's A is our B
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, bytes(0));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, bytes(c_is_pre ? 4 : 2));
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, bytes(c_is_pre ? 4 : 2));
  }
  ~Preference() { static_cast<void>(f_.cublasLtMatmulPreferenceDestroy(preference_)); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  template <typename T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    DLB_CUBLAS(f_.cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value));
  }
  const BlasFunctions& f_;
  cublasLtMatmulPreference_t preference_ = nullptr;
};

/// Asks cuBLASLt for the algorithm of the plan's operation; false when it has none.
bool query_algorithm(GemmPlan& plan, const GemmKey& key, const Blas& blas) {
  constexpr int kAsked = 8;
  cublasLtMatmulHeuristicResult_t results[kAsked] = {};
  int found = 0;
  const Preference preference(plan.functions, blas.workspace_bytes(), key.alignment, plan.finish == Finish::from_pre);
  const cublasStatus_t status = plan.functions.cublasLtMatmulAlgoGetHeuristic(
      blas.cublaslt(), plan.operation, plan.b, plan.a, plan.c, plan.c, preference.get(), kAsked, results, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return false;
  DLB_CUBLAS(status);
  for (int i = 0; i < found; ++i) {
    if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= blas.workspace_bytes()) {
      plan.algorithm = results[i].algo;
      return true;
    }
  }
  return false;
}

/// Sets the epilogue of one way to finish and looks for an algorithm; false when cuBLASLt can't do it this way.
bool try_finish(GemmPlan& plan, const GemmKey& key, const Blas& blas, Finish finish, const void* bias, void* pre) {
  const GemmSpec& s = key.spec;
  plan.finish = finish;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  switch (finish) {
    case Finish::fused:
      epilogue = lt_epilogue(s.epilogue, key.has_pre_activation);
      break;
    case Finish::from_pre:
      epilogue = CUBLASLT_EPILOGUE_BIAS;
      break;
    case Finish::in_place:
      break;
  }
  set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  // The heuristics read the alignment of these pointers.
  const void* lt_bias = epilogue == CUBLASLT_EPILOGUE_DEFAULT ? nullptr : bias;
  set_operation(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, lt_bias);
  if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pre);
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.ldc);
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE, s.batch > 1 ? s.stride_c : int64_t{0});
  }
  return query_algorithm(plan, key, blas);
}

std::string describe(const GemmSpec& s) {
  const auto field = [](const char* name, int64_t value) {
    return std::string(name) + "=" + std::to_string(value) + " ";
  };
  return field("m", s.m) + field("n", s.n) + field("k", s.k) + field("batch", s.batch) + field("lda", s.lda) +
         field("ldb", s.ldb) + field("ldc", s.ldc) + "in " + std::string(to_string(s.precision));
}

/// Ways to finish that the documented limits of cuBLASLt leave, best first.
bool fusion_allowed(const GemmKey& key) {
  const GemmSpec& s = key.spec;
  if (s.epilogue == Epilogue::none) return true;
  if (s.precision == Precision::fp64) return false;  // no epilogues in 64F (cublasLtMatmul, table of supported types)
  if (!key.has_pre_activation) return true;
  const bool aux_aligned = s.ldc % 8 == 0 && (s.batch == 1 || s.stride_c % 8 == 0) && (key.alignment >> 16 & 0xFu) >= 4;
  return s.epilogue == Epilogue::bias_gelu && aux_aligned;
}

std::unique_ptr<GemmPlan> make_plan(const GemmKey& key, const Blas& blas, const void* bias, void* pre) {
  const GemmSpec& s = key.spec;
  const BlasFunctions& f = blas.functions();
  const LtTypes types = lt_types(s.precision);
  auto plan = std::make_unique<GemmPlan>(f);
  DLB_CUBLAS(f.cublasLtMatmulDescCreate(&plan->operation, types.compute, types.scale));
  const auto lt_transpose = [](Transpose t) { return t == Transpose::no ? CUBLAS_OP_N : CUBLAS_OP_T; };
  set_operation(*plan, CUBLASLT_MATMUL_DESC_TRANSA, lt_transpose(s.trans_b));
  set_operation(*plan, CUBLASLT_MATMUL_DESC_TRANSB, lt_transpose(s.trans_a));
  const bool a_plain = s.trans_a == Transpose::no, b_plain = s.trans_b == Transpose::no;
  make_layout(f, &plan->a, types.data, a_plain ? s.m : s.k, a_plain ? s.k : s.m, s.lda, s.batch, s.stride_a);
  make_layout(f, &plan->b, types.data, b_plain ? s.k : s.n, b_plain ? s.n : s.k, s.ldb, s.batch, s.stride_b);
  make_layout(f, &plan->c, lt_data_type(key.c_type), s.m, s.n, s.ldc, s.batch, s.stride_c);

  if (fusion_allowed(key) && try_finish(*plan, key, blas, Finish::fused, bias, pre)) return plan;
  if (s.epilogue != Epilogue::none) {
    if (key.has_pre_activation && s.precision != Precision::fp64 &&
        try_finish(*plan, key, blas, Finish::from_pre, bias, pre)) {
      return plan;
    }
    if (try_finish(*plan, key, blas, Finish::in_place, bias, pre)) return plan;
  }
  throw UnsupportedError("gemm: cuBLASLt has no algorithm for " + describe(s) + " on this GPU within " +
                         std::to_string(blas.workspace_bytes() >> 20) + " MiB of workspace");
}

/// Bias and activation in a pass of its own, over C in place or from the pre-activation; also beta * C + bias for k =
/// 0.
struct EpiloguePass {
  int64_t total, m, n, ldc, stride_c;
  Epilogue epilogue;
  bool from_pre;  // read the biased value from `pre`
  bool write_pre;
};

template <typename T>
__global__ void epilogue_kernel(EpiloguePass pass, ComputeOf<T> c_factor, const T* bias, T* c, T* pre) {
  using Value = ComputeOf<T>;
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < pass.total; i += threads) {
    const int64_t column = i % pass.n, row = i / pass.n;
    const int64_t at = row / pass.m * pass.stride_c + row % pass.m * pass.ldc + column;
    Value value = 0;
    if (pass.from_pre) {
      value = widen(pre[at]);
    } else {
      if (c_factor != Value(0)) value = c_factor * widen(c[at]);
      if (pass.epilogue != Epilogue::none) value += widen(bias[column]);
      if (pass.write_pre) pre[at] = narrow<T>(value);
    }
    if (pass.epilogue == Epilogue::bias_relu) value = ReluForward{}(value);
    if (pass.epilogue == Epilogue::bias_gelu) value = GeluForward{}(value);
    c[at] = narrow<T>(value);
  }
}

template <typename T>
void run_epilogue(cudaStream_t stream, int multiprocessors, const GemmSpec& s, bool from_pre, float c_factor,
                  const void* bias, void* c, void* pre) {
  const int64_t total = s.batch * s.m * s.n;
  const EpiloguePass pass = {total, s.m, s.n, s.ldc, s.stride_c, s.epilogue, from_pre, pre != nullptr};
  launch(stream, dim3(grid_size(total, multiprocessors)), dim3(kThreads), 0, epilogue_kernel<T>, pass,
         static_cast<ComputeOf<T>>(c_factor), static_cast<const T*>(bias), static_cast<T*>(c), static_cast<T*>(pre));
}

/// activation(pre) -> C where both are dense: 16-byte accesses.
template <typename T>
void run_dense_activation(cudaStream_t stream, int multiprocessors, const GemmSpec& s, void* c, const void* pre) {
  const int64_t total = s.batch * s.m * s.n;
  const T* from = static_cast<const T*>(pre);
  T* to = static_cast<T*>(c);
  if (s.epilogue == Epilogue::bias_relu) {
    map(stream, multiprocessors, total, InStorage<T, ReluForward>{}, to, from);
  } else {
    map(stream, multiprocessors, total, InStorage<T, GeluForward>{}, to, from);
  }
}

void finish_gemm(cudaStream_t stream, int multiprocessors, const GemmSpec& s, DType c_type, Finish finish,
                 float c_factor, const void* bias, void* c, void* pre) {
  if (finish == Finish::fused) return;
  const bool from_pre = finish == Finish::from_pre;
  const bool dense = s.ldc == s.n && (s.batch == 1 || s.stride_c == s.m * s.n);
  visit_float_type(c_type, "gemm", [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (from_pre && dense) return run_dense_activation<T>(stream, multiprocessors, s, c, pre);
    run_epilogue<T>(stream, multiprocessors, s, from_pre, c_factor, bias, c, pre);
  });
}

const void* advance(const void* p, int64_t elements, size_t element_bytes) {
  return p == nullptr ? nullptr : static_cast<const char*>(p) + elements * static_cast<int64_t>(element_bytes);
}
void* advance(void* p, int64_t elements, size_t element_bytes) {
  return p == nullptr ? nullptr : static_cast<char*>(p) + elements * static_cast<int64_t>(element_bytes);
}

constexpr int64_t kBatchOfACall = 65535;  // cuBLASLt maps the batch to a grid dimension with this limit

}  // namespace

size_t GemmKeyHash::operator()(const GemmKey& key) const {
  const GemmSpec& s = key.spec;
  const uint64_t words[] = {static_cast<uint64_t>(s.m),
                            static_cast<uint64_t>(s.n),
                            static_cast<uint64_t>(s.k),
                            static_cast<uint64_t>(s.batch),
                            static_cast<uint64_t>(s.trans_a) | static_cast<uint64_t>(s.trans_b) << 1 |
                                static_cast<uint64_t>(s.precision) << 8 | static_cast<uint64_t>(s.epilogue) << 16,
                            key.alignment | static_cast<uint64_t>(key.c_type) << 32};
  uint64_t hash = 0;
  for (const uint64_t word : words) hash = (hash ^ word) * 0x9E3779B97F4A7C15ull + (hash >> 29);
  return static_cast<size_t>(hash);
}

GemmPlans::GemmPlans() = default;
GemmPlans::~GemmPlans() = default;

GemmPlan& GemmPlans::find_or_make(const GemmKey& key, const Blas& blas, const void* bias, void* pre_activation) {
  std::unique_ptr<GemmPlan>& plan = plans_[key];
  if (!plan) plan = make_plan(key, blas, bias, pre_activation);
  return *plan;
}

void GpuOps::gemm(const GemmSpec& spec, const void* a, const void* b, const void* bias, void* c, void* pre_activation) {
  const GemmSpec s = spec.resolved();
  require(Op::gemm, s.precision);
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  if (s.epilogue != Epilogue::none && bias == nullptr) throw std::invalid_argument("gemm: the epilogue needs a bias");
  if (pre_activation != nullptr && !has_activation(s.epilogue)) {
    throw std::invalid_argument("gemm: pre_activation belongs to bias_relu and bias_gelu only");
  }
  run_gemm(s, storage_of(s.precision), a, b, bias, c, pre_activation);
}

void GpuOps::wide_gemm(const GemmSpec& spec, const void* a, const void* b, void* c) {
  const GemmSpec s = spec.resolved();
  require(Op::gemm, s.precision);
  if (s.m == 0 || s.n == 0 || s.batch == 0) return;
  if (s.epilogue != Epilogue::none) throw std::invalid_argument("wide_gemm has no epilogue");
  run_gemm(s, accumulate_of(s.precision), a, b, nullptr, c, nullptr);
}

void GpuOps::run_gemm(const GemmSpec& s, DType c_type, const void* a, const void* b, const void* bias, void* c,
                      void* pre_activation) {
  if (s.k == 0) {
    return finish_gemm(stream_, hardware_.multiprocessors, s, c_type, Finish::in_place, s.beta, bias, c,
                       pre_activation);
  }
  if (s.batch > kBatchOfACall) {
    const size_t bytes = size_of(storage_of(s.precision)), c_bytes = size_of(c_type);
    for (int64_t done = 0; done < s.batch; done += kBatchOfACall) {
      GemmSpec part = s;
      part.batch = s.batch - done < kBatchOfACall ? s.batch - done : kBatchOfACall;
      run_gemm(part, c_type, advance(a, done * s.stride_a, bytes), advance(b, done * s.stride_b, bytes), bias,
               advance(c, done * s.stride_c, c_bytes), advance(pre_activation, done * s.stride_c, c_bytes));
    }
    return;
  }
  const GemmKey key = {s, c_type, pack_alignments(a, b, c, bias, pre_activation), pre_activation != nullptr};
  GemmPlan& plan = gemm_plans_->find_or_make(key, blas_, bias, pre_activation);
  if (s.epilogue != Epilogue::none && plan.finish != Finish::in_place) {
    set_operation(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }
  if (s.epilogue == Epilogue::bias_gelu && pre_activation != nullptr && plan.finish == Finish::fused) {
    set_operation(plan, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pre_activation);
  }
  void* to = plan.finish == Finish::from_pre ? pre_activation : c;
  const double alpha_64 = s.alpha, beta_64 = s.beta;
  const bool wide = s.precision == Precision::fp64;
  const void* alpha = wide ? static_cast<const void*>(&alpha_64) : &s.alpha;
  const void* beta = wide ? static_cast<const void*>(&beta_64) : &s.beta;
  DLB_CUBLAS(blas_.functions().cublasLtMatmul(blas_.cublaslt(), plan.operation, alpha, b, plan.b, a, plan.a, beta, to,
                                              plan.c, to, plan.c, &plan.algorithm, blas_.workspace(),
                                              blas_.workspace_bytes(), stream_));
  finish_gemm(stream_, hardware_.multiprocessors, s, c_type, plan.finish, 1.0f, bias, c, pre_activation);
}

}  // namespace dlbench::gpu
