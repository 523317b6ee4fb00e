// A text that comes in pieces gives the ids of the whole text, wherever it is cut.

#include <gtest/gtest.h>

#include "core/error.h"
#include "data/tokenizer/bpe/bpe_stream.h"
#include "data/tokenizer/scan/nfc.h"
#include "tokenizer_testing.h"

namespace megalith::data {
namespace {

// Runs of everything that a grammar looks ahead over, some long, next to each other.
std::string text_of_runs(std::mt19937& random, size_t length, bool valid = true) {
  static const std::vector<std::string> units = {
      "a",      "A",      "\u4E00",   "\u0301",  " ",     "\n",    "\r\n",       "\t",      "\u3000",
      "1",      "\u00B2", "!",        "/",       "'s",    "'",     "'LL",        "e\u0301", "\u1100\u1161\u11A8",
      "\u01C5", "\u0323", "'\u017F",  "<|end|>", "<|end", "<|e|>", "\U0001F600", "aB",      " \n",
      "\u1161", "\xC5",   "\xF0\x9F", "\xFF"};
  const size_t count = units.size() - (valid ? 3 : 0);
  std::string text;
  while (text.size() < length) {
    const std::string& unit = units[random() % count];
    for (unsigned k = random() % 4 == 0 ? random() % 120 : 1 + random() % 3; k > 0; --k) text += unit;
  }
  return text;
}

struct Shape {
  Grammar grammar = Grammar::gpt2;
  bool nfc = false;
  BpeReference reference = BpeReference::merge_list;
};

BpeTokenizer tokenizer_of(const Shape& shape) {
  static const TrainedBpe bpe = [] {
    BpeTrainer trainer;
    std::mt19937 random(3);
    trainer.add(text_of_runs(random, 300'000));
    return trainer.train(600);
  }();
  TokenizerFiles files{.name = "test", .source = "test", .grammar = shape.grammar, .nfc = shape.nfc};
  files.vocabulary.reference = shape.reference;
  files.vocabulary.tokens = bpe.tokens;
  std::map<std::string, int32_t> ids;
  for (size_t i = 0; i < bpe.tokens.size(); ++i) ids[bpe.tokens[i]] = static_cast<int32_t>(i);
  for (const auto& [left, right] : bpe.merges) {
    if (shape.reference == BpeReference::tiktoken) break;
    const std::string both = bpe.tokens[static_cast<size_t>(left)] + bpe.tokens[static_cast<size_t>(right)];
    files.vocabulary.merges.push_back({left, right, ids.at(both)});
  }
  files.eod = static_cast<int32_t>(bpe.tokens.size());
  files.specials = {{"<|end|>", files.eod}, {"<|e|>", files.eod + 1}, {"<|end", files.eod + 2}};
  files.vocab_size = files.eod + 3;
  return BpeTokenizer(std::move(files));
}

constexpr Shape kShapes[] = {{Grammar::gpt2},
                             {Grammar::cl100k, false, BpeReference::tiktoken},
                             {Grammar::llama3},
                             {Grammar::o200k, false, BpeReference::tiktoken},
                             {Grammar::qwen2, true}};

std::vector<int32_t> by_stream(const Tokenizer& tokenizer, const std::string& text, const StreamOptions& options,
                               std::mt19937& random, int64_t* specials = nullptr) {
  const auto stream = tokenizer.open_stream(options);
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size();) {
    const size_t length = 1 + random() % (random() % 5 == 0 ? 400 : 7);
    stream->add(std::string_view(text).substr(at, length), ids);
    at += length;
  }
  stream->finish(ids);
  if (specials != nullptr) *specials = stream->special_texts();
  return ids;
}

TEST(EncodeStream, AnyCutGivesTheIdsOfTheWholeText) {
  for (const Shape& shape : kShapes) {
    const BpeTokenizer tokenizer = tokenizer_of(shape);
    std::mt19937 random(5);
    for (int i = 0; i < 1500; ++i) {
      const std::string text = text_of_runs(random, random() % 1000, i % 4 != 0);
      const StreamOptions options{.buffer_bytes = std::vector<size_t>{1, 32, 50, 100, 300, 5000}[random() % 6]};
      ASSERT_EQ(by_stream(tokenizer, text, options, random), tokenizer.encode(text))
          << grammar_name(shape.grammar) << " buffer " << options.buffer_bytes << " text " << i << ": " << text;
    }
  }
}

TEST(EncodeStream, OneRunWithoutEnd) {
  std::mt19937 random(6);
  for (const Shape& shape : kShapes) {
    const BpeTokenizer tokenizer = tokenizer_of(shape);
    for (const std::string unit : {"a", "A", "\u4E00", " ", "\n", "\t", " \t", "1", "!", "/", "'", "\u0301"}) {
      std::string run;
      while (run.size() < 6'000) run += unit;
      for (const std::string before : {"", " ", "x", "\n", "!", "\u4E00"}) {
        for (const std::string behind : {"", " ", "x", "\n", "'s", "1"}) {
          const std::string text = before + run + behind;
          const auto ids = by_stream(tokenizer, text, {.buffer_bytes = 64}, random);
          ASSERT_EQ(ids, tokenizer.encode(text)) << grammar_name(shape.grammar) << before << unit << behind;
        }
      }
    }
  }
}

TEST(EncodeStream, SpecialStringsAcrossCuts) {
  for (const Shape& shape : kShapes) {
    const BpeTokenizer tokenizer = tokenizer_of(shape);
    std::mt19937 random(7);
    for (int i = 0; i < 600; ++i) {
      std::string text;
      for (unsigned k = random() % 12; k > 0; --k) {
        text += random() % 2 == 0 ? std::vector<std::string>{"<|end|>", "<|end", "<|e|>", "<|en", "<"}[random() % 5]
                                  : text_of_runs(random, random() % 100);
      }
      for (const SpecialText policy : {SpecialText::plain, SpecialText::encode, SpecialText::reject}) {
        const StreamOptions options{true, policy, 40};
        std::string refused, wanted_refused;
        std::vector<int32_t> ids, wanted;
        int64_t specials = 0, wanted_specials = 0;
        try {
          wanted_specials = tokenizer.encode_with_specials(text, wanted, policy);
        } catch (const Error& error) {
          wanted_refused = error.what();
        }
        try {
          ids = by_stream(tokenizer, text, options, random, &specials);
        } catch (const Error& error) {
          refused = error.what();
        }
        ASSERT_EQ(refused, wanted_refused) << text;
        if (!refused.empty()) continue;
        ASSERT_EQ(ids, wanted) << text;
        ASSERT_EQ(specials, wanted_specials) << text;
      }
    }
  }
}

TEST(EncodeStream, OtherTokenizers) {
  std::mt19937 random(8);
  class Whole : public ByteTokenizer {
   public:
    void encode(std::string_view text, std::vector<int32_t>& ids) const override {
      ids.push_back(static_cast<int32_t>(text.size()));
    }
    std::unique_ptr<EncodeStream> open_stream(const StreamOptions& options) const override {
      return Tokenizer::open_stream(options);
    }
  };
  const std::string text = text_of_runs(random, 500);
  EXPECT_EQ(by_stream(ByteTokenizer(), text, {}, random), ByteTokenizer().Tokenizer::encode(text));
  EXPECT_EQ(by_stream(Whole(), text, {}, random), std::vector<int32_t>{static_cast<int32_t>(text.size())});
}

TEST(StreamMerger, SmallWindowsGiveTheIdsOfTheWholePiece) {
  const BpeTokenizer tokenizer = tokenizer_of({});
  std::mt19937 random(9);
  for (int i = 0; i < 300; ++i) {
    StreamMerger merger(/*kept=*/1000, /*window=*/32);
    std::string piece;
    std::vector<int32_t> ids, wanted;
    for (unsigned k = 1 + random() % 100; k > 0; --k) {
      const std::string part = text_of_runs(random, random() % 100);
      piece += part;
      merger.add(part);
      merger.settle(tokenizer.model(), ids);
    }
    if (piece.empty()) continue;
    merger.finish(tokenizer.encoder_of_this_thread(), ids);
    tokenizer.encoder_of_this_thread().encode_piece(piece, wanted);
    ASSERT_EQ(ids, wanted) << piece;
  }
}

TEST(StreamMerger, HoldsLittleOfALongPiece) {
  const BpeTokenizer tokenizer = tokenizer_of({});
  StreamMerger merger(1 << 14);
  std::vector<int32_t> ids;
  for (int i = 0; i < 1000; ++i) {
    merger.add(std::string(1000, 'a'));
    merger.settle(tokenizer.model(), ids);
    EXPECT_LT(merger.unsettled(), size_t{1} << 14);
  }
  const size_t before = ids.size();
  merger.finish(tokenizer.encoder_of_this_thread(), ids);
  EXPECT_LT(ids.size() - before, size_t{1} << 15);
  EXPECT_EQ(tokenizer.decode(ids).size(), 1'000'000u);
}

TEST(RunStore, GivesBackWhatItWasGiven) {
  std::mt19937 random(10);
  for (int i = 0; i < 200; ++i) {
    RunStore store;
    std::string wanted, got;
    for (unsigned k = random() % 10; k > 0; --k) {
      const std::string unit = std::vector<std::string>{"a", " ", "\u3000", "\U0001F600"}[random() % 4];
      for (unsigned n = random() % (k == 1 ? 100'000 : 12); n > 0; --n) {
        store.add(unit);
        wanted += unit;
      }
    }
    EXPECT_EQ(store.empty(), wanted.empty());
    store.take([&](std::string_view text) { got += text; });
    ASSERT_EQ(got, wanted);
    EXPECT_TRUE(store.empty());
  }
}

TEST(NfcStream, EqualsTheWholeText) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    const std::string text = text_of_runs(random, random() % 300, i % 3 != 0);
    NfcStream stream;
    std::string got, storage;
    for (size_t at = 0; at < text.size(); at += 5) got += stream.add(std::string_view(text).substr(at, 5));
    got += stream.finish();
    ASSERT_EQ(got, normalize_nfc(text, storage)) << text;
  }
  NfcStream stream;
  std::string marks;
  for (int i = 0; i < 600'000; ++i) marks += "\u0301";
  EXPECT_THROW(for (int i = 0; i < 10; ++i) stream.add(marks), Error);
}

}  // namespace
}  // namespace megalith::data
