#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "data/prepare/read/bad_lines.h"

namespace megalith::data {

// What went into an output so far. Nothing in it depends on time or threads.
struct OutputCounts {
  int64_t documents = 0;        // empty ones included
  int64_t empty_documents = 0;  // without tokens, and so without eod
  int64_t tokens = 0;           // eod included
  int64_t text_bytes = 0;       // what the tokenizer saw
  int64_t filtered = 0;         // documents that a filter left out
  int64_t special_texts = 0;    // strings such as <|endoftext|> in the texts, where they were looked for
  BadLines skipped;

  nlohmann::json to_json() const {
    return {{"documents", documents},
            {"empty_documents", empty_documents},
            {"tokens", tokens},
            {"text_bytes", text_bytes},
            {"filtered", filtered},
            {"special_texts", special_texts},
            {"skipped", skipped.to_json()}};
  }
  static OutputCounts from_json(const nlohmann::json& json) {
    OutputCounts counts;
    counts.documents = json.at("documents").get<int64_t>();
    counts.empty_documents = json.at("empty_documents").get<int64_t>();
    counts.tokens = json.at("tokens").get<int64_t>();
    counts.text_bytes = json.at("text_bytes").get<int64_t>();
    counts.filtered = json.at("filtered").get<int64_t>();
    counts.special_texts = json.at("special_texts").get<int64_t>();
    counts.skipped = BadLines::from_json(json.at("skipped"));
    return counts;
  }
  void append(const OutputCounts& later) {
    documents += later.documents;
    empty_documents += later.empty_documents;
    tokens += later.tokens;
    text_bytes += later.text_bytes;
    filtered += later.filtered;
    special_texts += later.special_texts;
    skipped.append(later.skipped);
  }
};

}  // namespace megalith::data
