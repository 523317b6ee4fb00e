#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/tokenizer/scan/scanner.h"

namespace megalith::data {

struct TrainedBpe {
  std::vector<std::string> tokens;  // by id, as bytes: the 256 bytes in GPT-2's order, then what merges made
  std::vector<std::pair<int32_t, int32_t>> merges;
};

// Learns a byte-level BPE with GPT-2's grammar: over and over the most frequent pair of neighbours becomes a token; of
// equally frequent ones, that with the smallest ids. The result depends on the text alone.
class BpeTrainer {
 public:
  // A whole document.
  void add(std::string_view text);
  int64_t bytes() const { return bytes_; }
  int64_t words() const { return static_cast<int64_t>(counts_.size()); }

  // Tokens for `vocab_size` ids, of which the last is kept for <|endoftext|>; fewer if no pair is left. User error for
  // a size that the bytes alone fill.
  TrainedBpe train(int64_t vocab_size) const;

 private:
  Scanner scanner_{Grammar::gpt2};
  std::unordered_map<std::string, int64_t> counts_;
  int64_t bytes_ = 0;
};

// vocab.json and merges.txt as GPT-2 has them, <|endoftext|> last, in `directory`.
void write_gpt2_files(const TrainedBpe& bpe, const std::filesystem::path& directory);

}  // namespace megalith::data
