#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "data/files/token_type.h"

namespace megalith::test {

template <class T>
void append_bytes(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// `<prefix>.bin` and `<prefix>.idx` as Megatron writes them, by other means than `data prepare`: a document of one
// sequence each, an empty one without any.
inline void write_dataset(const std::string& prefix, int64_t vocab_size,
                          const std::vector<std::vector<int32_t>>& documents) {
  const data::TokenType type = data::token_type_for_vocab(vocab_size);
  std::string tokens, lengths, pointers, begins;
  uint64_t sequences = 0;
  append_bytes(begins, sequences);
  for (const std::vector<int32_t>& document : documents) {
    if (!document.empty()) {
      append_bytes(lengths, static_cast<int32_t>(document.size()));
      append_bytes(pointers, static_cast<int64_t>(tokens.size()));
      ++sequences;
    }
    append_bytes(begins, sequences);
    for (const int32_t token : document) {
      if (type == data::TokenType::uint16) append_bytes(tokens, static_cast<uint16_t>(token));
      if (type == data::TokenType::int32) append_bytes(tokens, token);
    }
  }
  std::string header("MMIDIDX\0\0", 9);
  append_bytes(header, uint64_t{1});
  append_bytes(header, data::megatron_code(type));
  append_bytes(header, sequences);
  append_bytes(header, static_cast<uint64_t>(documents.size() + 1));
  std::ofstream(prefix + ".bin", std::ios::binary) << tokens;
  std::ofstream(prefix + ".idx", std::ios::binary) << header << lengths << pointers << begins;
}

}  // namespace megalith::test
