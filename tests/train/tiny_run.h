#pragma once

#include <filesystem>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "config/load.h"
#include "config/validate.h"
#include "core/process/failpoint.h"
#include "core/rng.h"
#include "data/write_dataset.h"
#include "final_state.h"
#include "plan/run_request.h"
#include "temp_dir.h"
#include "train/run/session.h"

namespace megalith::train::testing {

inline const char* const kTinyGpt = R"(
trainer: {max_steps: 20, accelerator: cpu, cpu_threads: 1, val_check_interval: 10, limit_val_batches: 2}
exp_manager: {resume_if_exists: true}
model:
  micro_batch_size: 2
  global_batch_size: 4
  encoder_seq_length: 16
  num_layers: 2
  hidden_size: 16
  num_attention_heads: 2
  hidden_dropout: 0.1
  attention_dropout: 0.1
  make_vocab_size_divisible_by: 8
  tokenizer: {type: ByteTokenizer}
  data: {data_impl: mmap, splits_string: "80,20,0"}
  optim: {lr: 0.01, sched: {name: CosineAnnealing, warmup_steps: 3, min_lr: 0.001}}
)";

inline const char* const kTinyLlama = R"(
trainer: {max_steps: 20, accelerator: cpu, cpu_threads: 1}
exp_manager: {resume_if_exists: true}
model:
  micro_batch_size: 2
  global_batch_size: 4
  encoder_seq_length: 16
  num_layers: 2
  hidden_size: 16
  num_attention_heads: 4
  num_query_groups: 2
  ffn_hidden_size: 40
  position_embedding_type: rope
  normalization: rmsnorm
  activation: swiglu
  bias: false
  share_embeddings_and_output_weights: false
  make_vocab_size_divisible_by: 8
  tokenizer: {type: ByteTokenizer}
  data: {data_impl: mmap, splits_string: "80,20,0"}
  optim: {lr: 0.01, sched: {name: linear, warmup_steps: 3}}
)";

// Some documents of made-up text, written once per test program.
inline std::string tiny_dataset() {
  static const ::megalith::testing::TempDir dir;
  static const std::string prefix = [] {
    std::vector<std::vector<int32_t>> documents;
    for (uint32_t document = 0; document < 120; ++document) {
      std::vector<int32_t>& tokens = documents.emplace_back();
      for (uint32_t i = 0; i < 10 + document % 30; ++i) {
        tokens.push_back(static_cast<int32_t>('a' + philox(document, {i, 0, 0, 0})[0] % 16));
      }
      tokens.push_back(256);
    }
    test::write_dataset((dir / "tiny").string(), 257, documents);
    return (dir / "tiny").string();
  }();
  return prefix;
}

inline config::Run tiny_run(const char* yaml, const std::filesystem::path& directory,
                            std::vector<std::string> overrides = {}) {
  overrides.insert(overrides.begin(), {"exp_manager.explicit_log_dir=" + directory.string(),
                                       "model.data.data_prefix=[" + tiny_dataset() + "]"});
  const std::vector<config::Source> sources{{.name = "tiny", .text = yaml}};
  config::Run run = config::load(sources, overrides);
  config::validate(run);
  return run;
}

// Trains without a word on the test's own output.
inline Summary train_quietly(const config::Run& run, const StartOptions& options = {}) {
  const std::ostringstream sink;
  std::streambuf* const kept = std::cout.rdbuf(sink.rdbuf());
  try {
    const auto world = comm::make_lone_world(plan::device_of(run.trainer));
    const Summary summary = train(run, {}, *world, options);
    std::cout.rdbuf(kept);
    disarm_failpoints();
    return summary;
  } catch (...) {
    std::cout.rdbuf(kept);
    disarm_failpoints();
    throw;
  }
}

using ::megalith::testing::final_state;

}  // namespace megalith::train::testing
