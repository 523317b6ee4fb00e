#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace megalith::data {

// GPT-2 writes bytes as printable characters: those that are printable in Latin-1 as themselves, the 68 others in order
// as U+0100 and following. All byte-level vocab.json, merges.txt and tokenizer.json files use it.
std::string to_byte_alphabet(std::string_view bytes);
// The bytes; nothing if `text` holds a character that stands for no byte.
std::optional<std::string> from_byte_alphabet(std::string_view text);

}  // namespace megalith::data
