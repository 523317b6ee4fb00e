#include <cstdint>
#include <string>

#include "data/tokenizer/scan/nfc.h"
#include "data/tokenizer/scan/scanner.h"
#include "oracle_scanner.h"

// The first byte chooses the grammar; the rest is the text. It is copied so that reading behind it is found.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith::data;
  if (size == 0 || size > 4096) return 0;
  constexpr Grammar kGrammars[] = {Grammar::gpt2, Grammar::cl100k, Grammar::llama3, Grammar::o200k, Grammar::qwen2};
  const Grammar grammar = kGrammars[data[0] % 5];
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto found = Scanner(grammar).pieces(text);
  const auto wanted = oracle::pieces(grammar, text);
  if (!std::equal(found.begin(), found.end(), wanted.begin(), wanted.end())) __builtin_trap();

  std::string once, twice;
  const std::string normal(normalize_nfc(text, once));
  if (normalize_nfc(normal, twice) != normal) __builtin_trap();
  return 0;
}
