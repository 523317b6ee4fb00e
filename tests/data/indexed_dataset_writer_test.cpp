#include "data/indexed_dataset_writer.h"

#include <gtest/gtest.h>

#include "core/failpoint.h"
#include "data/data_testing.h"
#include "data/indexed_dataset.h"

namespace megalith::data {
namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

void write_three(const std::string& prefix, int64_t vocab_size) {
  IndexedDatasetWriter writer(prefix, vocab_size);
  writer.add_document(std::vector<int32_t>{1, 2, 3});
  writer.add_document({});
  writer.add_document(std::vector<int32_t>{4, 40000});
  writer.finish();
}

// The bytes that Megatron's builder writes, made with Python's struct and numpy.
TEST(IndexedDatasetWriter, WritesMegatronsBytes) {
  const TempDir directory;
  write_three(directory / "set", 50257);
  EXPECT_EQ(hex(read_bytes(directory / "set.bin")), "0100020003000400409c");
  EXPECT_EQ(hex(read_bytes(directory / "set.idx")),
            "4d4d4944494458000001000000000000000802000000000000000400000000000000"
            "0300000002000000"
            "00000000000000000600000000000000"
            "0000000000000000010000000000000001000000000000000200000000000000");
  EXPECT_EQ(directory.files(), 2);
}

TEST(IndexedDatasetWriter, ChoosesTheTypeByVocabulary) {
  EXPECT_EQ(token_type_for_vocab(65499), TokenType::uint16);
  EXPECT_EQ(token_type_for_vocab(65500), TokenType::int32);
  const TempDir directory;
  for (const int64_t vocab : {65499, 65500, 65536, 65537}) {
    const std::string prefix = directory / std::to_string(vocab);
    write_three(prefix, vocab);
    const IndexedDataset dataset(prefix);
    EXPECT_EQ(dataset.token_type(), token_type_for_vocab(vocab));
    EXPECT_EQ(dataset.documents(), 3);
    EXPECT_EQ(dataset.document_begin(2), 1);
    std::vector<int32_t> tokens(2);
    dataset.read(1, 0, tokens);
    EXPECT_EQ(tokens, (std::vector<int32_t>{4, 40000}));
  }
}

TEST(IndexedDatasetWriter, WritesMoreThanItsBuffer) {
  const TempDir directory;
  IndexedDatasetWriter writer(directory / "set", 257);
  std::vector<int32_t> document(700001);
  for (size_t i = 0; i < document.size(); ++i) document[i] = static_cast<int32_t>(i % 257);
  writer.add_document(document);
  writer.add_document(document);
  writer.finish();
  const IndexedDataset dataset(directory / "set");
  std::vector<int32_t> read(document.size());
  dataset.read(1, 0, read);
  EXPECT_EQ(read, document);
}

TEST(IndexedDatasetWriter, LeavesNothingWhenAbandoned) {
  const TempDir directory;
  {
    IndexedDatasetWriter writer(directory / "set", 257);
    writer.add_document(std::vector<int32_t>{1, 2, 3});
    EXPECT_EQ(directory.files(), 1);
  }
  EXPECT_EQ(directory.files(), 0);
}

TEST(IndexedDatasetWriter, LeavesNothingWhenAFaultStrikes) {
  for (const char* fault :
       {"file.write=io@1", "file.write=io@2", "file.write=io@4", "file.rename=io@1", "file.rename=io@2"}) {
    const TempDir directory;
    arm_failpoint(fault);
    expect_error(ErrorKind::io, {}, [&directory] { write_three(directory / "set", 257 * 257); });
    disarm_failpoints();
    EXPECT_EQ(directory.files(), 0) << fault;
  }
}

TEST(IndexedDatasetWriter, RefusesASecondWriterAndReplacesTheDead) {
  const TempDir directory;
  write_bytes(directory / "set.bin.part", "left by a process that was killed");
  IndexedDatasetWriter writer(directory / "set", 257);
  expect_error(ErrorKind::user, {"another process"}, [&directory] { IndexedDatasetWriter(directory / "set", 257); });
  writer.add_document(std::vector<int32_t>{1});
  writer.finish();
  EXPECT_EQ(read_bytes(directory / "set.bin"), std::string("\1\0", 2));
}

TEST(IndexedDatasetWriter, ReplacesWhatWasThere) {
  const TempDir directory;
  write_three(directory / "set", 50257);
  IndexedDatasetWriter writer(directory / "set", 257);
  writer.finish();
  EXPECT_EQ(IndexedDataset(directory / "set").sequences(), 0);
}

}  // namespace
}  // namespace megalith::data
