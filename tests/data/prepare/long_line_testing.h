#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "data/prepare/read/long_document.h"

namespace megalith::data {

// What the road for long documents makes of a line (or, with another cut, of a whole file), which comes `piece` bytes
// at a time.
inline EncodedBatch encode_in_parts(const Tokenizer& tokenizer, const EncodeOptions& options, std::string_view text,
                                    size_t piece, Cut cut = Cut::lines, int64_t offset = 0) {
  LongDocument document(tokenizer, options, cut, offset);
  EncodedBatch all;
  all.keys.resize(options.json_keys.size());
  for (size_t at = 0; at == 0 || at < text.size(); at += piece) {
    RawBatch part;
    part.text.append(text.substr(at, piece));
    part.part = true;
    part.first_part = at == 0;
    part.last_part = at + piece >= text.size();
    EncodedBatch encoded = document.add(part);
    for (size_t key = 0; key < all.keys.size(); ++key) {
      EncodedBatch::Key& sum = all.keys[key];
      const EncodedBatch::Key& more = encoded.keys[key];
      if (encoded.drops_document || more.begins_again) sum.tokens.clear();
      sum.tokens.insert(sum.tokens.end(), more.tokens.begin(), more.tokens.end());
      sum.lengths = more.lengths;
      sum.token_count = more.token_count;
      sum.empty_documents = more.empty_documents;
    }
    std::swap(encoded.keys, all.keys);
    all = std::move(encoded);
  }
  return all;
}

// Where two batches differ; empty: nowhere.
inline std::string difference(const EncodedBatch& a, const EncodedBatch& b) {
  if (a.bad.size() != b.bad.size()) return "number of bad lines";
  for (size_t i = 0; i < a.bad.size(); ++i) {
    if (a.bad[i].kind != b.bad[i].kind) {
      return std::string(name_of(a.bad[i].kind)) + " or " + std::string(name_of(b.bad[i].kind));
    }
    if (a.bad[i].detail != b.bad[i].detail) return "detail: " + a.bad[i].detail + " or " + b.bad[i].detail;
    if (a.bad[i].line != b.bad[i].line || a.bad[i].offset != b.bad[i].offset) return "place";
  }
  if (a.lines != b.lines || a.documents != b.documents || a.filtered != b.filtered) return "counts";
  if (a.text_bytes != b.text_bytes || a.special_texts != b.special_texts) return "counts of text";
  for (size_t key = 0; key < a.keys.size(); ++key) {
    if (a.keys[key].tokens != b.keys[key].tokens || a.keys[key].lengths != b.keys[key].lengths) return "tokens";
    if (a.keys[key].token_count != b.keys[key].token_count) return "token count";
    if (a.keys[key].empty_documents != b.keys[key].empty_documents) return "empty documents";
  }
  return "";
}

// The same for a line and its encoding by the ordinary road.
inline std::string roads_differ(const Tokenizer& tokenizer, const EncodeOptions& options, std::string_view line,
                                size_t piece) {
  RawBatch batch;
  batch.text.append(line);
  batch.text.append("\n");
  return difference(BatchEncoder(tokenizer, options).encode(batch, Cut::lines),
                    encode_in_parts(tokenizer, options, std::string(line) + "\n", piece));
}

}  // namespace megalith::data
