#pragma once

#include <memory>
#include <span>
#include <vector>

#include "checkpoint/loaded.h"
#include "config/run_config.h"
#include "data/tokenizer/tokenizer.h"
#include "model/generator.h"
#include "plan/rehearsal.h"

namespace megalith::train {

// The model of a checkpoint with its tokenizer and weights alone: what text goes on with, and how likely a text is. On
// one device; the host waits for every answer.
class TextModel {
 public:
  // For some sequences at a time, at most as many as the context has tokens. User error for a checkpoint of another
  // model, or one whose tokenizer is not there.
  TextModel(checkpoint::Loaded& checkpoint, const config::Run& run, int64_t sequences = 1);

  const data::Tokenizer& tokenizer() const { return *tokenizer_; }
  int64_t context_length() const { return request_.length; }
  int64_t sequences() const { return sequences_; }
  // Ids that the model knows, without padding; it may know more than its tokenizer has texts for.
  int64_t vocabulary() const { return config_.vocabulary; }

  // Logits (vocabulary) after these tokens, the first of which stands at `position` of its sequence.
  std::vector<float> read(int64_t sequence, int64_t position, std::span<const int32_t> tokens);
  struct Next {
    int64_t sequence = 0;
    int64_t position = 0;
    int32_t token = 0;
  };
  // The same after one token each of several sequences, at once.
  std::vector<std::vector<float>> read_each(std::span<const Next> next);
  // Nats of every token but the first, each after those before it; at most context_length() + 1 tokens.
  std::vector<double> losses(std::span<const int32_t> tokens);

 private:
  int64_t scratch_bytes() const;
  int64_t cache_bytes() const;
  model::Context context(int64_t batch, int64_t length, int64_t position);
  Tensor upload(const Tensor& room, std::span<const int32_t> values);
  // Rows of logits_ on the host.
  std::vector<std::vector<float>> download(int64_t rows);

  std::unique_ptr<data::Tokenizer> tokenizer_;
  int64_t sequences_;
  engine::StageRequest request_;
  model::ModelConfig config_;
  ThreadPool pool_;
  Stream stream_;
  Arena weights_, cache_, scratch_;
  parallel::ParameterTable table_;
  parallel::Placement placement_;
  parallel::ParameterStore store_;
  model::Generator generator_;
  Tensor ids_, positions_, logits_, logits32_;
  Tensor targets_, target_weights_, losses_;
};

}  // namespace megalith::train
