// The functions of cuBLASLt that src/gpu calls (cuBLAS documentation, "Using the cuBLASLt API"): column-major matrices,
// strided batches, bias, ReLU and GELU epilogues.
//
// The heuristic gives one algorithm, which remembers the alignments that the preference promised; the product then
// checks them, the workspace, and what the documentation demands of bias and auxiliary buffers.
#include <cublasLt.h>

#include <array>
#include <cstring>

#include "cuda_emulation/emulator/api.h"
#include "cuda_emulation/emulator/fault.h"
#include "cuda_emulation/emulator/gemm.h"
#include "cuda_emulation/emulator/memory.h"

using namespace dlbench::cuda_emulation;

struct cublasLtContext {};

namespace {

struct Description {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t trans_a = CUBLAS_OP_N, trans_b = CUBLAS_OP_N;
  cublasLtPointerMode_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  int64_t bias_stride = 0;
  int32_t bias_type = -1;  ///< -1: that of D
  void* aux = nullptr;
  int64_t aux_ld = 0, aux_stride = 0;
};

struct Layout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t ld;
  cublasLtOrder_t order = CUBLASLT_ORDER_COL;
  int32_t batch = 1;
  int64_t stride = 0;
};

struct Preference {
  uint64_t workspace_bytes = 0;
  uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<uint32_t, 4> alignment{256, 256, 256, 256};  ///< of A, B, C, D; the documented default
};

struct Algorithm {
  uint64_t mark;
  uint64_t workspace_bytes;
  std::array<uint32_t, 4> alignment;
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));
constexpr uint64_t kAlgorithmMark = 0x646c62656e6368ull;
constexpr uint64_t kWorkspaceUsed = 4096;

// The handles point at our own objects: the size of the opaque ones matters only to code that initialises them in
// place.
Description* object(cublasLtMatmulDesc_t handle) {
  return reinterpret_cast<Description*>(handle);
}
Layout* object(cublasLtMatrixLayout_t handle) {
  return reinterpret_cast<Layout*>(handle);
}
Preference* object(cublasLtMatmulPreference_t handle) {
  return reinterpret_cast<Preference*>(handle);
}

cublasStatus_t refuse_lt(cublasStatus_t status, const std::string& sentence) {
  set_why(sentence);
  return status;
}

template <typename T>
cublasStatus_t set(T& field, const void* value, size_t bytes) {
  if (!value || bytes != sizeof(T)) {
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, fmt::format("the attribute has {} bytes, not {}", sizeof(T), bytes));
  }
  std::memcpy(&field, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

struct Problem {
  const Description* description;
  const Layout *a, *b, *c, *d;
};

bool has_bias(cublasLtEpilogue_t e) {
  return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_RELU_BIAS || e == CUBLASLT_EPILOGUE_GELU_BIAS ||
         e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

bool has_aux(cublasLtEpilogue_t e) {
  return e == CUBLASLT_EPILOGUE_GELU_AUX || e == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

// Which activation, or a refusal for the epilogues that aren't emulated.
bool find_activation(cublasLtEpilogue_t epilogue, Activation* out) {
  switch (epilogue) {  // CUDA's enumeration is wider than what is emulated
    case CUBLASLT_EPILOGUE_DEFAULT:
    case CUBLASLT_EPILOGUE_BIAS:
      *out = Activation::none;
      return true;
    case CUBLASLT_EPILOGUE_RELU:
    case CUBLASLT_EPILOGUE_RELU_BIAS:
      *out = Activation::relu;
      return true;
    case CUBLASLT_EPILOGUE_GELU:
    case CUBLASLT_EPILOGUE_GELU_BIAS:
    case CUBLASLT_EPILOGUE_GELU_AUX:
    case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      *out = Activation::gelu;
      return true;
    default:
      return false;
  }
}

// The rows of the documentation's table of supported types ("cublasLtMatmul()") that apply here.
std::string type_problem(const Problem& p) {
  const cudaDataType_t in = p.a->type, out = p.d->type;
  if (p.b->type != in || p.c->type != out) return "A and B, or C and D, have different types";
  const bool half = in == CUDA_R_16F || in == CUDA_R_16BF;
  switch (p.description->compute) {  // as above
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      if (p.description->scale == CUDA_R_64F && in == CUDA_R_64F && out == CUDA_R_64F) return "";
      break;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (p.description->scale == CUDA_R_32F &&
          ((in == CUDA_R_32F && out == in) || (half && (out == in || out == CUDA_R_32F))))
        return "";
      break;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      if (p.description->scale == CUDA_R_32F && in == CUDA_R_32F && out == in) return "";
      break;
    default:
      break;
  }
  return fmt::format("types {} and {} with compute type {} and scale type {} aren't supported", static_cast<int>(in),
                     static_cast<int>(out), static_cast<int>(p.description->compute),
                     static_cast<int>(p.description->scale));
}

std::string layout_problem(const char* name, const Layout& layout) {
  if (layout.order != CUBLASLT_ORDER_COL) return fmt::format("{} isn't column-major", name);
  if (layout.ld < static_cast<int64_t>(layout.rows)) {
    return fmt::format("leading dimension {} of {} is below its {} rows", layout.ld, name, layout.rows);
  }
  return "";
}

std::string shape_problem(const Problem& p) {
  for (const auto& [name, layout] : {std::pair{"A", p.a}, {"B", p.b}, {"C", p.c}, {"D", p.d}}) {
    if (std::string problem = layout_problem(name, *layout); !problem.empty()) return problem;
    if (layout->batch != p.d->batch)
      return fmt::format("{} has {} matrices and D has {}", name, layout->batch, p.d->batch);
  }
  const bool ta = p.description->trans_a != CUBLAS_OP_N, tb = p.description->trans_b != CUBLAS_OP_N;
  const uint64_t m = ta ? p.a->columns : p.a->rows, k = ta ? p.a->rows : p.a->columns;
  const uint64_t k_of_b = tb ? p.b->columns : p.b->rows, n = tb ? p.b->rows : p.b->columns;
  if (k != k_of_b || p.d->rows != m || p.d->columns != n || p.c->rows != m || p.c->columns != n) {
    return fmt::format("op(A) is {} x {}, op(B) {} x {}, C {} x {}, D {} x {}", m, k, k_of_b, n, p.c->rows,
                       p.c->columns, p.d->rows, p.d->columns);
  }
  return "";
}

// What the documentation demands of the epilogue's buffers (cublasLtMatmulDescAttributes_t).
std::string epilogue_problem(const Problem& p) {
  const Description& d = *p.description;
  if (has_bias(d.epilogue) && p.d->batch > 1 && d.bias_stride != 0 && d.bias_stride < static_cast<int64_t>(p.d->rows)) {
    return "the stride of the bias is below its length";
  }
  if (!has_aux(d.epilogue)) return "";
  if (d.aux_ld % 8 != 0 || d.aux_ld < static_cast<int64_t>(p.d->rows)) {
    return fmt::format("the auxiliary leading dimension {} must be a multiple of 8 and at least {}", d.aux_ld,
                       p.d->rows);
  }
  return "";
}

cublasStatus_t check(const Problem& p) {
  Activation activation;
  if (const std::string problem = type_problem(p); !problem.empty())
    return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED, problem);
  if (const std::string problem = shape_problem(p); !problem.empty())
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, problem);
  if (!find_activation(p.description->epilogue, &activation)) {
    return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED,
                     fmt::format("epilogue {} isn't emulated", static_cast<int>(p.description->epilogue)));
  }
  if (const std::string problem = epilogue_problem(p); !problem.empty())
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, problem);
  return CUBLAS_STATUS_SUCCESS;
}

bool aligned(const void* pointer, uint32_t bytes) {
  return bytes == 0 || reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

std::string alignment_problem(const Description& d, const Algorithm& algorithm,
                              const std::array<const void*, 4>& operands) {
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!aligned(operands[i], algorithm.alignment[i])) {
      return fmt::format("{} isn't aligned to the {} bytes that the heuristic was asked for", "ABCD"[i],
                         algorithm.alignment[i]);
    }
  }
  if (has_aux(d.epilogue) && !aligned(d.aux, 16)) return "the auxiliary buffer must be aligned to 16 bytes";
  return "";
}

double scalar(const void* pointer, cudaDataType_t type) {
  return type == CUDA_R_64F ? *static_cast<const double*>(pointer)
                            : static_cast<double>(*static_cast<const float*>(pointer));
}

MatrixOperand operand(const void* data, const Layout& l) {
  return {data, l.type, static_cast<int64_t>(l.rows), static_cast<int64_t>(l.columns), l.ld, l.stride};
}

GemmCall make_call(const Problem& p, const void* alpha, const void* a, const void* b, const void* beta, const void* c,
                   void* d) {
  const Description& desc = *p.description;
  GemmCall g;
  g.name = "cublasLtMatmul";
  g.transpose_a = desc.trans_a != CUBLAS_OP_N;
  g.transpose_b = desc.trans_b != CUBLAS_OP_N;
  g.round_to_tf32 = desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  g.batch = p.d->batch;
  g.alpha = scalar(alpha, desc.scale);
  g.beta = scalar(beta, desc.scale);
  g.a = operand(a, *p.a);
  g.b = operand(b, *p.b);
  g.c = operand(c, *p.c);
  g.d = operand(d, *p.d);
  find_activation(desc.epilogue, &g.activation);
  if (has_bias(desc.epilogue)) {
    const auto type = desc.bias_type < 0 ? p.d->type : static_cast<cudaDataType_t>(desc.bias_type);
    g.bias = {desc.bias, type, g.d.rows, 1, g.d.rows, desc.bias_stride};
  }
  if (has_aux(desc.epilogue)) g.aux = {desc.aux, p.d->type, g.d.rows, g.d.columns, desc.aux_ld, desc.aux_stride};
  return g;
}

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {  // of CUDA's values, those that the emulator returns
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "unknown status";
  }
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {  // as above
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the GPU program failed to execute";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality requested is not supported";
    default:
      return "unknown status";
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute,
                                        cudaDataType_t scale) {
  *handle = reinterpret_cast<cublasLtMatmulDesc_t>(new Description{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t handle) {
  delete object(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t bytes) {
  Description& d = *object(handle);
  switch (attribute) {  // of CUDA's attributes, those that are emulated
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      if (const cublasStatus_t status = set(d.pointer_mode, value, bytes)) return status;
      if (d.pointer_mode == CUBLASLT_POINTER_MODE_HOST) return CUBLAS_STATUS_SUCCESS;
      return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED, "only the host pointer mode is emulated");
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(d.trans_a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(d.trans_b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(d.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(d.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE:
      return set(d.bias_stride, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(d.bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(d.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(d.aux_ld, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE:
      return set(d.aux_stride, value, bytes);
    default:
      return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED,
                       fmt::format("attribute {} of a product isn't emulated", static_cast<int>(attribute)));
  }
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* handle, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t ld) {
  if (size_of_type(type) == 0) {
    return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED,
                     fmt::format("matrices of type {} aren't emulated", static_cast<int>(type)));
  }
  *handle = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, ld});
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t handle) {
  delete object(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t handle,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  Layout& layout = *object(handle);
  switch (attribute) {  // as above
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return set(layout.order, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return set(layout.ld, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(layout.batch, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(layout.stride, value, bytes);
    default:
      return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED,
                       fmt::format("attribute {} of a layout isn't emulated", static_cast<int>(attribute)));
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* handle) {
  *handle = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t handle) {
  delete object(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    size_t bytes) {
  Preference& preference = *object(handle);
  switch (attribute) {  // as above
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.workspace_bytes, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference.reduction_schemes, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return set(preference.alignment[0], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return set(preference.alignment[1], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return set(preference.alignment[2], value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.alignment[3], value, bytes);
    default:
      return refuse_lt(CUBLAS_STATUS_NOT_SUPPORTED,
                       fmt::format("attribute {} of a preference isn't emulated", static_cast<int>(attribute)));
  }
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int* returned) {
  const Call call;
  *returned = 0;
  if (!handle) return refuse_lt(CUBLAS_STATUS_NOT_INITIALIZED, "the cuBLASLt handle is null");
  if (requested < 1) return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, "no algorithm was asked for");
  const Problem problem{object(description), object(a), object(b), object(c), object(d)};
  if (const cublasStatus_t status = check(problem)) return status;
  const Preference& wanted = *object(preference);
  const Algorithm algorithm{kAlgorithmMark, std::min(wanted.workspace_bytes, kWorkspaceUsed), wanted.alignment};
  results[0] = {};
  std::memcpy(&results[0].algo, &algorithm, sizeof algorithm);
  results[0].workspaceSize = algorithm.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  results[0].wavesCount = 1;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                              cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* algo, void* workspace, size_t workspace_bytes,
                              cudaStream_t stream_handle) {
  const Call call;
  if (!handle) return refuse_lt(CUBLAS_STATUS_NOT_INITIALIZED, "the cuBLASLt handle is null");
  const Problem problem{object(description), object(a_layout), object(b_layout), object(c_layout), object(d_layout)};
  if (const cublasStatus_t status = check(problem)) return status;
  Algorithm algorithm{kAlgorithmMark, 0, {}};
  if (algo) std::memcpy(&algorithm, algo, sizeof algorithm);
  if (algorithm.mark != kAlgorithmMark)
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, "the algorithm isn't from the heuristic");
  if (workspace_bytes < algorithm.workspace_bytes ||
      (algorithm.workspace_bytes > 0 && DeviceMemory::instance().bytes_from(workspace) < algorithm.workspace_bytes)) {
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE,
                     fmt::format("the algorithm needs {} bytes of workspace", algorithm.workspace_bytes));
  }
  if (const std::string misaligned = alignment_problem(*problem.description, algorithm, {a, b, c, d});
      !misaligned.empty()) {
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, misaligned);
  }
  CUstream_st* stream = Streams::instance().resolve(stream_handle);
  if (!stream) return refuse_lt(CUBLAS_STATUS_EXECUTION_FAILED, "the stream is gone");
  const GemmCall gemm = make_call(problem, alpha, a, b, beta, c, d);
  if (has_bias(problem.description->epilogue) && !gemm.bias.data) {
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, "the epilogue has a bias, but its pointer wasn't set");
  }
  if (has_aux(problem.description->epilogue) && !gemm.aux.data) {
    return refuse_lt(CUBLAS_STATUS_INVALID_VALUE, "the epilogue has an auxiliary output, but its pointer wasn't set");
  }
  if (gemm.d.rows == 0 || gemm.d.columns == 0) return CUBLAS_STATUS_SUCCESS;
  Streams::instance().enqueue(stream, gemm.name, [gemm] { run_gemm(gemm); });
  return CUBLAS_STATUS_SUCCESS;
}
