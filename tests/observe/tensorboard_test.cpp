#include "observe/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>

#include "observe/files.h"
#include "observe/tfrecord.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

template <class T>
T load(const std::string& bytes, size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The data of every record, with its checksums checked.
std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  size_t at = 0;
  while (at < file.size()) {
    const auto length = load<uint64_t>(file, at);
    EXPECT_EQ(load<uint32_t>(file, at + 8), masked_crc32c(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    EXPECT_EQ(load<uint32_t>(file, at + 12 + length), masked_crc32c(records.back()));
    at += 16 + length;
  }
  EXPECT_EQ(at, file.size());
  return records;
}

// The fields of a protobuf message: raw bytes by field number.
std::multimap<uint32_t, std::string> fields_of(const std::string& message) {
  std::multimap<uint32_t, std::string> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.at(at++));
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
  };
  while (at < message.size()) {
    const uint64_t key = varint();
    std::string value;
    if ((key & 7) == 0) {
      const uint64_t number = varint();
      value.assign(reinterpret_cast<const char*>(&number), sizeof number);
    } else {
      const uint64_t length = (key & 7) == 1 ? 8 : ((key & 7) == 5 ? 4 : varint());
      value = message.substr(at, length);
      at += length;
    }
    fields.emplace(static_cast<uint32_t>(key >> 3), value);
  }
  return fields;
}

TEST(TfRecord, Crc32cOfKnownTexts) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, FileDecodes) {
  const testing::TempDir directory;
  std::filesystem::path path;
  {
    TensorBoardSink sink(directory.path(), "trainer:\n  max_steps: 5");
    path = sink.path();
    sink.on_metrics({.kind = "train",
                     .step = 300,
                     .values = {{"reduced_train_loss", 6.25},
                                {"train_step_timing in s", 0.5},
                                {"global_step", int64_t{300}},
                                {"x", "text"}}});
    sink.on_metrics({.kind = "validation", .step = 301, .values = {{"val_loss", 7.5}}});
  }
  EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents.1") ||
              path.filename().string().starts_with("events.out.tfevents.2"));
  const std::vector<std::string> records = records_of(test::bytes_of(path));
  ASSERT_EQ(records.size(), 4u);

  const auto version = fields_of(records[0]);
  EXPECT_EQ(version.find(3)->second, "brain.Event:2");
  EXPECT_GT(load<double>(version.find(1)->second, 0), 1e9);

  const auto text = fields_of(fields_of(fields_of(records[1]).find(5)->second).find(1)->second);
  EXPECT_EQ(text.find(1)->second, "config/text_summary");
  EXPECT_NE(text.find(8)->second.find("max_steps: 5"), std::string::npos);
  EXPECT_NE(text.find(9)->second.find("text"), std::string::npos);

  const auto train = fields_of(records[2]);
  EXPECT_EQ(load<int64_t>(train.find(2)->second, 0), 300);
  std::map<std::string, float> scalars;
  for (const auto& [field, value] : fields_of(train.find(5)->second)) {
    const auto scalar = fields_of(value);
    scalars[scalar.find(1)->second] = load<float>(scalar.find(2)->second, 0);
  }
  EXPECT_EQ(scalars, (std::map<std::string, float>{
                         {"global_step", 300.0f}, {"reduced_train_loss", 6.25f}, {"train_step_timing in s", 0.5f}}));
  EXPECT_EQ(load<int64_t>(fields_of(records[3]).find(2)->second, 0), 301);
}

}  // namespace
}  // namespace megalith::observe
