#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/process/failpoint.h"
#include "data/prepare/prepare_testing.h"

namespace megalith::data {

// A tokenizer of any size: ids are lengths of lines.
class LengthTokenizer : public ByteTokenizer {
 public:
  explicit LengthTokenizer(int64_t vocab) : vocab_(vocab) {}
  int64_t vocab_size() const override { return vocab_; }
  int32_t eod() const override { return static_cast<int32_t>(vocab_ - 1); }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    if (!text.empty()) ids.push_back(static_cast<int32_t>(vocab_ - static_cast<int64_t>(text.size())));
  }
  std::unique_ptr<EncodeStream> open_stream(const StreamOptions& options) const override {
    return Tokenizer::open_stream(options);
  }

 private:
  int64_t vocab_;
};

// A directory in which `prepare` runs.
class PrepareTest : public ::testing::Test {
 protected:
  ~PrepareTest() override { disarm_failpoints(); }
  void SetUp() override { MEGALITH_JSON_OR_SKIP(); }

  std::string put(const std::string& name, const std::string& content) {
    write_bytes(directory_ / name, content);
    return directory_ / name;
  }

  // One output `out_text_document`, as `tokenize` makes it.
  PrepareOptions single(const std::string& name, const std::string& content) {
    PrepareOptions options;
    options.inputs = {put(name, content)};
    options.output_prefix = directory_ / "out";
    options.numbered = false;
    options.encode.append_eod = true;
    return options;
  }

  PrepareOptions sharded(int files, const std::string& format = ".jsonl") {
    PrepareOptions options;
    for (int i = 0; i < files; ++i) {
      std::string text;
      for (int k = 0; k < 3 + i; ++k) text += line_of(fmt::format("file {} document {}", i, k));
      if (format == ".jsonl.zst") text = zstd_of(text);
      if (format == ".jsonl.gz") text = gzip_of(text);
      put(fmt::format("in{}{}", i, format), text);
    }
    options.inputs = {directory_ / "in*"};
    options.output_prefix = directory_ / "out";
    options.encode.append_eod = true;
    return options;
  }

  PrepareSummary run(const PrepareOptions& options) { return prepare(tokenizer_, options); }
  Texts documents(const std::string& name = "out_text_document") { return documents_of(directory_ / name); }
  std::map<std::string, std::string> outputs() { return files_of(directory_.path(), "out"); }
  nlohmann::json sidecar(const std::string& name = "out_text_document") {
    return nlohmann::json::parse(read_bytes(directory_ / (name + ".json")));
  }

  TempDir directory_;
  ByteTokenizer tokenizer_;
};

}  // namespace megalith::data
