#include "data/prepare/read/input_list.h"

#include <gtest/gtest.h>

#include "data/prepare/prepare_testing.h"

namespace megalith::data {
namespace {

TEST(InputListTest, NumbersCompareAsNumbers) {
  const std::vector<std::string> sorted{"",
                                        "a",
                                        "a0",
                                        "a00",
                                        "a01",
                                        "a1",
                                        "a2",
                                        "a2b10",
                                        "a10",
                                        "a10b2",
                                        "a10b10",
                                        "a100000000000000000000",
                                        "a200000000000000000000",
                                        "b1",
                                        "chunk2/shard10",
                                        "chunk10/shard2"};
  for (size_t i = 0; i < sorted.size(); ++i) {
    for (size_t k = 0; k < sorted.size(); ++k) {
      EXPECT_EQ(natural_less(sorted[i], sorted[k]), i < k) << sorted[i] << " " << sorted[k];
    }
  }
}

TEST(InputListTest, ExpandsPatternsInNaturalOrder) {
  const TempDir directory;
  for (const char* name : {"s10.jsonl", "s9.jsonl", "s1.jsonl", "t.txt"}) write_bytes(directory / name, name);
  const auto names = [](const std::vector<InputFile>& files) {
    std::vector<std::string> all;
    for (const InputFile& file : files) all.push_back(file.path.filename());
    return all;
  };
  const auto files = list_inputs({directory / "*.jsonl"}, true);
  EXPECT_EQ(names(files), (std::vector<std::string>{"s1.jsonl", "s9.jsonl", "s10.jsonl"}));
  EXPECT_EQ(files[2].size, 9);
  EXPECT_GT(files[2].modified_ns, 0);
  EXPECT_EQ(names(list_inputs({directory / "t.txt", directory / "s9.jsonl"}, false)),
            (std::vector<std::string>{"t.txt", "s9.jsonl"}));
  EXPECT_EQ(names(list_inputs({directory / "t.txt", directory / "s9.jsonl"}, true)),
            (std::vector<std::string>{"s9.jsonl", "t.txt"}));
}

TEST(InputListTest, RefusesWhatCannotBeRead) {
  const TempDir directory;
  write_bytes(directory / "a.txt", "a");
  std::filesystem::create_symlink(directory / "a.txt", directory / "link.txt");
  std::filesystem::create_symlink(directory / "loop2", directory / "loop1");
  std::filesystem::create_symlink(directory / "loop1", directory / "loop2");
  const auto refuse = [](const std::vector<std::string>& patterns, const std::vector<std::string>& pieces) {
    expect_error(ErrorKind::user, pieces, [&] { list_inputs(patterns, true); });
  };
  refuse({}, {"no input"});
  refuse({directory / "missing"}, {"missing", "No such file"});
  refuse({directory / "*.zst"}, {"*.zst"});
  refuse({directory.path().string()}, {"is a directory"});
  refuse({directory / "a.txt", directory / "a.txt"}, {"a.txt", "twice"});
  refuse({directory / "a.txt", directory / "link.txt"}, {"a.txt", "link.txt", "same file"});
  refuse({directory / "loop1"}, {"loop1"});
}

TEST(InputListTest, NoticesChanges) {
  const TempDir directory;
  write_bytes(directory / "a.txt", "a");
  const auto files = list_inputs({directory / "a.txt"}, true);
  check_unchanged(files[0]);
  write_bytes(directory / "a.txt", "ab");
  expect_error(ErrorKind::data, {"a.txt", "changed"}, [&] { check_unchanged(files[0]); });
}

TEST(InputListTest, FormatsByName) {
  const auto cut = [](const char* name) { return cut_of(name, InputFormat::by_name, TextDocuments::blank_lines); };
  for (const char* name : {"a.jsonl", "a.json", "a.jsonl.gz", "a.jsonl.zst"}) EXPECT_EQ(cut(name), Cut::lines);
  EXPECT_EQ(cut("a.txt.zst"), Cut::blank_lines);
  EXPECT_EQ(cut("a.parquet"), Cut::lines);
  EXPECT_TRUE(is_parquet("a.parquet", InputFormat::by_name));
  EXPECT_TRUE(is_parquet("a", InputFormat::parquet));
  EXPECT_FALSE(is_parquet("a.parquet", InputFormat::json_lines));
  EXPECT_THROW(cut("a.zst"), Error);
  EXPECT_EQ(cut_of("a", InputFormat::text, TextDocuments::whole_file), Cut::whole_file);
  EXPECT_EQ(uncompressed_name("d/a.jsonl.zst"), "d/a.jsonl");
  EXPECT_EQ(uncompressed_name("d/a.jsonl"), "d/a.jsonl");
}

}  // namespace
}  // namespace megalith::data
