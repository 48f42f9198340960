// The emulated cuBLAS and cuBLASLt against plain loops, and what they refuse.
#include <cublasLt.h>
#include <cublas_v2.h>
#include <gmock/gmock.h>

#include <cmath>

#include "core/math/float_types.h"
#include "cuda_emulation/test_support.h"

namespace dlbench::cuda_emulation::test {
namespace {

using testing::HasSubstr;

template <typename T>
std::vector<T> sequence(size_t count, float step) {
  std::vector<T> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = from_float<T>(static_cast<float>(static_cast<int>(i * 7 % 11) - 5) * step);
  return out;
}

// One product through cuBLASLt; every handle is released.
struct Lt {
  int m = 5, n = 4, k = 3, lda = 5, ldb = 3, ldc = 5, batch = 1;
  cublasOperation_t trans_a = CUBLAS_OP_N, trans_b = CUBLAS_OP_N;
  cudaDataType_t in = CUDA_R_32F, out = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_ld = 0;
  uint32_t alignment = 16;
  float alpha = 1, beta = 0;

  cublasStatus_t run(const void* a, const void* b, void* c, cudaStream_t stream) {
    cublasLtHandle_t handle = nullptr;
    cublasLtCreate(&handle);
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatmulDescCreate(&desc, compute, CUDA_R_32F);
    set(desc, CUBLASLT_MATMUL_DESC_TRANSA, trans_a);
    set(desc, CUBLASLT_MATMUL_DESC_TRANSB, trans_b);
    set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (bias) set(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
    if (aux) {
      set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
      set(desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, aux_ld);
    }
    const bool ta = trans_a != CUBLAS_OP_N, tb = trans_b != CUBLAS_OP_N;
    const cublasLtMatrixLayout_t la = layout(in, ta ? k : m, ta ? m : k, lda),
                                 lb = layout(in, tb ? n : k, tb ? k : n, ldb), lc = layout(out, m, n, ldc);
    cublasLtMatmulPreference_t preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    for (const auto attribute :
         {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
      cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof alignment);
    }
    cublasLtMatmulHeuristicResult_t result = {};
    int found = 0;
    cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, desc, la, lb, lc, lc, preference, 1, &result, &found);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status =
          cublasLtMatmul(handle, desc, &alpha, a, la, b, lb, &beta, c, lc, c, lc, &result.algo, nullptr, 0, stream);
    }
    cublasLtMatmulPreferenceDestroy(preference);
    for (const cublasLtMatrixLayout_t l : {la, lb, lc}) cublasLtMatrixLayoutDestroy(l);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
    return status;
  }

 private:
  template <typename T>
  void set(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute, const T& value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }
  cublasLtMatrixLayout_t layout(cudaDataType_t type, int rows, int columns, int ld) {
    cublasLtMatrixLayout_t l = nullptr;
    cublasLtMatrixLayoutCreate(&l, type, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns), ld);
    const int64_t stride = int64_t{ld} * columns;
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
    cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
    return l;
  }
};

TEST(Blas, EveryTransposeOfABatchIsRight) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Lt lt;
      lt.batch = 2;
      lt.alpha = 2;
      lt.beta = 1;
      lt.trans_a = ta ? CUBLAS_OP_T : CUBLAS_OP_N;
      lt.trans_b = tb ? CUBLAS_OP_T : CUBLAS_OP_N;
      lt.lda = (ta ? lt.k : lt.m) + 1;
      lt.ldb = (tb ? lt.n : lt.k) + 2;
      lt.ldc = lt.m + 3;
      const int a_size = lt.lda * (ta ? lt.m : lt.k), b_size = lt.ldb * (tb ? lt.k : lt.n), c_size = lt.ldc * lt.n;
      const std::vector<float> a = sequence<float>(static_cast<size_t>(2 * a_size), 0.5f),
                               b = sequence<float>(static_cast<size_t>(2 * b_size), 0.25f),
                               c = sequence<float>(static_cast<size_t>(2 * c_size), 1.0f);
      DeviceArray<float> da(a), db(b), dc(c);
      ASSERT_EQ(lt.run(da.get(), db.get(), dc.get(), nullptr), CUBLAS_STATUS_SUCCESS) << why();
      const std::vector<float> got = dc.values();
      for (int i = 0; i < 2; ++i) {
        for (int column = 0; column < lt.n; ++column) {
          for (int row = 0; row < lt.ldc; ++row) {
            const auto at = static_cast<size_t>(i * c_size + column * lt.ldc + row);
            double sum = c[at];
            for (int p = 0; row < lt.m && p < lt.k; ++p) {
              sum += 2.0 * a[static_cast<size_t>(i * a_size + (ta ? row * lt.lda + p : p * lt.lda + row))] *
                     b[static_cast<size_t>(i * b_size + (tb ? p * lt.ldb + column : column * lt.ldb + p))];
            }
            EXPECT_EQ(got[at], static_cast<float>(sum)) << ta << tb << i << column << row;
          }
        }
      }
    }
  }
}

TEST(Blas, EpiloguesAddTheBiasThenActivateAndKeepTheArgument) {
  Lt lt;
  const std::vector<float> a = sequence<float>(15, 0.5f), b = sequence<float>(12, 0.25f),
                           bias = sequence<float>(5, 0.3f);
  DeviceArray<float> da(a), db(b), dbias(bias), plain(20), relu(20), gelu(20), aux(32);
  ASSERT_EQ(lt.run(da.get(), db.get(), plain.get(), nullptr), CUBLAS_STATUS_SUCCESS) << why();
  lt.bias = dbias.get();
  lt.epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
  ASSERT_EQ(lt.run(da.get(), db.get(), relu.get(), nullptr), CUBLAS_STATUS_SUCCESS) << why();
  lt.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  lt.aux = aux.get();
  lt.aux_ld = 6;
  EXPECT_EQ(lt.run(da.get(), db.get(), gelu.get(), nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(why(), HasSubstr("multiple of 8"));
  lt.aux_ld = 8;
  ASSERT_EQ(lt.run(da.get(), db.get(), gelu.get(), nullptr), CUBLAS_STATUS_SUCCESS) << why();
  for (size_t i = 0; i < 20; ++i) {
    const double x = plain.values()[i] + static_cast<double>(bias[i % 5]);
    EXPECT_NEAR(relu.values()[i], std::max(x, 0.0), 1e-6);
    EXPECT_NEAR(aux.values()[i / 5 * 8 + i % 5], x, 1e-6);
    EXPECT_NEAR(gelu.values()[i], 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))), 1e-6);
  }
}

TEST(Blas, ComputeTypesRoundTheInputs) {
  Lt lt;
  lt.m = lt.n = lt.k = lt.lda = lt.ldb = lt.ldc = 1;
  const float fine = 1.0f + std::ldexp(1.0f, -13);
  DeviceArray<float> a(std::vector<float>{fine}), one(std::vector<float>{1.0f}), c(1);
  ASSERT_EQ(lt.run(a.get(), one.get(), c.get(), nullptr), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.values()[0], fine);
  lt.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  ASSERT_EQ(lt.run(a.get(), one.get(), c.get(), nullptr), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(c.values()[0], 1.0f);

  lt.compute = CUBLAS_COMPUTE_32F;
  lt.in = lt.out = CUDA_R_16BF;
  DeviceArray<bfloat16> x(std::vector<bfloat16>{to_bfloat16(1.5f)}), y(1);
  ASSERT_EQ(lt.run(x.get(), x.get(), y.get(), nullptr), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(to_float(y.values()[0]), 2.25f);
  lt.in = CUDA_R_16F;
  EXPECT_EQ(lt.run(x.get(), x.get(), y.get(), nullptr), CUBLAS_STATUS_NOT_SUPPORTED);
}

TEST(Blas, CallsWaitInTheStream) {
  Lt lt;
  Stream stream;
  DeviceArray<float> a(std::vector<float>(15, 1.0f)), b(std::vector<float>(12, 1.0f)), c(std::vector<float>(20, -1.0f));
  ASSERT_EQ(lt.run(a.get(), b.get(), c.get(), stream), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(queued_commands(), 1u);
  EXPECT_EQ(c.values(), std::vector<float>(20, 3.0f));
}

TEST(Blas, GemvFollowsTransposeStridesAndIncrements) {
  cublasHandle_t handle = nullptr;
  ASSERT_EQ(cublasCreate_v2(&handle), CUBLAS_STATUS_SUCCESS);
  DeviceArray<float> a(std::vector<float>{1, 2, 9, 3, 4, 9, 5, 6, 9}), x(std::vector<float>{1, 0, 2, 0, 3}),
      y(std::vector<float>(2, 0.0f)), z(std::vector<float>{1, 2}), w(std::vector<float>(3, 0.0f));
  const float one = 1, zero = 0;
  ASSERT_EQ(
      cublasSgemvStridedBatched(handle, CUBLAS_OP_N, 2, 3, &one, a.get(), 3, 0, x.get(), 2, 0, &zero, y.get(), 1, 0, 1),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(y.values(), (std::vector<float>{22, 28}));
  ASSERT_EQ(
      cublasSgemvStridedBatched(handle, CUBLAS_OP_T, 2, 3, &one, a.get(), 3, 0, z.get(), 1, 0, &zero, w.get(), 1, 0, 1),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(w.values(), (std::vector<float>{5, 11, 17}));
  EXPECT_EQ(
      cublasSgemvStridedBatched(handle, CUBLAS_OP_N, 3, 3, &one, a.get(), 2, 0, x.get(), 1, 0, &zero, w.get(), 1, 0, 1),
      CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(why(), HasSubstr("leading dimension 2 of A is below its 3 rows"));
  EXPECT_EQ(cublasDestroy_v2(handle), CUBLAS_STATUS_SUCCESS);
}

// The planted fault "a wrong leading dimension", in its two forms.
TEST(Blas, ALeadingDimensionBelowTheRowsIsRefused) {
  Lt lt;
  lt.lda = 4;
  DeviceArray<float> a(15), b(12), c(20);
  EXPECT_EQ(lt.run(a.get(), b.get(), c.get(), nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(why(), HasSubstr("leading dimension 4 of A is below its 5 rows"));
}

TEST(Blas, ALeadingDimensionThatLeavesTheAllocationIsCaught) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Lt lt;
  lt.ldb = 4;  // of the row count 3: plausible, and one column too far
  DeviceArray<float> a(15), b(12), c(20);
  EXPECT_DEATH(
      {
        lt.run(a.get(), b.get(), c.get(), nullptr);
        cudaDeviceSynchronize();
      },
      "cublasLtMatmul: B of 3 x 4 with leading dimension 4 and 1 in the batch spans 60 bytes, 12 more than its "
      "allocation");
}

TEST(Blas, AlignmentThatTheHeuristicWasPromisedIsChecked) {
  Lt lt;
  DeviceArray<float> a(16), b(12), c(20);
  EXPECT_EQ(lt.run(a.get() + 1, b.get(), c.get(), nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(why(), HasSubstr("A isn't aligned to the 16 bytes"));
  lt.alignment = 4;
  EXPECT_EQ(lt.run(a.get() + 1, b.get(), c.get(), nullptr), CUBLAS_STATUS_SUCCESS);
}

}  // namespace
}  // namespace dlbench::cuda_emulation::test
