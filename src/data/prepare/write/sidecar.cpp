#include "data/prepare/write/sidecar.h"

#include "core/error.h"
#include "core/file.h"
#include "data/prepare/prepare_config.h"

namespace megalith::data {

std::string describe_output(const Tokenizer& tokenizer, const PrepareOptions& options, const ShardJob& shard,
                            const std::string& manifest_hash, const std::string& key,
                            const ShardWriter::Written& written) {
  nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
  for (const InputFile& file : shard.inputs) inputs.push_back(input_to_json(file));
  const OutputCounts& counts = written.counts;
  const nlohmann::ordered_json json{{"format", "megalith.dataset/1"},
                                    {"tool", "megalith " MEGALITH_VERSION},
                                    {"config_hash", shard.config_hash},
                                    {"manifest_hash", manifest_hash},
                                    {"key", key},
                                    {"config", config_to_json(tokenizer, options)},
                                    {"dtype", name_of(token_type_for_vocab(tokenizer.vocab_size()))},
                                    {"documents", counts.documents},
                                    {"empty_documents", counts.empty_documents},
                                    {"tokens", counts.tokens},
                                    {"text_bytes", counts.text_bytes},
                                    {"filtered", counts.filtered},
                                    {"special_texts", counts.special_texts},
                                    {"skipped", counts.skipped.to_json()},
                                    {"bin", {{"bytes", written.bin.bytes}, {"xxh3", written.bin.digest}}},
                                    {"idx", {{"bytes", written.idx.bytes}, {"xxh3", written.idx.digest}}},
                                    {"inputs", inputs}};
  return json.dump(1) + "\n";
}

FoundOutput find_output(const std::string& prefix, const std::string& config_hash) {
  const int64_t bin_bytes = size_if_there(prefix + ".bin");
  const int64_t idx_bytes = size_if_there(prefix + ".idx");
  if (size_if_there(prefix + ".json") < 0) {
    if (bin_bytes < 0 && idx_bytes < 0) return {};
    return {OutputState::foreign, {}, "it has no sidecar .json and was not made or not finished by this program"};
  }
  const auto json = nlohmann::json::parse(read_text(prefix + ".json"), nullptr, /*allow_exceptions=*/false);
  try {
    if (json.at("config_hash") != config_hash) {
      return {OutputState::foreign, {}, "its sidecar .json names another configuration or other inputs"};
    }
    if (json.at("bin").at("bytes") != bin_bytes || json.at("idx").at("bytes") != idx_bytes) {
      return {OutputState::foreign, {}, "its files do not have the sizes that its sidecar .json says"};
    }
    return {OutputState::complete, OutputCounts::from_json(json), ""};
  } catch (const nlohmann::json::exception&) {
    return {OutputState::foreign, {}, "its sidecar .json cannot be read"};
  }
}

}  // namespace megalith::data
