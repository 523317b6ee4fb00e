#include <gtest/gtest.h>

#include "tokenizer_testing.h"

namespace megalith::data {
namespace {

std::shared_ptr<const BpeModel> model_of(BpeReference reference) {
  BpeVocabulary vocabulary{.reference = reference, .tokens = trained_bpe().tokens};
  if (reference == BpeReference::merge_list) {
    std::map<std::string, int32_t> ids;
    for (size_t i = 0; i < vocabulary.tokens.size(); ++i) ids[vocabulary.tokens[i]] = static_cast<int32_t>(i);
    for (const auto& [left, right] : trained_bpe().merges) {
      const std::string both =
          vocabulary.tokens[static_cast<size_t>(left)] + vocabulary.tokens[static_cast<size_t>(right)];
      vocabulary.merges.push_back({left, right, ids.at(both)});
    }
  }
  return std::make_shared<BpeModel>(vocabulary, "trained");
}

// The definition: look for the best pair of the whole piece, again and again.
std::vector<int32_t> merge_plainly(const BpeModel& model, std::string_view piece) {
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(model.byte_id(c));
  while (true) {
    Merge best = kNoMerge;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Merge merge = model.find_merge(ids[i], ids[i + 1]);
      if (merge < best) {
        best = merge;
        at = i;
      }
    }
    if (best == kNoMerge) return ids;
    ids[at] = id_of(best);
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(BpeMerger, AllRoadsGiveTheSameIds) {
  for (const BpeReference reference : {BpeReference::tiktoken, BpeReference::merge_list}) {
    const auto model = model_of(reference);
    std::mt19937 random(1);
    BpeMerger merger;
    for (int i = 0; i < 2000; ++i) {
      std::string piece;
      const size_t length = 1 + random() % (i % 20 == 0 ? 400 : 60);
      const std::string_view alphabet = i % 3 == 0 ? "et" : i % 3 == 1 ? "etaoinshrdlu " : "e";
      while (piece.size() < length) piece.push_back(alphabet[random() % alphabet.size()]);
      const std::vector<int32_t> wanted = merge_plainly(*model, piece);
      std::vector<int32_t> by_scan, by_heap, by_windows;
      merger.merge_by_scan(*model, piece, by_scan);
      merger.merge_by_heap(*model, piece, by_heap);
      merger.merge_by_windows(*model, piece, by_windows, 16 + random() % 16);
      ASSERT_EQ(by_scan, wanted) << piece;
      ASSERT_EQ(by_heap, wanted) << piece;
      ASSERT_EQ(by_windows, wanted) << piece;
    }
  }
}

// Tokens that hide each other over long distances: the borders of a run of "a" depend on how it ends or begins.
TEST(BpeMerger, WindowsGrowWhereTheyMust) {
  BpeVocabulary vocabulary{.reference = BpeReference::tiktoken};
  for (int byte = 0; byte < 256; ++byte) vocabulary.tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* token : {"ab", "bc", "cd", "da", "abc", "bcd", "cda", "dab", "abcd", "cdab", "abcdabc"}) {
    vocabulary.tokens.emplace_back(token);
  }
  const BpeModel model(vocabulary, "test");
  std::mt19937 random(2);
  BpeMerger merger;
  for (int i = 0; i < 3000; ++i) {
    std::string piece;
    size_t next = random();
    while (piece.size() < 200) {
      piece.push_back("abcd"[next % 4]);
      next = random() % 40 == 0 ? random() : next + 1;
    }
    std::vector<int32_t> by_windows;
    merger.merge_by_windows(model, piece, by_windows, 8 + random() % 24);
    ASSERT_EQ(by_windows, merge_plainly(model, piece)) << piece;
  }
}

TEST(BpeEncoder, CacheChangesNothing) {
  const auto model = model_of(BpeReference::merge_list);
  BpeEncoder encoder(model, Grammar::gpt2);
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const std::string text = odd_text(random, 300);
    std::vector<int32_t> first, second, wanted;
    encoder.encode(text, first);
    encoder.encode(text, second);
    for (const std::string_view piece : Scanner(Grammar::gpt2).pieces(text)) {
      const auto ids = merge_plainly(*model, piece);
      wanted.insert(wanted.end(), ids.begin(), ids.end());
    }
    ASSERT_EQ(first, wanted);
    ASSERT_EQ(second, wanted);
  }
}

TEST(BpeModel, RefusesTablesThatCannotWork) {
  BpeVocabulary vocabulary{.reference = BpeReference::tiktoken, .tokens = trained_bpe().tokens};
  vocabulary.tokens.push_back(vocabulary.tokens[300]);
  expect_error(ErrorKind::data, {"here: ids 300 and"}, [&] { BpeModel(vocabulary, "here"); });
  vocabulary.tokens.pop_back();
  vocabulary.tokens[0].clear();
  expect_error(ErrorKind::data, {"no token for byte 33"}, [&] { BpeModel(vocabulary, "here"); });
}

TEST(BpeTrainer, IsDeterministicAndTakesTheMostFrequentPairFirst) {
  const auto train = [](const std::string& first, const std::string& second) {
    BpeTrainer trainer;
    trainer.add(first);
    trainer.add(second);
    return trainer.train(300);
  };
  const TrainedBpe bpe = train("ab ab b b", "ab");
  ASSERT_GE(bpe.merges.size(), 2u);
  EXPECT_EQ(bpe.tokens[256], "ab");
  EXPECT_EQ(bpe.tokens, train("ab", "ab ab b b").tokens);
  EXPECT_EQ(bpe.tokens[0], "!");
  EXPECT_EQ(bpe.tokens[188], std::string(1, '\0'));
  EXPECT_EQ(bpe.tokens[220], " ");
  expect_error(ErrorKind::user, {"256", "257"}, [] { BpeTrainer().train(256); });
}

TEST(BpeTrainer, AgreesWithAPlainTrainer) {
  const std::string text = training_text().substr(0, 4000);
  BpeTrainer trainer;
  trainer.add(text);
  const TrainedBpe bpe = trainer.train(330);
  std::map<std::string, int64_t> counts;
  for (const std::string_view piece : Scanner(Grammar::gpt2).pieces(text)) ++counts[std::string(piece)];
  std::map<std::string, int32_t> ids;
  for (int32_t id = 0; id < 256; ++id) ids[bpe.tokens[static_cast<size_t>(id)]] = id;
  std::vector<std::pair<std::vector<int32_t>, int64_t>> words;
  for (const auto& [word, count] : counts) {
    std::vector<int32_t> symbols;
    for (const char c : word) symbols.push_back(ids.at(std::string(1, c)));
    words.emplace_back(symbols, count);
  }
  for (const auto& wanted : bpe.merges) {
    std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
    for (const auto& [symbols, count] : words) {
      for (size_t i = 0; i + 1 < symbols.size(); ++i) pairs[{symbols[i], symbols[i + 1]}] += count;
    }
    std::pair<int32_t, int32_t> best;
    int64_t most = 0;
    for (const auto& [pair, count] : pairs) {
      if (count > most) {
        most = count;
        best = pair;
      }
    }
    ASSERT_EQ(best, wanted);
    const std::string bytes =
        bpe.tokens[static_cast<size_t>(best.first)] + bpe.tokens[static_cast<size_t>(best.second)];
    const int32_t id = ids.try_emplace(bytes, static_cast<int32_t>(ids.size())).first->second;
    ASSERT_EQ(bpe.tokens[static_cast<size_t>(id)], bytes);
    for (auto& [symbols, count] : words) {
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        if (symbols[i] != best.first || symbols[i + 1] != best.second) continue;
        symbols[i] = id;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
    }
  }
}

}  // namespace
}  // namespace megalith::data
