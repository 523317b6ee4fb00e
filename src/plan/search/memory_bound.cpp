#include "plan/search/memory_bound.h"

#include <algorithm>

namespace megalith::plan {

namespace {

// bf16: weight 2, main gradient 4, remainder 2, moments 8 (docs/parallelism.md).
double state_bytes(const RunFeatures& run) {
  const auto shards = static_cast<double>(run.replicas());
  if (run.sharding == Sharding::fsdp) return 16 / shards;
  return run.sharding == Sharding::zero1 ? 6 + 10 / shards : 16;
}

// What forward keeps of a token in a layer (docs/parallelism.md, Recompute).
double kept_bytes(const RunFeatures& run) {
  const ModelShape& m = run.model;
  const auto t = static_cast<double>(run.tensor);
  const double rows = run.sequence_parallel ? 1 / t : 1;
  const double h = static_cast<double>(m.hidden) * rows;
  const double q = static_cast<double>(m.query_width()) / t;
  const double kv = static_cast<double>(m.kv_width()) / t;
  const double f = static_cast<double>(m.ffn) / t;
  if (run.recompute == Recomputed::full) return 2 * h;
  // The inputs of GEMMs are kept in fp8 where GEMMs take that, a byte each and not two.
  const double operand = run.fp8 ? 1 : 2;
  const double selective = 4 * h + 2 * (q + 2 * kv) + operand * q + 2 * (m.gated ? 2 : 1) * f;
  return run.recompute == Recomputed::selective ? selective : selective + operand * (2 * h + f);
}

// Chunks of the first stage whose activations are alive at once.
int64_t kept_chunks(const RunFeatures& run) {
  const int64_t m = run.micro_batches();
  if (run.chunks == 1) return std::min(m, run.pipeline);
  return std::min(m * run.chunks, 2 * (run.pipeline - 1) + (run.chunks - 1) * run.pipeline + 1);
}

}  // namespace

double memory_bound(const RunFeatures& run, int64_t layers_of_chunk) {
  const auto t = static_cast<double>(run.tensor);
  const auto layers = static_cast<double>(run.layers_of_stage(0));
  const double weights =
      (layers * run.model.layer_weights() + static_cast<double>(run.model.vocabulary * run.model.hidden)) / t;
  const double slots = static_cast<double>(kept_chunks(run) * layers_of_chunk);
  return weights * state_bytes(run) + slots * run.tokens() * kept_bytes(run);
}

}  // namespace megalith::plan
