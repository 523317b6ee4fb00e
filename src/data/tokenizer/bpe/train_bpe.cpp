#include "data/tokenizer/bpe/train_bpe.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <queue>

#include "core/error.h"
#include "core/file.h"
#include "data/tokenizer/byte_alphabet.h"

namespace megalith::data {

namespace {
using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    const uint64_t key =
        static_cast<uint64_t>(static_cast<uint32_t>(pair.first)) << 32 | static_cast<uint32_t>(pair.second);
    return (key ^ key >> 29) * 0x9E3779B97F4A7C15u >> 7;
  }
};

struct Word {
  std::vector<int32_t> ids;
  int64_t count;
};

struct PairUse {
  int64_t count = 0;
  std::vector<uint32_t> words;  // that hold or held the pair, some of them twice
};

struct Candidate {
  int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

// The bytes as GPT-2 numbers them: those that stand for themselves first.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> bytes;
  for (int i = 0; i < 256; ++i) bytes.emplace_back(1, static_cast<char>(i));
  std::stable_sort(bytes.begin(), bytes.end(), [](const std::string& a, const std::string& b) {
    const auto moved = [](const std::string& byte) { return to_byte_alphabet(byte) >= "\xC4\x80"; };
    return moved(a) < moved(b);
  });
  return bytes;
}

class Training {
 public:
  explicit Training(const std::unordered_map<std::string, int64_t>& counts) {
    bpe_.tokens = byte_tokens();
    for (size_t id = 0; id < bpe_.tokens.size(); ++id) id_of_.emplace(bpe_.tokens[id], static_cast<int32_t>(id));
    std::vector<const std::pair<const std::string, int64_t>*> sorted;
    for (const auto& entry : counts) sorted.push_back(&entry);
    std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    for (const auto* entry : sorted) add_word(entry->first, entry->second);
    for (const auto& [pair, use] : uses_) queue_.push({use.count, pair});
  }

  TrainedBpe run(size_t most_tokens) {
    while (bpe_.tokens.size() < most_tokens && !queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const int64_t count = uses_[best.pair].count;
      if (count <= 0) continue;
      if (count != best.count) {
        queue_.push({count, best.pair});  // counts fall while an entry waits
        continue;
      }
      merge(best.pair);
    }
    return std::move(bpe_);
  }

 private:
  void add_word(const std::string& text, int64_t count) {
    Word word{{}, count};
    for (const char c : text) word.ids.push_back(id_of_.at(std::string(1, c)));
    const auto index = static_cast<uint32_t>(words_.size());
    for (size_t i = 0; i + 1 < word.ids.size(); ++i) change({word.ids[i], word.ids[i + 1]}, count, index);
    words_.push_back(std::move(word));
  }

  void change(const Pair& pair, int64_t by, uint32_t word) {
    PairUse& use = uses_[pair];
    use.count += by;
    if (by > 0 && (use.words.empty() || use.words.back() != word)) use.words.push_back(word);
  }

  void merge(const Pair& pair) {
    std::string bytes = bpe_.tokens[static_cast<size_t>(pair.first)] + bpe_.tokens[static_cast<size_t>(pair.second)];
    // Two pairs may give the same bytes: the token is the same.
    const auto [at, fresh] = id_of_.try_emplace(bytes, static_cast<int32_t>(bpe_.tokens.size()));
    if (fresh) bpe_.tokens.push_back(std::move(bytes));
    bpe_.merges.push_back(pair);
    const std::vector<uint32_t> words = std::move(uses_[pair].words);
    grown_.clear();
    for (const uint32_t word : words) merge_in(word, pair, at->second);
    uses_.erase(pair);
    for (const Pair& grown : grown_) {
      const auto use = uses_.find(grown);
      if (use != uses_.end()) queue_.push({use->second.count, grown});
    }
  }

  void merge_in(uint32_t index, const Pair& pair, int32_t result) {
    Word& word = words_[index];
    std::vector<int32_t>& ids = word.ids;
    const auto holds = [&](size_t i) {
      return i + 1 < ids.size() && ids[i] == pair.first && ids[i + 1] == pair.second;
    };
    size_t first = 0;
    while (first < ids.size() && !holds(first)) ++first;
    if (first == ids.size()) return;
    // The pairs of the whole word are taken back and counted anew: words are short.
    for (size_t i = 0; i + 1 < ids.size(); ++i) change({ids[i], ids[i + 1]}, -word.count, index);
    size_t kept = first;
    for (size_t i = first; i < ids.size(); ++kept) {
      const bool here = holds(i);
      ids[kept] = here ? result : ids[i];
      i += here ? 2 : 1;
    }
    ids.resize(kept);
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Pair now = {ids[i], ids[i + 1]};
      const bool changed = now.first == result || now.second == result;
      if (changed) {
        change(now, word.count, index);
        grown_.push_back(now);
      } else {
        uses_[now].count += word.count;
      }
    }
  }

  TrainedBpe bpe_;
  std::unordered_map<std::string, int32_t> id_of_;
  std::vector<Word> words_;
  std::unordered_map<Pair, PairUse, PairHash> uses_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> grown_;
};
}  // namespace

void BpeTrainer::add(std::string_view text) {
  bytes_ += static_cast<int64_t>(text.size());
  const char* ends[Scanner::kBatch + Scanner::kSlack];
  const char* at = text.data();
  const char* const end = at + text.size();
  std::string word;
  while (const size_t count = scanner_.scan(at, end, ends)) {
    for (size_t i = 0; i < count; ++i) {
      // A run of thousands of characters is noise, and would be counted anew at each of its merges.
      constexpr std::ptrdiff_t kLongestWord = 256;
      if (ends[i] - at <= kLongestWord) {
        word.assign(at, ends[i]);
        ++counts_[word];
      }
      at = ends[i];
    }
  }
}

TrainedBpe BpeTrainer::train(int64_t vocab_size) const {
  constexpr int64_t kLeast = 257, kMost = 1 << 24;
  if (vocab_size < kLeast || vocab_size > kMost) {
    user_error("a vocabulary of {} ids: {} to {} are possible", vocab_size, kLeast, kMost);
  }
  return Training(counts_).run(static_cast<size_t>(vocab_size) - 1);
}

void write_gpt2_files(const TrainedBpe& bpe, const std::filesystem::path& directory) {
  std::string vocab_text = "{";
  for (size_t id = 0; id < bpe.tokens.size(); ++id) {
    const nlohmann::json token = to_byte_alphabet(bpe.tokens[id]);
    vocab_text += token.dump(-1, ' ', true) + ": " + std::to_string(id) + ", ";
  }
  vocab_text += "\"<|endoftext|>\": " + std::to_string(bpe.tokens.size()) + "}\n";
  std::string merges = "#version: 0.2\n";
  for (const auto& [left, right] : bpe.merges) {
    merges += to_byte_alphabet(bpe.tokens[static_cast<size_t>(left)]) + " " +
              to_byte_alphabet(bpe.tokens[static_cast<size_t>(right)]) + "\n";
  }
  make_directory(directory);
  replace_file(directory / "vocab.json", vocab_text);
  replace_file(directory / "merges.txt", merges);
}

}  // namespace megalith::data
