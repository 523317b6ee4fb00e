// Long documents, which are encoded while they are read, give what they would give if they were held whole.

#include "data/prepare/read/long_document.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "data/prepare/copy_texts.h"
#include "data/prepare/long_line_testing.h"
#include "data/prepare/prepare_fixture.h"
#include "data/tokenizer/tokenizer_testing.h"

namespace megalith::data {
namespace {

using LongDocumentTest = PrepareTest;

std::vector<std::string> odd_lines() {
  std::vector<std::string> lines = {
      R"({"text": "a"})",
      R"( {"id":1,"meta":{"text":"no","x":[1,{"text":"no"}]},"text":"yes","after":null} )",
      R"({"text":"\"\\\/\b\f\n\r\t\u00e9\u20ac\ud83d\ude00"})",
      R"({"text":"a\u0000b"})",
      R"({"te\u0078t":"x"})",
      R"({"te\ud800t":"x","text":"a"})",
      R"({"text":"first","text":"last"})",
      R"({"text":"first","te\u0078t":"last"})",
      R"({"text":"first","text":null})",
      R"({"text":"<|endoftext|>","text":"last","a":{"b":"x"}})",
      R"({"a":{"b":"first"},"a":{"c":1}})",
      R"({"a":{"b":"first"},"a":{"b":"last"},"text":"t"})",
      R"({"a":{"b":"first"},"a":"flat","text":"t"})",
      R"({"a":{},"text":"t","m":"x"})",
      R"({"a":{"b":"y"},"text":"t","m":1 })",
      R"({"a":{"b":"y"},"text":"t","m":12})",
      R"({"a":{"b":"y"},"text":"t","m":1"x y" })",
      R"({"m":true,"text":"t"})",
      R"({"m":"xx","text":"t"})",
      R"({"text":12.5})",
      R"({"text":["a"]})",
      R"({"text":{"a":1}})",
      R"({"other":[[[[{"x":[]}]]]],"text":"a"})",
      R"({"other":"long string","text":"\ud83dx"})",
      R"({"text":"\ude00\ud83d"})",
      R"({"text":"\ud83d\n\ud83d\u0041\ud83d\ud83d\ude00"})",
      R"({"text":"\x"})",
      R"({"text":"\u12"})",
      R"({"text":"\u12g4"})",
      R"({"text":"\u"})",
      R"({"text":"\u\u0041"})",
      R"({"other":"\x","text":"a"})",
      // What is not looked at may be anything.
      R"({"other":rubbish,"text":"a"})",
      R"({"other":1 2 3,"text":"a"})",
      R"({"other":"a":1},"text":"a"})",
      R"({"other":,"text":"a"})",
      R"({"other":},"text":"a"})",
      R"({"other":[},"text":"a"})",
      R"({"other":[1,2,"text":"a"})",
      R"({"other"x:1,"text":"a"})",
      R"({"text":"a"x})",
      R"({"text":x"a"})",
      R"({x"text":"a"})",
      R"({"a":"b":"c"},"text":"t"})",
      R"({"text":"a"}})",
      R"({"text":"a"},)",
      R"({"text" "a"})",
      R"({"a":1 "text":"a"})",
      R"({\"text":"a"})",
      R"({"text":"a"} \"})",
      R"({"text":"a",})",
      R"({,"text":"a"})",
      R"({"text":"a"} {"text":"b"})",
  };
  for (const char* line : {"",
                           " ",
                           "[1]",
                           "\"text\"",
                           "12",
                           "null",
                           "{",
                           "}",
                           "{}",
                           "{]",
                           "{\"text\"",
                           "{\"text\":",
                           "{\"text\":\"cut",
                           "{\"text\":\"a\"",
                           "\f",
                           "\x1a",
                           "{\f}",
                           "{\"text\"\x1a\"a\"}",
                           "garbage",
                           "{text:1}",
                           "{\"text\":\"a\"} x"}) {
    lines.emplace_back(line);
  }
  for (const std::string bytes : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF5", "\xC3", "\xE2\x82", "\t",
                                  "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF0\x9F\x98\x80", "\x1f", "\x7f"}) {
    lines.push_back("{\"text\":\"a" + bytes + "b\"}");
    lines.push_back("{\"text\":\"a" + bytes);
    lines.push_back("{\"te" + bytes + "xt\":\"a\"}" + bytes);
    lines.push_back("{\"text\":1" + bytes + "}");
  }
  lines.push_back("{\"text\":\"a" + std::string(1, '\0') + "b\"}");
  lines.push_back(std::string("{\"o\":\0,\"text\":\"b\"}", 18));
  lines.push_back("{\"text\":\"a\"}\r");
  lines.push_back("{\"text\":\"\\ud83d\x80\"}");
  return lines;
}

std::vector<EncodeOptions> policies() {
  std::vector<EncodeOptions> all;
  for (int i = 0; i < 16; ++i) {
    EncodeOptions options;
    options.on_error = OnError::skip;
    options.append_eod = i % 3 == 0;
    if (i % 3 == 1) options.bos = 256;
    options.bad_text = i % 2 == 0 ? BadText::reject : BadText::replace;
    if (i & 2) options.json_keys = {"text", "a.b"};
    if (i & 4) options.keep = {{"m", {"x", "1", "true"}}};
    if (i & 8) options.max_document_bytes = 30;
    if (i % 5 == 4) options.max_document_tokens = 3;
    if (i % 5 == 3) options.json_keys = {"a", "text", "a.b"};
    all.push_back(options);
  }
  return all;
}

TEST_F(LongDocumentTest, EveryLineGetsTheSameVerdict) {
  for (const EncodeOptions& options : policies()) {
    for (const std::string& line : odd_lines()) {
      for (const size_t piece : {1, 2, 3, 7, 1000}) {
        ASSERT_EQ(roads_differ(tokenizer_, options, line, piece), "") << line;
      }
    }
  }
}

TEST_F(LongDocumentTest, SoDoLinesWithMistakes) {
  std::mt19937 random(3);
  const auto lines = odd_lines();
  const auto all = policies();
  const std::string bits = "{}[]:,\"\\ utx1a\t\f\x80\xC3\xA9";
  for (int i = 0; i < 60'000; ++i) {
    std::string line = lines[random() % lines.size()];
    for (unsigned k = 1 + random() % 3; k > 0; --k) {
      const size_t at = random() % (line.size() + 1);
      const char bit = bits[random() % bits.size()];
      if (random() % 3 == 0) {
        line.insert(at, 1, bit);
      } else if (at < line.size() && random() % 2 == 0) {
        line.erase(at, 1 + random() % 3);
      } else if (at < line.size()) {
        line[at] = bit;
      }
    }
    std::erase(line, '\n');
    ASSERT_EQ(roads_differ(tokenizer_, all[random() % all.size()], line, 1 + random() % 9), "") << line;
  }
}

TEST_F(LongDocumentTest, WholeTextFiles) {
  const EncodeOptions options{.on_error = OnError::skip, .max_document_bytes = 40, .append_eod = true};
  for (const std::string text : {"x", "a\nb\n", "\xFF\x80 not UTF-8", "exactly forty bytes are in this text ...",
                                 "there are more than forty bytes in this text"}) {
    RawBatch batch;
    batch.text.append(text);
    const auto whole = BatchEncoder(tokenizer_, options).encode(batch, Cut::whole_file);
    EXPECT_EQ(difference(whole, encode_in_parts(tokenizer_, options, text, 3, Cut::whole_file)), "") << text;
  }
}

TEST_F(LongDocumentTest, TextFilesThatAreNotUtf8) {
  for (const std::string text : {"ok\ncaf\xe9\n", "\xC3\xA9\n\n\xE2\x82", "\xE2\x82\xAC\n\x80", "\xF0\x9F\nx"}) {
    for (const BadText policy : {BadText::reject, BadText::replace}) {
      const EncodeOptions options{.bad_text = policy, .on_error = OnError::skip};
      RawBatch batch;
      batch.text.append(text);
      const auto whole = BatchEncoder(tokenizer_, options).encode(batch, Cut::whole_file);
      EXPECT_EQ(whole.documents, policy == BadText::reject ? 0 : 1);
      for (size_t piece = 1; piece <= text.size(); ++piece) {
        EXPECT_EQ(difference(whole, encode_in_parts(tokenizer_, options, text, piece, Cut::whole_file)), "") << piece;
      }
    }
  }
}

// Files with lines of all lengths around the bound.
std::string mixed_lines(std::mt19937& random, int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    std::string document;
    for (unsigned k = random() % 60; k > 0; --k) document += odd_text(random, random() % 9, /*valid=*/true);
    text +=
        nlohmann::json{{"m", i % 3}, {"text", document}, {"z", {{"b", "more"}}}}.dump() + (i % 4 == 0 ? "\r\n" : "\n");
    if (i % 7 == 0) text += "\n";
    if (i % 11 == 0) text += "{\"m\":1,\"text\":\"\\ud800 cut" + std::string(random() % 300, 'x') + "\"}\n";
    if (i % 13 == 0) text += std::string(random() % 300, ' ') + "\n";
  }
  return text;
}

TEST_F(LongDocumentTest, OutputsAreTheSameForAnyBoundAndThreads) {
  std::mt19937 random(4);
  TokenizerFiles files{.name = "t", .source = "t", .grammar = Grammar::o200k};
  files.vocabulary = {.reference = BpeReference::tiktoken, .tokens = trained_bpe().tokens};
  files.eod = static_cast<int32_t>(trained_bpe().tokens.size());
  files.specials = {{"<|endoftext|>", files.eod}};
  files.vocab_size = files.eod + 1;
  const BpeTokenizer tokenizer(files);
  put("in0.jsonl.zst", zstd_of(mixed_lines(random, 200)));
  put("in1.jsonl.gz", gzip_of(mixed_lines(random, 100)));
  put("in2.jsonl", mixed_lines(random, 100) + "{\"text\":\"no newline at the end, and not short either\",\"m\":0}");
  PrepareOptions options;
  options.inputs = {directory_ / "in*"};
  options.output_prefix = directory_ / "out";
  options.shards = 2;
  options.encode.json_keys = {"text", "z.b"};
  options.encode.keep = {{"m", {"0", "1"}}};
  options.encode.on_error = OnError::skip;
  options.encode.append_eod = true;
  options.encode.look_for_special_text = true;
  options.encode.stream_buffer_bytes = 50;
  for (const SpecialText policy : {SpecialText::encode, SpecialText::reject}) {
    options.encode.special_text = policy;
    options.overwrite = true;
    options.batch_bytes = 1 << 20;
    options.long_document_bytes = int64_t{1} << 40;
    prepare(tokenizer, options);
    const auto expected = outputs();
    ASSERT_EQ(expected.size(), 2u * 2 * 3 + 1);
    for (const int64_t bound : {1, 50, 300}) {
      for (const int64_t batch : {1, 37, 200}) {
        for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
        options.long_document_bytes = bound;
        options.batch_bytes = batch;
        options.threads = batch == 37 ? 3 : 1;
        prepare(tokenizer, options);
        ASSERT_EQ(names_of(outputs()), names_of(expected));
        for (const auto& [name, content] : expected) ASSERT_EQ(outputs()[name], content) << name << " bound " << bound;
      }
    }
  }
}

TEST_F(LongDocumentTest, BadLinesHaveTheSamePlace) {
  for (const std::string& line : odd_lines()) {
    auto options = single("in.jsonl", line_of("good") + "\r\n" + line + "\n" + line_of("good"));
    std::vector<std::string> messages;
    for (const int64_t bound : {1 << 20, 2}) {
      options.long_document_bytes = bound;
      options.batch_bytes = bound;
      options.overwrite = true;
      std::filesystem::remove(directory_ / "out_text_document.json");
      try {
        run(options);
        messages.emplace_back();
      } catch (const Error& error) {
        messages.emplace_back(error.what());
      }
    }
    EXPECT_EQ(messages[0], messages[1]) << line;
  }
}

TEST_F(LongDocumentTest, ADamagedFileWithALongLineIsLeftOut) {
  std::string text;
  std::mt19937 random(1);
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>('a' + random() % 26);
  const std::string packed = zstd_of(line_of("a") + line_of(text));
  auto options = sharded(2, ".jsonl.zst");
  put("in1.jsonl.zst", packed.substr(0, packed.size() - 5));
  options.long_document_bytes = 10;
  options.batch_bytes = 1000;
  options.encode.on_error = OnError::skip;
  run(options);
  EXPECT_EQ(documents("out_00_text_document"),
            (Texts{"file 0 document 0$", "file 0 document 1$", "file 0 document 2$"}));
}

TEST_F(LongDocumentTest, CopiesOfLongLines) {
  std::mt19937 random(5);
  put("in0.jsonl.gz", gzip_of(mixed_lines(random, 100)));
  put("in1.jsonl", mixed_lines(random, 100) + "{\"m\":1,\"text\":\"no newline at the end\"}");
  for (const bool filtered : {false, true}) {
    CopyOptions options;
    options.inputs = {directory_ / "in*"};
    options.output_directory = directory_ / "copy";
    options.on_error = OnError::skip;
    options.overwrite = true;
    if (filtered) options.keep = {{"m", {"1"}}};
    std::vector<std::map<std::string, std::string>> files;
    std::vector<CopyCounts> counts;
    for (const int64_t bound : {int64_t{1} << 40, int64_t{40}, int64_t{1}}) {
      std::filesystem::remove_all(directory_ / "copy");
      options.long_document_bytes = bound;
      counts.push_back(concat_texts(options, 2));
      files.push_back(files_of(directory_ / "copy"));
      EXPECT_EQ(files.back(), files.front());
      EXPECT_EQ(counts.back().lines, counts.front().lines);
      EXPECT_EQ(counts.back().filtered, counts.front().filtered);
      EXPECT_EQ(counts.back().bytes_out, counts.front().bytes_out);
      EXPECT_EQ(counts.back().skipped.to_json(), counts.front().skipped.to_json());
    }
    options.max_document_bytes = 200;
    std::filesystem::remove_all(directory_ / "copy");
    EXPECT_GT(concat_texts(options, 2).skipped.count(BadLine::too_long), 0);
    for (const auto& [name, content] : files_of(directory_ / "copy")) {
      for (size_t at = 0; at < content.size(); at = content.find('\n', at) + 1) {
        ASSERT_LE(content.find('\n', at) - at, 201u) << name;
      }
    }
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
int64_t memory_of_this_process(const std::string& which) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(which)) return std::stoll(line.substr(which.size() + 1)) * 1024;
  }
  return -1;
}

// 40 MB of text, its tokens and its JSON would be 200 MB.
TEST_F(LongDocumentTest, MemoryDoesNotGrowWithTheDocument) {
  if (memory_of_this_process("VmHWM") < 0) GTEST_SKIP() << "no /proc";
  TokenizerFiles files{.name = "t", .source = "t", .grammar = Grammar::llama3};
  files.vocabulary = {.reference = BpeReference::tiktoken, .tokens = trained_bpe().tokens};
  files.eod = static_cast<int32_t>(trained_bpe().tokens.size());
  files.vocab_size = files.eod + 1;
  const BpeTokenizer tokenizer(files);
  for (const bool words : {true, false}) {
    {
      std::ofstream file(directory_ / "in.jsonl");
      const std::string line = words ? training_text() : std::string(100'000, 'e');
      std::string escaped;
      for (const char c : line) escaped += c == '\n' ? "\\n" : std::string(1, c);
      file << "{\"other\":[" << std::string(2'000'000, '0') << "],\"text\":\"";
      for (size_t bytes = 0; bytes < 40'000'000; bytes += escaped.size()) file << escaped;
      file << "\"}\n";
    }
    const pid_t child = ::fork();
    if (child == 0) {
      const int64_t before = memory_of_this_process("VmRSS");
      PrepareOptions options;
      options.inputs = {directory_ / "in.jsonl"};
      options.output_prefix = directory_ / (words ? "out" : "run");
      options.threads = 2;
      try {
        prepare(tokenizer, options);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        std::_Exit(3);
      }
      const int64_t growth = memory_of_this_process("VmHWM") - before;
      std::fprintf(stderr, "grew by %ld MB\n", static_cast<long>(growth >> 20));
      std::_Exit(growth < (int64_t{96} << 20) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
}
#endif

}  // namespace
}  // namespace megalith::data
