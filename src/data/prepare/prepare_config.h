#pragma once

#include <nlohmann/json.hpp>

#include "data/prepare/prepare.h"
#include "data/tokenizer/data_tokenizer.h"

// What manifests and sidecars say of how outputs were made.
namespace megalith::data {

// Everything besides the inputs that the bytes of an output depend on.
nlohmann::ordered_json config_to_json(const Tokenizer& tokenizer, const PrepareOptions& options);

// What decides which ids a text gets.
nlohmann::ordered_json tokenizer_to_json(const Tokenizer& tokenizer);
nlohmann::ordered_json tokenizer_to_json(const RecordedTokenizer& tokenizer);

nlohmann::ordered_json input_to_json(const InputFile& file);

// The other way round; nlohmann::json::exception for anything else.
PrepareOptions options_from_json(const nlohmann::ordered_json& config);
InputFile input_from_json(const nlohmann::ordered_json& file);

}  // namespace megalith::data
