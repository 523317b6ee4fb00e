#include "data/tokenize_files.h"

#include <gtest/gtest.h>

#include "data/data_testing.h"
#include "data/indexed_dataset.h"

namespace megalith::data {
namespace {

class TokenizeFilesTest : public testing::Test {
 protected:
  TokenizeOptions options_for(const std::string& name, const std::string& content) {
    write_bytes(directory_ / name, content);
    TokenizeOptions options;
    options.inputs = {directory_ / name};
    options.output_prefix = directory_ / "out";
    return options;
  }

  // The documents' texts, with '$' for eod.
  std::vector<std::string> documents(const std::string& key = "text") {
    const IndexedDataset dataset(tokenized_prefix(directory_ / "out", key));
    std::vector<std::string> texts;
    for (int64_t i = 0; i < dataset.documents(); ++i) {
      auto& text = texts.emplace_back();
      for (const int32_t id : read_tokens(dataset, {dataset.document_begin(i), dataset.document_begin(i + 1)})) {
        text += id == ByteTokenizer::kEod ? '$' : static_cast<char>(id);
      }
    }
    return texts;
  }

  int64_t outputs() {
    int64_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      count += entry.path().filename().string().starts_with("out_") ? 1 : 0;
    }
    return count;
  }

  using Texts = std::vector<std::string>;

  TemporaryDirectory directory_;
  ByteTokenizer tokenizer_;
};

TEST_F(TokenizeFilesTest, ReadsJsonLines) {
  const auto options = options_for("in.jsonl",
                                   "{\"id\": 1, \"text\": \"one\\n\\u00e9\"}\r\n"
                                   "\n"
                                   "{\"text\": \"\"}\n"
                                   "{\"text\": \"first\", \"text\": \"last\"}\n"
                                   "{\"te\\u0078t\": \"no newline\"}");
  const TokenizeCounts counts = tokenize_files(tokenizer_, options);
  EXPECT_EQ(documents(), (Texts{"one\n\xC3\xA9$", "", "last$", "no newline$"}));
  EXPECT_EQ(counts.documents, 4);
  EXPECT_EQ(counts.empty_documents, 1);
  EXPECT_EQ(counts.tokens, 7 + 5 + 11);
  EXPECT_EQ(counts.bytes, std::ssize(read_bytes(directory_ / "in.jsonl")));
  EXPECT_TRUE(std::filesystem::exists(directory_ / "out_text_document.bin"));
}

TEST_F(TokenizeFilesTest, WritesOnePairPerKey) {
  auto options = options_for("in.jsonl", "{\"a\": \"x\", \"b\": \"y\"}\n{\"a\": \"z\", \"b\": \"\"}\n");
  options.json_keys = {"a", "b"};
  options.append_eod = false;
  tokenize_files(tokenizer_, options);
  EXPECT_EQ(documents("a"), (Texts{"x", "z"}));
  EXPECT_EQ(documents("b"), (Texts{"y", ""}));
}

TEST_F(TokenizeFilesTest, ReadsTextByFile) {
  auto options = options_for("one.txt", "a\n\nb\n");
  write_bytes(directory_ / "two.txt", "\xFF\n");
  options.inputs.push_back(directory_ / "two.txt");
  tokenize_files(tokenizer_, options);
  EXPECT_EQ(documents(), (Texts{"a\n\nb\n$", "\xFF\n$"}));
}

TEST_F(TokenizeFilesTest, ReadsTextByBlankLines) {
  auto options = options_for("in.dat", "\n \na\nb\n\n\t\n\nc  \n\r\nd");
  options.format = InputFormat::text;
  options.text_documents = TextDocuments::blank_lines;
  const TokenizeCounts counts = tokenize_files(tokenizer_, options);
  EXPECT_EQ(documents(), (Texts{"a\nb$", "c  $", "d$"}));
  EXPECT_EQ(counts.documents, 3);
  EXPECT_EQ(counts.bytes, std::ssize(read_bytes(directory_ / "in.dat")));
}

TEST_F(TokenizeFilesTest, ReadsLinesLongerThanABlock) {
  const std::string text(3'000'001, 'x');
  tokenize_files(tokenizer_, options_for("in.jsonl", "{\"text\": \"" + text + "\"}\n{\"text\": \"y\"}\n"));
  EXPECT_EQ(documents(), (Texts{text + "$", "y$"}));
}

TEST_F(TokenizeFilesTest, NamesTheBadLineAndLeavesNothing) {
  const auto expect = [this](const std::string& line, const std::vector<std::string>& pieces) {
    const auto options = options_for("in.jsonl", "{\"text\": \"good\"}\n" + line + "\n");
    auto all = pieces;
    all.push_back("in.jsonl:2:");
    expect_error(ErrorKind::data, all, [&] { tokenize_files(tokenizer_, options); });
    EXPECT_EQ(outputs(), 0);
  };
  expect("{\"text\": \"cut", {"not a JSON object", "byte"});
  expect("[1]", {"not a JSON object"});
  expect("{\"text\": \"a\"} {\"text\": \"b\"}", {"not a JSON object"});
  expect("{\"text\": \"\x80\"}", {"not a JSON object"});
  expect("{\"text\": \"\\ud800\"}", {"not a JSON object"});
  expect("{\"other\": \"a\"}", {"nothing under the key \"text\""});
  expect("{\"text\": null}", {"null under the key \"text\""});
  expect("{\"text\": [\"a\"]}", {"array under the key \"text\""});
}

TEST_F(TokenizeFilesTest, OverwritesOnlyWhenAsked) {
  auto options = options_for("in.txt", "old");
  tokenize_files(tokenizer_, options);
  write_bytes(directory_ / "in.txt", "new");
  expect_error(ErrorKind::user, {"out_text_document.bin exists"}, [&] { tokenize_files(tokenizer_, options); });
  EXPECT_EQ(documents(), Texts{"old$"});
  options.overwrite = true;
  tokenize_files(tokenizer_, options);
  EXPECT_EQ(documents(), Texts{"new$"});
}

TEST_F(TokenizeFilesTest, RefusesWhatItCannotRead) {
  auto options = options_for("in.zst", "?");
  expect_error(ErrorKind::user, {"in.zst", "format"}, [&] { tokenize_files(tokenizer_, options); });
  options = options_for("in.txt", "?");
  options.json_keys = {"a", "b"};
  expect_error(ErrorKind::user, {"plain text"}, [&] { tokenize_files(tokenizer_, options); });
  options.inputs = {directory_ / "missing.txt"};
  expect_error(ErrorKind::user, {"missing.txt"}, [&] { tokenize_files(tokenizer_, options); });
  options.inputs = {};
  expect_error(ErrorKind::user, {"no input"}, [&] { tokenize_files(tokenizer_, options); });
}

TEST_F(TokenizeFilesTest, LogsItsProgress) {
  std::string lines;
  for (int i = 0; i < 25; ++i) lines += "{\"text\": \"x\"}\n";
  auto options = options_for("in.jsonl", lines);
  options.log_every = 10;
  std::vector<int64_t> logged;
  options.log = [&logged](const TokenizeCounts& counts) {
    logged.push_back(counts.documents);
    EXPECT_GT(counts.documents_per_second(), 0.0);
    EXPECT_GT(counts.megabytes_per_second(), 0.0);
  };
  tokenize_files(tokenizer_, options);
  EXPECT_EQ(logged, (std::vector<int64_t>{10, 20}));
}

}  // namespace
}  // namespace megalith::data
