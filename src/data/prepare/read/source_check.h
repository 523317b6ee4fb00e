#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "data/files/indexed_dataset.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::data {

struct SourceComparison {
  int64_t documents = 0;  // that were encoded again
  std::string problem;    // the first difference; empty: none
};

// Reads the inputs that the sidecar of a dataset names, encodes one of about a thousand documents again (more of a
// small dataset), and compares it with what is stored. User error if the tokenizer is another one than the dataset was
// made with; data error if the sidecar does not say what it was made of, or an input is no longer what it was.
SourceComparison compare_with_source(const IndexedDataset& dataset, const nlohmann::ordered_json& sidecar,
                                     const Tokenizer& tokenizer, int threads);

}  // namespace megalith::data
