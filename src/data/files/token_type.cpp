#include "data/files/token_type.h"

#include "core/error.h"

namespace megalith::data {

int64_t size_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
    case TokenType::int8:
      return 1;
    case TokenType::int16:
    case TokenType::uint16:
      return 2;
    case TokenType::int32:
    case TokenType::uint32:
      return 4;
    case TokenType::int64:
    case TokenType::uint64:
      return 8;
  }
  return 0;
}

std::string_view name_of(TokenType type) {
  switch (type) {
    case TokenType::uint8:
      return "uint8";
    case TokenType::int8:
      return "int8";
    case TokenType::int16:
      return "int16";
    case TokenType::int32:
      return "int32";
    case TokenType::int64:
      return "int64";
    case TokenType::uint16:
      return "uint16";
    case TokenType::uint32:
      return "uint32";
    case TokenType::uint64:
      return "uint64";
  }
  return "?";
}

TokenType token_type_for_vocab(int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::uint16 : TokenType::int32;
}

uint8_t megatron_code(TokenType type) {
  switch (type) {
    case TokenType::uint8:
      return 1;
    case TokenType::int8:
      return 2;
    case TokenType::int16:
      return 3;
    case TokenType::int32:
      return 4;
    case TokenType::int64:
      return 5;
    case TokenType::uint16:
      return 8;
    case TokenType::uint32:
    case TokenType::uint64:
      break;
  }
  MEGALITH_CHECK(false, "Megatron has no code for {}", name_of(type));
  return 0;
}

}  // namespace megalith::data
