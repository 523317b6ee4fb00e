#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/process/failpoint.h"
#include "data/prepare/copy_texts.h"
#include "data/prepare/merge.h"
#include "data/prepare/prepare_testing.h"
#include "data/write_dataset.h"

namespace megalith::data {
namespace {

class StagesTest : public ::testing::Test {
 protected:
  ~StagesTest() override { disarm_failpoints(); }

  std::string put(const std::string& name, const std::string& content) {
    write_bytes(directory_ / name, content);
    return directory_ / name;
  }

  CopyOptions copy(const std::string& pattern) {
    CopyOptions options;
    options.inputs = {directory_ / pattern};
    options.output_directory = directory_ / "out";
    return options;
  }

  std::map<std::string, std::string> outputs() { return files_of(directory_.path() / "out"); }

  void dataset(const std::string& name, const std::vector<std::vector<int32_t>>& documents, int64_t vocab = 300) {
    test::write_dataset(directory_ / name, vocab, documents);
  }

  using Files = std::map<std::string, std::string>;
  TempDir directory_;
};

TEST_F(StagesTest, ExtractsUnderTheirNames) {
  put("a.jsonl.zst", zstd_of("1\n") + zstd_of("2\n"));
  put("b.jsonl.gz", gzip_of("3\n"));
  put("c.jsonl", "4\r\n\n5");
  CopyOptions options = copy("?.jsonl*");
  options.threads = 3;
  const CopyCounts counts = extract_texts(options);
  EXPECT_EQ(outputs(), (Files{{"a.jsonl", "1\n2\n"}, {"b.jsonl", "3\n"}, {"c.jsonl", "4\r\n\n5\n"}}));
  EXPECT_EQ(counts.outputs, 3);
  EXPECT_EQ(counts.lines, 6);
  EXPECT_EQ(extract_texts(options).outputs_before, 3);
  // "Exists" is not "done".
  write_bytes(directory_ / "out/a.jsonl", "1\n");
  expect_error(ErrorKind::user, {"a.jsonl exists", "--overwrite"}, [&] { extract_texts(options); });
  options.overwrite = true;
  EXPECT_EQ(extract_texts(options).outputs_before, 2);
  EXPECT_EQ(outputs()["a.jsonl"], "1\n2\n");
}

TEST_F(StagesTest, ExtractKeepsLinesAsTheyAre) {
  MEGALITH_JSON_OR_SKIP();
  const std::string kept = "{ \"text\" : \"a\\u00e9\xE2\x80\xA8\", \"set\":\"A\" }\r\n";
  put("a.jsonl.zst", zstd_of("{\"set\":\"B\"}\n" + kept + "\n{\"set\":\"A\"}"));
  CopyOptions options = copy("a.jsonl.zst");
  options.keep = {parse_field_filter("set=A")};
  const CopyCounts counts = extract_texts(options);
  EXPECT_EQ(outputs()["a.jsonl"], kept + "{\"set\":\"A\"}\n");
  EXPECT_EQ(counts.filtered, 1);
  EXPECT_EQ(counts.lines, 2);
  put("b.jsonl", "{\"set\":\"A\"}\nbad\n");
  options = copy("b.jsonl");
  options.output_directory = directory_ / "other";
  options.keep = {parse_field_filter("set=A")};
  expect_error(ErrorKind::user, {"b.jsonl:2:", "byte 12"}, [&] { extract_texts(options); });
  EXPECT_TRUE(files_of(directory_.path() / "other").empty());
  options.on_error = OnError::skip;
  EXPECT_EQ(extract_texts(options).skipped.total(), 1);
  EXPECT_EQ(files_of(directory_.path() / "other")["b.jsonl"], "{\"set\":\"A\"}\n");
}

TEST_F(StagesTest, DamagedFilesAreNotExtracted) {
  put("a.jsonl.zst", zstd_of(std::string(100'000, 'x') + "\n").substr(0, 20));
  put("b.jsonl", "b\n");
  CopyOptions options = copy("?.jsonl*");
  expect_error(ErrorKind::data, {"a.jsonl.zst", "cut off"}, [&] { extract_texts(options); });
  EXPECT_EQ(outputs().count("a.jsonl"), 0u);
  options.on_error = OnError::skip;
  EXPECT_EQ(concat_texts(options, 2).skipped.count(BadLine::damaged_file), 1);
  EXPECT_EQ(outputs()["train_chunk_0.jsonl"], "b\n");
}

TEST_F(StagesTest, RefusesOutputsOfOneName) {
  put("a.jsonl", "1\n");
  put("a.jsonl.gz", gzip_of("1\n"));
  expect_error(ErrorKind::user, {"a.jsonl.gz", "both"}, [&] { extract_texts(copy("a.*")); });
  CopyOptions options = copy("a.jsonl");
  options.output_directory = directory_.path();
  expect_error(ErrorKind::user, {"itself"}, [&] { extract_texts(options); });
}

TEST_F(StagesTest, ConcatenatesInNaturalOrder) {
  for (int i = 1; i <= 11; ++i) put(fmt::format("s{}.jsonl", i), fmt::format("{}", i));
  for (const int64_t workers : {1, 3}) {
    CopyOptions options = copy("s*.jsonl");
    options.output_directory = directory_ / ("out" + std::to_string(workers));
    for (int64_t i = 0; i < workers; ++i) {
      options.worker = {i, workers};
      concat_texts(options, 4);
    }
    EXPECT_EQ(files_of(options.output_directory), (Files{{"train_chunk_0.jsonl", "1\n2\n3\n4\n"},
                                                         {"train_chunk_1.jsonl", "5\n6\n7\n8\n"},
                                                         {"train_chunk_2.jsonl", "9\n10\n11\n"}}));
  }
}

TEST_F(StagesTest, InterruptedCopiesStartOver) {
  for (int i = 0; i < 6; ++i) put(fmt::format("s{}.jsonl", i), fmt::format("{}\n", i));
  const CopyOptions options = copy("s*.jsonl");
  for (const char* place : {"file.write", "file.rename"}) {
    for (int at = 1;; ++at) {
      std::filesystem::remove_all(directory_ / "out");
      arm_failpoint(std::string(place) + "=io@" + std::to_string(at));
      bool failed = false;
      try {
        concat_texts(options, 3);
      } catch (const Error&) {
        failed = true;
      }
      disarm_failpoints();
      concat_texts(options, 3);
      EXPECT_EQ(outputs(), (Files{{"train_chunk_0.jsonl", "0\n1\n2\n"}, {"train_chunk_1.jsonl", "3\n4\n5\n"}}));
      if (!failed) break;
    }
  }
}

TEST_F(StagesTest, MergesDatasets) {
  dataset("a", {{1, 2}, {}, {3}});
  dataset("b", {});
  dataset("c", {{}, {4}, {5, 6, 7}});
  dataset("all", {{1, 2}, {}, {3}, {}, {4}, {5, 6, 7}});
  const std::vector<std::string> inputs{directory_ / "a", directory_ / "b", directory_ / "c"};
  const MergeCounts counts = merge_datasets(inputs, directory_ / "merged");
  EXPECT_EQ(counts.documents, 6);
  EXPECT_EQ(counts.tokens, 7);
  for (const char* suffix : {".bin", ".idx"}) {
    EXPECT_EQ(read_bytes(directory_ / ("merged" + std::string(suffix))),
              read_bytes(directory_ / ("all" + std::string(suffix))));
  }
  EXPECT_TRUE(merge_datasets(inputs, directory_ / "merged").was_there);
  expect_error(ErrorKind::user, {"merged.bin exists"},
               [&] { merge_datasets({directory_ / "a"}, directory_ / "merged"); });
  merge_datasets({directory_ / "a"}, directory_ / "merged", {.overwrite = true});
  EXPECT_EQ(read_bytes(directory_ / "merged.idx"), read_bytes(directory_ / "a.idx"));
  expect_error(ErrorKind::user, {"itself"}, [&] { merge_datasets(inputs, directory_ / "a", {.overwrite = true}); });
}

TEST_F(StagesTest, MergeRefusesMixedTypes) {
  dataset("small", {{1}});
  dataset("large", {{1}}, 70'000);
  expect_error(ErrorKind::user, {"uint16", "int32", "large"}, [&] {
    merge_datasets({directory_ / "small", directory_ / "large"}, directory_ / "merged");
  });
}

TEST_F(StagesTest, InterruptedMergesStartOver) {
  dataset("a", {{1, 2}, {3}});
  dataset("b", {{4}});
  dataset("all", {{1, 2}, {3}, {4}});
  const std::vector<std::string> inputs{directory_ / "a", directory_ / "b"};
  for (const char* place : {"file.write", "file.rename"}) {
    for (int at = 1;; ++at) {
      for (const auto& file : files_of(directory_.path(), "merged")) std::filesystem::remove(directory_ / file.first);
      arm_failpoint(std::string(place) + "=io@" + std::to_string(at));
      bool failed = false;
      try {
        merge_datasets(inputs, directory_ / "merged");
      } catch (const Error&) {
        failed = true;
      }
      disarm_failpoints();
      merge_datasets(inputs, directory_ / "merged");
      EXPECT_EQ(read_bytes(directory_ / "merged.idx"), read_bytes(directory_ / "all.idx"));
      EXPECT_EQ(read_bytes(directory_ / "merged.bin"), read_bytes(directory_ / "all.bin"));
      EXPECT_EQ(files_of(directory_.path(), "merged").size(), 3u);
      if (!failed) break;
    }
  }
}

}  // namespace
}  // namespace megalith::data
