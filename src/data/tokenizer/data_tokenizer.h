#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/tokenizer/tokenizer.h"

// Ids mean nothing without the tokenizer that made them: which one that was, and whether it is the one at hand.
namespace megalith::data {

// What the sidecar of a dataset says of its tokenizer.
struct RecordedTokenizer {
  TokenizerIdentity identity;
  int64_t vocab_size = 0;
  int32_t eod = -1;  // -1: documents do not end with one
};

RecordedTokenizer recorded(const Tokenizer& tokenizer);

// Nothing for a dataset without a sidecar (Megatron writes none) or whose sidecar does not name a tokenizer. Data error
// if it is damaged.
std::optional<RecordedTokenizer> tokenizer_of_data(const std::string& prefix);

// "GPT2BPETokenizer (grammar gpt2, digest 0123456789abcdef)".
std::string describe(const RecordedTokenizer& tokenizer);

// Whether one text gives both the same ids. The version of the Unicode tables may differ.
bool same_tokenizer(const RecordedTokenizer& a, const RecordedTokenizer& b);

// Why the dataset cannot be used with this tokenizer, with both digests; empty if it can, or if it cannot be known.
std::string tokenizer_problem(const std::string& prefix, const Tokenizer& tokenizer);

// User error for the first dataset of any split that another tokenizer made. A run that names no tokenizer files trains
// on ids as they are and is not checked; neither is mock data.
void check_tokenizer_of_data(const config::Data& data, const config::Tokenizer& tokenizer);

}  // namespace megalith::data
