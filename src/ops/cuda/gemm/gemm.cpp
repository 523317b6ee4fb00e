#include "ops/gemm.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/cuda/check.h"
#include "ops/activation.h"
#include "ops/cuda/gemm/cublas_check.h"
#include "ops/cuda/gemm/libraries.h"
#include "ops/elementwise.h"
#include "ops/operands/scales.h"

namespace megalith::ops::cuda {

namespace {

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f32:
      return CUDA_R_32F;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::e5m2:
      return CUDA_R_8F_E5M2;
    default:
      fail(ErrorKind::internal, "internal error: {} is not multiplied on a GPU", name_of(dtype));
  }
}

int32_t alignment_of(const Tensor& tensor) {
  constexpr uintptr_t kMost = 256;
  const auto bits = reinterpret_cast<uintptr_t>(tensor.data) | static_cast<uintptr_t>(kMost);
  return static_cast<int32_t>(bits & (~bits + 1));
}

GemmProblem problem_of(const Gemm& args) {
  GemmProblem problem{.m = args.c.rows(),
                      .n = args.c.cols(),
                      .k = args.transpose_a ? args.a.rows() : args.a.cols(),
                      .transpose_a = args.transpose_a,
                      .transpose_b = args.transpose_b,
                      .stride_a = args.a.row_stride,
                      .stride_b = args.b.row_stride,
                      .stride_c = args.c.row_stride,
                      .stride_addend = args.addend.row_stride,
                      .stride_gelu_input = args.gelu_input.row_stride,
                      .a = args.a.dtype,
                      .b = args.b.dtype,
                      .result = args.c.dtype,
                      .accumulates = args.beta != 0.0F,
                      .has_bias = static_cast<bool>(args.bias),
                      .has_addend = static_cast<bool>(args.addend),
                      .has_gelu = static_cast<bool>(args.gelu_input),
                      .fast_accumulation = args.fast_accumulation};
  for (const Tensor& tensor : {args.a, args.b, args.c, args.bias, args.addend, args.gelu_input}) {
    if (tensor) problem.alignment = std::min(problem.alignment, alignment_of(tensor));
  }
  return problem;
}

// cuBLASLt counts columns first: our row-major c = op(a) op(b) is its c^T = op(b)^T op(a)^T, whose first operand is our
// b, and whose bias runs along our columns.
class Call {
 public:
  // A product of fp8 is known with its scales: what cuBLASLt proposes depends on there being some.
  Call(const GemmProblem& p, const Gemm& args) {
    check_cublas(cublasLtMatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
    set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue(p));
    if (p.has_bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(is_fp8(p.a) ? p.result : p.a));
    if (p.has_gelu) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, p.stride_gelu_input);
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, data_type(p.result));
    }
    if (is_fp8(p.a)) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, args.b_inverse);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, args.a_inverse);
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<int8_t>(p.fast_accumulation));
    }
    const int64_t rows_a = p.transpose_a ? p.k : p.m;
    const int64_t rows_b = p.transpose_b ? p.n : p.k;
    first_ = layout(p.b, p.transpose_b ? p.k : p.n, rows_b, p.stride_b);
    second_ = layout(p.a, p.transpose_a ? p.m : p.k, rows_a, p.stride_a);
    result_ = layout(p.result, p.n, p.m, p.stride_c);
    addend_ = layout(p.result, p.n, p.m, p.has_addend ? p.stride_addend : p.stride_c);
  }
  ~Call() {
    for (cublasLtMatrixLayout_t layout : {first_, second_, result_, addend_}) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(product_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  std::vector<cublasLtMatmulAlgo_t> candidates(Libraries& libraries, const GemmProblem& problem) const {
    constexpr int kCandidates = 24;
    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&preference), "asking for algorithms");
    const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
      check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
                   "asking for algorithms");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(Libraries::kWorkspaceBytes));
    const auto alignment = static_cast<uint32_t>(problem.alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> found{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        libraries.cublas, product_, first_, second_, addend_, result_, preference, kCandidates, found.data(), &count);
    cublasLtMatmulPreferenceDestroy(preference);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    if (status != CUBLAS_STATUS_SUCCESS) return algorithms;  // not supported
    for (int i = 0; i < count; ++i) {
      if (found[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS) {
        algorithms.push_back(found[static_cast<size_t>(i)].algo);
      }
    }
    return algorithms;
  }

  cublasStatus_t run(Stream& stream, Libraries& libraries, const Gemm& args, const cublasLtMatmulAlgo_t& algorithm) {
    if (args.bias) set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void*>(args.bias.data));
    if (args.gelu_input) set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, args.gelu_input.data);
    const float alpha = 1.0F;
    const float beta = args.addend ? 1.0F : args.beta;
    const void* addend = args.addend ? args.addend.data : args.c.data;
    return cublasLtMatmul(libraries.cublas, product_, &alpha, args.b.data, first_, args.a.data, second_, &beta, addend,
                          addend_, args.c.data, result_, &algorithm, libraries.workspace, Libraries::kWorkspaceBytes,
                          static_cast<cudaStream_t>(stream.native()));
  }

 private:
  static cublasLtEpilogue_t epilogue(const GemmProblem& p) {
    if (p.has_gelu) return p.has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return p.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    check_cublas(cublasLtMatmulDescSetAttribute(product_, attribute, &value, sizeof(value)), "describing a product");
  }
  static cublasLtMatrixLayout_t layout(DType dtype, int64_t rows, int64_t cols, int64_t stride) {
    cublasLtMatrixLayout_t made = nullptr;
    check_cublas(cublasLtMatrixLayoutCreate(&made, data_type(dtype), static_cast<uint64_t>(rows),
                                            static_cast<uint64_t>(cols), stride),
                 "describing a matrix");
    return made;
  }

  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t first_ = nullptr, second_ = nullptr, result_ = nullptr, addend_ = nullptr;
};

// Seconds of one run of `body` out of `runs` in a row, on the GPU's own clock.
template <class Body>
double time_on(Stream& stream, int64_t runs, const Body& body) {
  StreamMark begin;
  StreamMark end;
  begin.record(stream);
  for (int64_t i = 0; i < runs; ++i) body();
  end.record(stream);
  end.wait();
  return StreamMark::seconds_between(begin, end) / static_cast<double>(runs);
}

// The product without what can come after it in a kernel of ours.
Gemm plain_product(const Gemm& args) {
  Gemm plain = args;
  if (args.gelu_input) plain.c = args.gelu_input;
  plain.gelu_input = {};
  plain.addend = {};
  return plain;
}

void run_apart(Stream& stream, const Gemm& args) {
  cuda::gemm(stream, plain_product(args));
  if (args.gelu_input) cuda::gelu_forward(stream, {.x = args.gelu_input, .y = args.c});
  if (args.addend) cuda::add(stream, {.a = args.c, .b = args.addend, .y = args.c});
}

// One way to compute a problem: in one call, or (without an algorithm) apart.
struct Contender {
  GemmChoice choice;
  double seconds = 0.0;
};

// The fastest of cuBLASLt's answers, and of doing it apart. A first round sorts out the slow; the rest run long enough
// that the card is as hot as in training, in turns so that its clocks favour none. Leaves garbage in c.
GemmChoice choose_by_timing(Stream& stream, Libraries& libraries, const Gemm& args, const GemmProblem& problem) {
  constexpr size_t kFinalists = 6;
  constexpr int kRounds = 5;
  constexpr double kSecondsPerTurn = 0.006;
  Call call(problem, args);
  const auto run = [&](const Contender& contender) {
    if (!contender.choice.algorithm) {
      run_apart(stream, args);
      return true;
    }
    return call.run(stream, libraries, args, *contender.choice.algorithm) == CUBLAS_STATUS_SUCCESS;
  };
  std::vector<Contender> contenders;
  for (const cublasLtMatmulAlgo_t& algorithm : call.candidates(libraries, problem)) {
    contenders.push_back({.choice = {.algorithm = algorithm}});
  }
  if (problem.can_be_apart()) contenders.push_back({});
  std::erase_if(contenders, [&](const Contender& contender) { return !run(contender); });
  const auto faster = [](const Contender& a, const Contender& b) { return a.seconds < b.seconds; };
  for (Contender& contender : contenders) contender.seconds = time_on(stream, 2, [&] { run(contender); });
  std::sort(contenders.begin(), contenders.end(), faster);
  if (contenders.size() > kFinalists) contenders.resize(kFinalists);

  std::vector<std::vector<double>> turns(contenders.size());
  for (int round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const auto runs = static_cast<int64_t>(kSecondsPerTurn / contenders[i].seconds) + 1;
      turns[i].push_back(time_on(stream, runs, [&] { run(contenders[i]); }));
    }
  }
  for (size_t i = 0; i < contenders.size(); ++i) {
    std::sort(turns[i].begin(), turns[i].end());
    contenders[i].seconds = turns[i][turns[i].size() / 2];
  }
  const auto best = std::min_element(contenders.begin(), contenders.end(), faster);
  return best == contenders.end() ? GemmChoice{} : best->choice;
}

GemmChoice choose(Stream& stream, Libraries& libraries, const Gemm& args, const GemmProblem& problem) {
  GemmChoice choice;
  if (libraries.tuning) {
    choice = choose_by_timing(stream, libraries, args, problem);
  } else {
    const std::vector<cublasLtMatmulAlgo_t> candidates = Call(problem, args).candidates(libraries, problem);
    if (!candidates.empty()) choice.algorithm = candidates.front();
  }
  if (!choice.algorithm && !problem.can_be_apart()) {
    const char* const advice = is_fp8(problem.a) ? "; set model.fp8=false, or other widths or micro batches" : "";
    throw Error(ErrorKind::device,
                fmt::format("cuBLASLt has no algorithm for the product {}{}", to_string(problem), advice),
                {.call = "gemm"});
  }
  return choice;
}

bool is_recording(Stream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  megalith::cuda::check(cudaStreamIsCapturing(static_cast<cudaStream_t>(stream.native()), &status),
                        "asking whether a graph is recorded");
  return status != cudaStreamCaptureStatusNone;
}

}  // namespace

void gemm(Stream& stream, const Gemm& args) {
  const GemmProblem problem = problem_of(args);
  MEGALITH_CHECK(!is_fp8(problem.a) || problem.result == DType::bf16 || !problem.has_bias,
                 "on a GPU a product of fp8 has a bias in bf16 alone, not {}", to_string(problem));
  for (const float* inverse : {args.a_inverse, args.b_inverse}) {
    MEGALITH_CHECK(reinterpret_cast<uintptr_t>(inverse) % kInverseAlignment == 0,
                   "a scale of the product {} is not aligned to {} bytes", to_string(problem), kInverseAlignment);
  }
  Libraries& libraries = libraries_of(stream);
  const GemmChoice* choice = libraries.gemm_choices.find(problem);
  if (choice == nullptr) {
    MEGALITH_CHECK(!is_recording(stream), "no algorithm was chosen for the product {} before a graph is recorded",
                   to_string(problem));
    choice = &libraries.gemm_choices.add(problem, choose(stream, libraries, args, problem));
  }
  if (!choice->algorithm) {
    run_apart(stream, args);
    return;
  }
  Call call(problem, args);
  check_cublas(call.run(stream, libraries, args, *choice->algorithm), fmt::format("gemm {}", to_string(problem)));
}

}  // namespace megalith::ops::cuda
