#pragma once

#include <memory>
#include <string>

#include "ops/attention.h"

namespace megalith::ops::cuda {

// Causal attention by cuDNN: bf16, the last query at the last key, no dropout, documents by their bounds. Each shape
// has a graph, built when the shape is first met and kept; building takes a while and runs nothing on the stream.
class CudnnAttention {
 public:
  explicit CudnnAttention(Stream& stream);
  ~CudnnAttention();
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  // Asynchronous on the stream. False, and only scratch was written: cuDNN has no graph for this shape, or the graph of
  // a backward that is deterministic or has documents needs more than its scratch.
  bool run(const AttentionForward& args, const AttentionShape& shape);
  bool run(const AttentionBackward& args, const AttentionShape& shape);

  int64_t graphs_built() const;
  int64_t graphs_failed() const;
  // Why cuDNN last refused a shape; empty if it never did.
  const std::string& last_refusal() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace megalith::ops::cuda
