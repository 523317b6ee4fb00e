#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/fixtures.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "config/keys.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "core/rng.h"
#include "model/parameters.h"

namespace megalith::test {

inline constexpr const char* kGpt = R"(
trainer: {accelerator: cpu}
model:
  encoder_seq_length: 16
  num_layers: 2
  hidden_size: 16
  num_attention_heads: 2
  hidden_dropout: 0.1
  attention_dropout: 0.2
  make_vocab_size_divisible_by: 8
  tokenizer: {type: ByteTokenizer}
)";

inline constexpr const char* kLlama = R"(
trainer: {accelerator: cpu}
model:
  encoder_seq_length: 16
  num_layers: 2
  hidden_size: 16
  num_attention_heads: 4
  num_query_groups: 2
  ffn_hidden_size: 40
  position_embedding_type: rope
  normalization: rmsnorm
  layernorm_epsilon: 1e-6
  activation: swiglu
  bias: false
  share_embeddings_and_output_weights: false
  make_vocab_size_divisible_by: 8
  tokenizer: {type: ByteTokenizer}
)";

// Megalith's tokenizer of bytes would come back as a HuggingFaceTokenizer.
inline const checkpoint::ImportOptions kBytes{.dtype = {}, .overrides = {"model.tokenizer.type=ByteTokenizer"}};

inline config::Run effective_config(const std::string& yaml, const std::vector<std::string>& overrides) {
  const std::vector<config::Source> sources{{.name = "test", .text = yaml}};
  config::Run run = config::load(sources, overrides);
  config::validate(run);
  return run;
}

inline config::Run config_of(const checkpoint::Loaded& loaded) {
  return effective_config(loaded.manifest().state.config, {});
}

// The keys that make a model what it is.
inline std::map<std::string, std::string> architecture_of(config::Run run) {
  std::map<std::string, std::string> values;
  for (const config::Key& key : config::keys_of(run)) {
    const std::string path(key.path);
    const bool is_model = path.starts_with("model.") && !path.starts_with("model.tokenizer.") &&
                          !path.starts_with("model.data.") && !path.starts_with("model.optim.");
    if (is_model || path == "trainer.precision") values[path] = config::value_text(key.field);
  }
  return values;
}

inline std::map<std::string, std::string> weights_of(checkpoint::Loaded& loaded) {
  std::map<std::string, std::string> weights;
  for (const checkpoint::TensorInfo& info : loaded.manifest().tensors) {
    if (info.kind != checkpoint::TensorKind::weights) continue;
    std::string& bytes = weights[info.name];
    bytes.resize(static_cast<size_t>(info.shape.elements() * size_of(info.dtype)));
    loaded.load_tensor(info.kind, info.name, Tensor(bytes.data(), info.dtype, info.shape));
  }
  return weights;
}

// A checkpoint of a model whose every element is another number, in bf16 with masters.
class SavedModel {
 public:
  SavedModel(const std::filesystem::path& directory, const char* yaml, const std::vector<std::string>& overrides = {})
      : directory_(directory), run_(effective_config(yaml, overrides)) {
    const model::ModelConfig config = model::make_model_config(run_, 257);
    const parallel::ParameterTable table = model::logical_parameters(config);
    checkpoint::Snapshot snapshot;
    snapshot.state = {.run_id = "run-1", .step = 20, .config = config::to_yaml(run_)};
    std::vector<std::vector<float>> masters;
    std::vector<std::vector<bfloat16>> narrow;
    for (const parallel::ParameterSpec& spec : table.specs()) {
      std::vector<float>& values = masters.emplace_back(static_cast<size_t>(spec.shape.elements()));
      for (size_t i = 0; i < values.size(); ++i) {
        const uint32_t word = philox(named_key(1, spec.name), {static_cast<uint32_t>(i), 0, 0, 0})[0];
        values[i] = static_cast<float>(word) * 0x1p-32F - 0.5F;
      }
      const Tensor wide(values.data(), DType::f32, spec.shape);
      if (config.compute == DType::f32) {
        snapshot.tensors.push_back({spec.name, checkpoint::TensorKind::weights, wide});
        continue;
      }
      std::vector<bfloat16>& rounded = narrow.emplace_back(values.begin(), values.end());
      snapshot.tensors.push_back(
          {spec.name, checkpoint::TensorKind::weights, Tensor(rounded.data(), DType::bf16, spec.shape)});
      snapshot.tensors.push_back({spec.name, checkpoint::TensorKind::master, wide});
    }
    checkpoint::Store(directory_).save(snapshot);
  }

  const config::Run& run() const { return run_; }
  checkpoint::Loaded open() const { return checkpoint::Store(directory_).open(20); }
  std::map<std::string, std::string> weights() const {
    checkpoint::Loaded loaded = open();
    return weights_of(loaded);
  }

 private:
  std::filesystem::path directory_;
  config::Run run_;
};

}  // namespace megalith::test
