#pragma once

#include <cstdint>
#include <string_view>

namespace megalith::data {

// How a token is stored in a `.bin` file.
enum class TokenType : uint8_t { uint8, int8, int16, int32, int64, uint16, uint32, uint64 };

int64_t size_of(TokenType type);
std::string_view name_of(TokenType type);

// Megatron's choice when it writes: uint16 below 65500 ids, else int32.
TokenType token_type_for_vocab(int64_t vocab_size);

// Megatron's code of a type that it can write (uint32 and uint64 exist only in DeepSpeed's files).
uint8_t megatron_code(TokenType type);

}  // namespace megalith::data
