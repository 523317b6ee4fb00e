#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/dtype.h"

namespace megalith::ops::cuda {

// A matrix product as cuBLASLt tells products apart.
struct GemmProblem {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, stride_addend = 0, stride_gelu_input = 0;
  DType a = DType::bf16;
  DType b = DType::bf16;
  DType result = DType::bf16;
  bool accumulates = false, has_bias = false, has_addend = false, has_gelu = false;
  bool fast_accumulation = false;
  int32_t alignment = 256;  // of every operand, in bytes

  // What comes after the product could be a kernel of its own.
  bool can_be_apart() const { return has_addend || has_gelu; }
  auto operator<=>(const GemmProblem&) const = default;
};

// "bf16 32768x8192x2048 nt bias gelu strides 2048 2048 8192 0 8192 align 256": for people, and the key in a file.
std::string to_string(const GemmProblem& problem);

// The algorithm with which cuBLASLt computes a problem in one call. Absent: it has none, or a plain product followed by
// a kernel of ours was faster.
struct GemmChoice {
  std::optional<cublasLtMatmulAlgo_t> algorithm;
};

class GemmChoices {
 public:
  // Made before or taken from a file; null where the problem is new.
  const GemmChoice* find(const GemmProblem& problem);
  const GemmChoice& add(const GemmProblem& problem, const GemmChoice& choice);

  // As files keep them: texts by problem.
  std::map<std::string, std::string> to_texts() const;
  void add_text(const std::string& problem, const std::string& choice) { texts_.emplace(problem, choice); }
  // What was made or found before is forgotten.
  void replace_by_text(const std::string& problem, const std::string& choice);

  int64_t made() const { return made_; }
  int64_t loaded() const { return loaded_; }

 private:
  std::map<GemmProblem, GemmChoice> choices_;
  std::map<std::string, std::string> texts_;  // from a file
  int64_t made_ = 0;
  int64_t loaded_ = 0;
};

}  // namespace megalith::ops::cuda
