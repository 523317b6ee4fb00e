#include "data/tokenizer/tokenizer_files.h"

#include <gtest/gtest.h>

#include "tokenizer_testing.h"

namespace megalith::data {
namespace {

class TokenizerFilesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& content) {
    write_bytes(directory_ / name, content);
    return directory_ / name;
  }
  BpeTokenizer hugging_face(const HuggingFaceShape& shape) {
    return BpeTokenizer(read_hugging_face(write("tokenizer.json", as_tokenizer_json(trained_bpe(), shape))));
  }
  void expect_refused(const std::string& json, const std::vector<std::string>& pieces) {
    const std::string path = write("bad.json", json);
    std::vector<std::string> all = pieces;
    all.push_back("bad.json");
    expect_error(ErrorKind::data, all, [&] { BpeTokenizer{read_hugging_face(path)}; });
  }

  TempDir directory_;
};

void expect_round_trips(const Tokenizer& tokenizer) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    const std::string text = odd_text(random, 200);
    const auto ids = tokenizer.encode(text);
    for (const int32_t id : ids) ASSERT_TRUE(id >= 0 && id < tokenizer.vocab_size() && id != tokenizer.eod());
    ASSERT_EQ(tokenizer.decode(ids), text);
  }
  EXPECT_TRUE(tokenizer.encode("").empty());
}

TEST_F(TokenizerFilesTest, Gpt2PairThatWeTrained) {
  write_gpt2_files(trained_bpe(), directory_.path());
  const config::Tokenizer config = {
      .type = "GPT2BPETokenizer", .vocab_file = directory_ / "vocab.json", .merge_file = directory_ / "merges.txt"};
  const auto tokenizer = make_tokenizer(config);
  EXPECT_EQ(tokenizer->vocab_size(), 700);
  EXPECT_EQ(tokenizer->eod(), 699);
  EXPECT_EQ(vocabulary_of(config).size, 700);
  EXPECT_EQ(vocabulary_of(config).eod, 699);
  EXPECT_EQ(tokenizer->identity().reference, "merge-list");
  EXPECT_EQ(tokenizer->identity().grammar, "gpt2");
  EXPECT_EQ(tokenizer->identity().digest.size(), 16u);
  expect_round_trips(*tokenizer);
  expect_error(ErrorKind::user, {"700"}, [&] { tokenizer->decode(std::vector<int32_t>{700}); });
}

TEST_F(TokenizerFilesTest, TiktokenFileWithAHole) {
  const std::string path = write("ranks.tiktoken", as_tiktoken(trained_bpe(), 300));
  const BpeTokenizer tokenizer(read_tiktoken(path, "llama3"));
  EXPECT_EQ(tokenizer.eod(), 701);
  EXPECT_EQ(tokenizer.bos(), 700);
  EXPECT_EQ(tokenizer.vocab_size(), 700 + 256);
  EXPECT_EQ(tokenizer.identity().reference, "tiktoken");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{709}), "<|eot_id|>");
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{955}), "<|reserved_special_token_247|>");
  expect_round_trips(tokenizer);
  expect_error(ErrorKind::user, {"300"}, [&] { tokenizer.decode(std::vector<int32_t>{300}); });
  expect_error(ErrorKind::user, {"r50k, cl100k, o200k or llama3"}, [&] { read_tiktoken(path, ""); });
  expect_error(ErrorKind::user, {"not cl100"}, [&] { read_tiktoken(path, "cl100"); });
}

TEST_F(TokenizerFilesTest, HostileTiktokenFiles) {
  const std::string good = as_tiktoken(trained_bpe(), 9999);
  for (const char* line : {"IQ==", "IQ== x", "IQ== -1", "I === 5", "IQ 700", "IR== 700", "==== 700", " 700",
                           "YWI= 99999999", "YWI= 700 7", "QUFB 0"}) {
    const std::string path = write("bad.tiktoken", good + line + "\n");
    expect_error(ErrorKind::data, {"bad.tiktoken", "line 700"}, [&] { BpeTokenizer{read_tiktoken(path, "r50k")}; });
  }
  expect_error(ErrorKind::data, {"no token for byte"},
               [&] { BpeTokenizer{read_tiktoken(write("bad.tiktoken", ""), "r50k")}; });
  expect_error(ErrorKind::data, {"bytes"},
               [&] { read_tiktoken(write("bad.tiktoken", good + base64(std::string(2000, 'x')) + " 800\n"), "r50k"); });
  expect_error(ErrorKind::user, {"nowhere", "does not exist"}, [&] { read_tiktoken(directory_ / "nowhere", "r50k"); });
}

TEST_F(TokenizerFilesTest, HuggingFaceShapeOfLlama3) {
  // "zq" has no merge, as many tokens of Llama-3: only ignore_merges reaches it.
  HuggingFaceShape shape{.unreachable = {"zq", " zq"}};
  const BpeTokenizer whole = hugging_face(shape);
  EXPECT_EQ(whole.identity().grammar, "llama3");
  EXPECT_EQ(whole.eod(), whole.bos() + 1);
  EXPECT_EQ(whole.encode("zq zq").size(), 2u);
  EXPECT_EQ(whole.encode("zqz").size(), 3u);
  expect_round_trips(whole);
  shape.options = "";
  shape.merges_as_pairs = false;
  const BpeTokenizer merged = hugging_face(shape);
  EXPECT_EQ(merged.encode("zq zq").size(), 5u);
  EXPECT_NE(merged.identity(), whole.identity());
  expect_round_trips(merged);
}

TEST_F(TokenizerFilesTest, HuggingFaceFileWithANameOfItsOwnForTheEnd) {
  std::string json = as_tokenizer_json(trained_bpe(), {});
  for (size_t at; (at = json.find("<|end_of_text|>")) != std::string::npos;) json.replace(at, 15, "[END]");
  config::Tokenizer config{.type = "HuggingFaceTokenizer", .model = write("tokenizer.json", json)};
  expect_error(ErrorKind::user, {"<|end_of_text|> or <|endoftext|>", "--eod-token"}, [&] { make_tokenizer(config); });
  config.eod_token = "[STOP]";
  expect_error(ErrorKind::user, {"[STOP]"}, [&] { make_tokenizer(config); });
  config.eod_token = "[END]";
  const auto tokenizer = make_tokenizer(config);
  EXPECT_EQ(tokenizer->eod(), tokenizer->bos() + 1);
  config.type = "ByteTokenizer";
  expect_error(ErrorKind::user, {"eod_token", "ByteTokenizer"}, [&] { make_tokenizer(config); });
}

TEST_F(TokenizerFilesTest, HuggingFaceShapeOfGpt2) {
  HuggingFaceShape shape{.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})"};
  shape.options = R"("continuing_subword_prefix":"","end_of_word_suffix":"","unk_token":null,"fuse_unk":false,)";
  const BpeTokenizer tokenizer = hugging_face(shape);
  EXPECT_EQ(tokenizer.identity().grammar, "gpt2");
  write_gpt2_files(trained_bpe(), directory_.path());
  const BpeTokenizer gpt2(read_gpt2(directory_ / "vocab.json", directory_ / "merges.txt"));
  std::mt19937 random(12);
  for (int i = 0; i < 100; ++i) {
    const std::string text = odd_text(random, 300);
    ASSERT_EQ(tokenizer.encode(text), gpt2.encode(text));
  }
}

TEST_F(TokenizerFilesTest, NfcComesFirst) {
  const BpeTokenizer tokenizer = hugging_face({.normalizer = R"({"type":"NFC"})"});
  EXPECT_EQ(tokenizer.encode("e\u0301"), tokenizer.encode("\u00E9"));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("e\u0301")), "\u00E9");
}

TEST_F(TokenizerFilesTest, SpecialStringsByPolicy) {
  const BpeTokenizer tokenizer = hugging_face({});
  const std::string text = "<|end_of_text|>a<|end_of_text|><|begin_of_text|><|end_of";
  std::vector<int32_t> plain, encoded, counted;
  tokenizer.encode(text, plain);
  EXPECT_EQ(tokenizer.encode_with_specials(text, counted, SpecialText::plain), 3);
  EXPECT_EQ(counted, plain);
  EXPECT_EQ(tokenizer.decode(plain), text);
  EXPECT_EQ(tokenizer.encode_with_specials(text, encoded, SpecialText::encode), 3);
  std::vector<int32_t> wanted = {tokenizer.eod()};
  tokenizer.encode("a", wanted);
  wanted.push_back(tokenizer.eod());
  wanted.push_back(tokenizer.bos());
  tokenizer.encode("<|end_of", wanted);
  EXPECT_EQ(encoded, wanted);
  expect_error(ErrorKind::data, {"<|end_of_text|>", "byte 0"},
               [&] { tokenizer.encode_with_specials(text, encoded, SpecialText::reject); });
}

TEST_F(TokenizerFilesTest, HostileHuggingFaceFiles) {
  const auto json = [](const HuggingFaceShape& shape) { return as_tokenizer_json(trained_bpe(), shape); };
  expect_refused("", {"not JSON"});
  expect_refused("[1]", {"not a JSON object"});
  expect_refused("{}", {"pre_tokenizer has no type"});
  expect_refused(std::string(100000, '['), {"not JSON"});
  expect_refused(json({.pre_tokenizer = R"({"type":"Whitespace"})"}), {"pre_tokenizer Whitespace"});
  expect_refused(json({.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":true})"}), {"add_prefix_space"});
  expect_refused(json({.pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})"}),
                 {"use_regex"});
  HuggingFaceShape shape;
  const auto replaced = [&](const std::string& old_text, const std::string& new_text) {
    HuggingFaceShape changed;
    changed.pre_tokenizer.replace(changed.pre_tokenizer.find(old_text), old_text.size(), new_text);
    return json(changed);
  };
  expect_refused(replaced("{1,3}", "{1,4}"), {"{1,4}", "not one of those"});
  expect_refused(replaced("Isolated", "Removed"), {"Removed"});
  expect_refused(replaced(R"("invert":false)", R"("invert":true)"), {"inverted"});
  expect_refused(replaced("Regex", "String"), {"without a Regex"});
  expect_refused(json({.normalizer = R"({"type":"Lowercase"})"}), {"Lowercase"});
  expect_refused(json({.options = R"("byte_fallback":true,)"}), {"byte_fallback"});
  expect_refused(json({.options = R"("dropout":0.1,)"}), {"dropout"});
  expect_refused(json({.options = R"("end_of_word_suffix":"</w>",)"}), {"end_of_word_suffix"});
  expect_refused(json({.options = R"("type":"Unigram",)"}), {"not BPE"});
  expect_refused(json({.added_options = R"(,"lstrip":true)"}), {"lstrip"});
  std::string text = json({});
  text.replace(text.find("\"merges\":[[") + 11, 0, "\"\u4E00\",\"a\"],[");
  expect_refused(text, {"merge 1"});
  const std::string path = write("good.json", json({}));
  expect_error(ErrorKind::user, {"<|eot|>"}, [&] { read_hugging_face(path, "<|eot|>"); });
}

TEST_F(TokenizerFilesTest, HostileGpt2Files) {
  write_gpt2_files(trained_bpe(), directory_.path());
  const std::string vocab = read_bytes(directory_ / "vocab.json"), merges = read_bytes(directory_ / "merges.txt");
  const auto refused = [&](const std::string& bad_vocab, const std::string& bad_merges, const std::string& piece) {
    const std::string vocab_path = write("v.json", bad_vocab), merges_path = write("m.txt", bad_merges);
    expect_error(ErrorKind::data, {piece}, [&] { BpeTokenizer{read_gpt2(vocab_path, merges_path)}; });
  };
  refused("[]", merges, "v.json: not a JSON object");
  refused("{\"a\":", merges, "v.json: not a JSON object");
  refused(R"({"a":"b"})", merges, "not an integer");
  refused(R"({"a":0})", merges, "no <|endoftext|>");
  refused(R"({"<|endoftext|>":0,"a":5})", merges, "ids up to 5");
  refused(R"({"<|endoftext|>":0,"a":0})", merges, "used twice");
  refused(R"({"<|endoftext|>":0,"a b":1})", merges, "byte alphabet");
  refused(R"({"<|endoftext|>":9000000000,"a":1})", merges, "out of range");
  refused(R"({"<|endoftext|>":1,"a":9000000000})", merges, "out of range");
  refused(vocab, merges + "x\n", "line 445");
  refused(vocab, merges + "zz qq\n", "not in the vocabulary");
  refused(vocab, merges + merges.substr(14), "listed twice");
}

}  // namespace
}  // namespace megalith::data
