#include "data/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/tokenizer/bpe/train_bpe.h"
#include "data/tokenizer/utf8_stream.h"

namespace megalith::data {
namespace {

const std::string kReplacement = "\xEF\xBF\xBD";

TEST(ByteTokenizer, RoundTripsAllBytes) {
  const ByteTokenizer tokenizer;
  std::string text;
  for (int i = 0; i < 256; ++i) text.push_back(static_cast<char>(i));
  auto ids = tokenizer.encode(text);
  EXPECT_EQ(ids.size(), 256u);
  EXPECT_EQ(ids[255], 255);
  ids.push_back(tokenizer.eod());
  EXPECT_EQ(tokenizer.decode(ids), text);
  EXPECT_EQ(tokenizer.vocab_size(), 257);
  expect_error(ErrorKind::user, {"257"}, [&] { tokenizer.decode(std::vector<int32_t>{257}); });
  expect_error(ErrorKind::user, {"-1"}, [&] { tokenizer.decode(std::vector<int32_t>{-1}); });
}

TEST(MakeTokenizer, SaysWhatIsSupported) {
  config::Tokenizer config;
  EXPECT_EQ(make_tokenizer(config)->name(), "ByteTokenizer");
  config.type = "GPT2BPETokenizer";
  expect_error(ErrorKind::user, {"tokenizer GPT2BPETokenizer needs its file: give model.tokenizer.vocab_file"},
               [&] { make_tokenizer(config); });
  config.type = "SentencePieceTokenizer";
  expect_error(ErrorKind::user, {"tokenizer SentencePieceTokenizer is not supported; there are GPT2BPETokenizer"},
               [&] { make_tokenizer(config); });
  config.type = "ByteTokeniser";
  expect_error(ErrorKind::user, {"unknown tokenizer ByteTokeniser, did you mean ByteTokenizer?"},
               [&] { make_tokenizer(config); });
  config.type = "?";
  expect_error(ErrorKind::user, {"unknown tokenizer ?; there are GPT2BPETokenizer", "TikTokenizer"},
               [&] { make_tokenizer(config); });
}

TEST(VocabularyOf, FilesThatAreStillToBeMadeHoldWhatTheConfigSays) {
  const TempDir dir;
  config::Tokenizer config{.type = "GPT2BPETokenizer", .vocab_size = 300};
  expect_error(ErrorKind::user, {"300", "50257"}, [&] { vocabulary_of(config); });
  config.vocab_file = dir / "vocab.json";
  config.merge_file = dir / "merges.txt";
  EXPECT_EQ(vocabulary_of(config).size, 300);
  EXPECT_EQ(vocabulary_of(config).eod, -1);

  BpeTrainer trainer;
  trainer.add("the cat and the mat and the hat");
  write_gpt2_files(trainer.train(260), dir.path());
  EXPECT_EQ(vocabulary_of(config).size, 300);
  EXPECT_EQ(vocabulary_of(config).eod, 259);
  config.vocab_size = 259;
  expect_error(ErrorKind::user, {"259", "260"}, [&] { vocabulary_of(config); });
}

TEST(VocabularyOf, KnowsWhatTrainingNeeds) {
  config::Tokenizer config;
  EXPECT_EQ(vocabulary_of(config).size, 257);
  EXPECT_EQ(vocabulary_of(config).eod, 256);
  config.vocab_size = 1000;
  EXPECT_EQ(vocabulary_of(config).size, 1000);
  config.vocab_size = 256;
  expect_error(ErrorKind::user, {"256", "257"}, [&] { vocabulary_of(config); });
  config = {.type = "GPT2BPETokenizer"};
  EXPECT_EQ(vocabulary_of(config).size, 50257);
  EXPECT_EQ(vocabulary_of(config).eod, 50256);
  config.type = "HuggingFaceTokenizer";
  expect_error(ErrorKind::user, {"HuggingFaceTokenizer", "vocab_size"}, [&] { vocabulary_of(config); });
  config.vocab_size = 128256;
  EXPECT_EQ(vocabulary_of(config).size, 128256);
  EXPECT_EQ(vocabulary_of(config).eod, -1);
}

std::string stream_by(const std::string& bytes, size_t step) {
  Utf8Stream stream;
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += step) text += stream.add(std::string_view(bytes).substr(i, step));
  return text + stream.finish();
}

TEST(Utf8Stream, PassesValidTextHoweverItIsCut) {
  const std::string text =
      "a\xC3\xA9\xE2\x82\xAC\xED\x9F\xBF\xF0\x9F\x98\x80\xF4\x8F\xBF\xBF" + std::string(1, '\0') + "z";
  for (size_t step = 1; step <= text.size(); ++step) EXPECT_EQ(stream_by(text, step), text);
}

TEST(Utf8Stream, HoldsBackWhatIsNotComplete) {
  Utf8Stream stream;
  EXPECT_EQ(stream.add("x\xF0\x9F"), "x");
  EXPECT_EQ(stream.add("\x98"), "");
  EXPECT_EQ(stream.add("\x80y"), "\xF0\x9F\x98\x80y");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Utf8Stream, ReplacesEachIllFormedPiece) {
  const std::string r = kReplacement;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\x80z", "a" + r + "z"},                                      // stray continuation
      {"\xC0\x80", r + r},                                            // overlong
      {"\xE0\x80\x80", r + r + r},                                    // overlong
      {"\xED\xA0\x80", r + r + r},                                    // surrogate
      {"\xF4\x90\x80\x80", r + r + r + r},                            // beyond U+10FFFF
      {"\xF5\xFF", r + r},                                            // no lead bytes
      {"\xE2\x82z", r + "z"},                                         // cut short by another character
      {"\xF0\x9F\x98", r},                                            // cut short by the end
      {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},  // table 3-11 of the Unicode standard
  };
  for (const auto& [bytes, expected] : cases) {
    for (size_t step = 1; step <= bytes.size(); ++step) EXPECT_EQ(stream_by(bytes, step), expected);
  }
}

}  // namespace
}  // namespace megalith::data
