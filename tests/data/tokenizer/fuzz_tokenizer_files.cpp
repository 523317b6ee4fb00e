#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.h"
#include "data/memory_file.h"
#include "tokenizer_testing.h"

namespace {
using namespace megalith::data;

TokenizerFiles read(int kind, const std::string& content) {
  // Most of the time should go into what comes behind 256 good bytes.
  static const std::string ranks =
      as_tiktoken({.tokens = {trained_bpe().tokens.begin(), trained_bpe().tokens.begin() + 256}}, 999);
  static const std::string json = as_tokenizer_json(trained_bpe(), {});
  switch (kind) {
    case 0:
      return read_tiktoken(MemoryFile(ranks + content).path(), "llama3");
    case 1:
      return read_hugging_face(MemoryFile(content).path());
    case 2: {
      // Text put somewhere into a good file.
      std::string damaged = json;
      const size_t at = content.size() < 2 ? 0
                                           : (static_cast<size_t>(static_cast<unsigned char>(content[0])) << 8 |
                                              static_cast<unsigned char>(content[1])) %
                                                 json.size();
      damaged.replace(at, std::min<size_t>(content.size(), 4), content);
      return read_hugging_face(MemoryFile(damaged).path());
    }
    default: {
      const size_t cut = content.find('\0');
      const MemoryFile vocab(content.substr(0, cut));
      const MemoryFile merges(cut == std::string::npos ? "" : content.substr(cut + 1));
      return read_gpt2(vocab.path(), merges.path());
    }
  }
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string content(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    const BpeTokenizer tokenizer(read(data[0] % 4, content));
    const std::string text = "the tea's on\n" + content;
    if (tokenizer.decode(tokenizer.encode(text)) != text) __builtin_trap();
  } catch (const megalith::Error&) {
  }
  return 0;
}
