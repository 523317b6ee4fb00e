#include "observe/sinks/tensorboard/tensorboard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "observe/files.h"
#include "observe/sinks/tensorboard/tfrecord.h"
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

TensorBoardOptions options_for(const testing::TempDir& directory) {
  return {.directory = directory.path(), .config_text = "trainer:\n  max_steps: 5", .global_batch_size = 4, .ranks = 2};
}

Metrics train_metrics() {
  return {.kind = "train",
          .step = 300,
          .values = {{"reduced_train_loss", 6.25},
                     {"train_step_timing in s", 0.5},
                     {"step_time", 0.75},
                     {"tflops_per_rank", 400.0},
                     {"lr", 0.1},
                     {"grad_norm", std::nan("")},
                     {"consumed_samples", 1204.0},
                     {"global_step", int64_t{300}},
                     {"memory.weights", int64_t{1} << 30},
                     {"x", "text"}}};
}

Metrics validation_metrics() {
  return {.kind = "validation", .step = 301, .values = {{"val_loss", 2.0}}};
}

struct Scalar {
  int64_t step;
  float value;
  bool operator==(const Scalar& other) const {
    return step == other.step && std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(other.value);
  }
};
using Scalars = std::map<std::string, Scalar>;

// What the two above must become.
Scalars expected_scalars() {
  const float perplexity = std::exp(2.0);
  const float nan = std::nanf("");
  return {{"reduced_train_loss", {300, 6.25F}},
          {"train_step_timing in s", {300, 0.5F}},
          {"step_time", {300, 0.75F}},
          {"tflops_per_rank", {300, 400.0F}},
          {"lr", {300, 0.1F}},
          {"grad_norm", {300, nan}},
          {"consumed_samples", {300, 1204.0F}},
          {"global_step", {300, 300.0F}},
          {"memory.weights", {300, 1073741824.0F}},
          {"val_loss", {301, 2.0F}},
          {"lm loss", {301, 6.25F}},
          {"learning-rate", {301, 0.1F}},
          {"grad-norm", {301, nan}},
          {"batch-size", {301, 4.0F}},
          {"world-size", {301, 2.0F}},
          {"iteration-time", {301, 0.75F}},
          {"throughput", {301, 400.0F}},
          {"lm loss validation", {302, 2.0F}},
          {"lm loss validation ppl", {302, perplexity}},
          {"lm loss vs samples", {1204, 6.25F}},
          {"learning-rate vs samples", {1204, 0.1F}},
          {"grad-norm vs samples", {1204, nan}},
          {"batch-size vs samples", {1204, 4.0F}},
          {"world-size vs samples", {1204, 2.0F}},
          {"lm loss validation vs samples", {1204, 2.0F}},
          {"lm loss validation ppl vs samples", {1204, perplexity}}};
}

void expect_scalars(const Scalars& found) {
  for (const auto& [tag, scalar] : expected_scalars()) {
    ASSERT_TRUE(found.contains(tag)) << tag;
    EXPECT_EQ(found.at(tag).step, scalar.step) << tag;
    EXPECT_TRUE(found.at(tag) == scalar) << tag << " " << found.at(tag).value << ", expected " << scalar.value;
  }
  EXPECT_EQ(found.size(), expected_scalars().size());
}

std::filesystem::path write_file(const testing::TempDir& directory) {
  TensorBoardSink sink(options_for(directory));
  sink.on_metrics(train_metrics());
  sink.on_metrics(validation_metrics());
  return sink.path();
}

TEST(TensorBoard, FileDecodes) {
  const testing::TempDir directory;
  const std::filesystem::path path = write_file(directory);
  EXPECT_TRUE(path.filename().string().starts_with("events.out.tfevents.1") ||
              path.filename().string().starts_with("events.out.tfevents.2"));
  const std::vector<std::string> records = records_of(test::bytes_of(path));
  ASSERT_EQ(records.size(), 8u);

  const auto version = fields_of(records[0]);
  EXPECT_EQ(version.find(3)->second, "brain.Event:2");
  EXPECT_GT(load<double>(version.find(1)->second, 0), 1e9);

  const auto text = fields_of(fields_of(fields_of(records[1]).find(5)->second).find(1)->second);
  EXPECT_EQ(text.find(1)->second, "config/text_summary");
  EXPECT_NE(text.find(8)->second.find("max_steps: 5"), std::string::npos);
  EXPECT_NE(text.find(9)->second.find("text"), std::string::npos);

  Scalars scalars;
  for (size_t i = 2; i < records.size(); ++i) {
    const auto event = fields_of(records[i]);
    for (const auto& [field, value] : fields_of(event.find(5)->second)) {
      const auto scalar = fields_of(value);
      scalars[scalar.find(1)->second] = {load<int64_t>(event.find(2)->second, 0),
                                         load<float>(scalar.find(2)->second, 0)};
    }
  }
  expect_scalars(scalars);
}

// The steps of a tag in all files of a directory, in the order of the files' names.
std::vector<int64_t> steps_of(const testing::TempDir& directory, const std::string& tag) {
  std::vector<int64_t> steps;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& path : files) {
    for (const std::string& record : records_of(test::bytes_of(path))) {
      const auto event = fields_of(record);
      if (!event.contains(5)) continue;
      for (const auto& [field, value] : fields_of(event.find(5)->second)) {
        if (fields_of(value).find(1)->second == tag) steps.push_back(load<int64_t>(event.find(2)->second, 0));
      }
    }
  }
  return steps;
}

void write_steps(const testing::TempDir& directory, int64_t first, int64_t end) {
  TensorBoardOptions options = options_for(directory);
  options.first_step = first;
  options.consumed_samples = 4 * first;
  TensorBoardSink sink(options);
  for (int64_t step = first; step < end; ++step) {
    const auto samples = static_cast<double>(4 * (step + 1));
    sink.on_metrics(
        {.kind = "train", .step = step, .values = {{"reduced_train_loss", 1.0}, {"consumed_samples", samples}}});
    sink.on_metrics({.kind = "validation", .step = step, .values = {{"val_loss", 2.0}}});
  }
}

TEST(TensorBoard, HasNoStepTwiceAfterARestart) {
  const testing::TempDir directory;
  write_steps(directory, 0, 9);
  const std::string first = test::bytes_of(std::filesystem::directory_iterator(directory.path())->path());
  std::filesystem::rename(std::filesystem::directory_iterator(directory.path())->path(),
                          directory / "events.out.tfevents.1");
  // A crash tore the last record.
  std::filesystem::resize_file(directory / "events.out.tfevents.1", first.size() - 5);
  write_steps(directory, 6, 8);
  EXPECT_EQ(steps_of(directory, "reduced_train_loss"), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(steps_of(directory, "val_loss"), (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(steps_of(directory, "lm loss"), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(steps_of(directory, "lm loss vs samples"), (std::vector<int64_t>{4, 8, 12, 16, 20, 24, 28, 32}));
  EXPECT_EQ(steps_of(directory, "lm loss validation vs samples"), steps_of(directory, "lm loss vs samples"));
}

TEST(TensorBoard, LeavesOtherFilesAloneWhenItRewinds) {
  const testing::TempDir directory;
  ProtoMessage value, summary, event;
  value.bytes(1, "loss").real32(2, 1.0F);
  summary.message(1, value);
  event.integer(2, 100).message(5, summary);
  const std::string foreign = tf_record("version") + tf_record(event.text());
  std::ofstream(directory / "events.out.tfevents.1") << foreign;
  std::ofstream(directory / "events.out.tfevents.2") << "no record at all";
  write_steps(directory, 6, 7);
  EXPECT_EQ(test::bytes_of(directory / "events.out.tfevents.1"), foreign);
  EXPECT_EQ(test::bytes_of(directory / "events.out.tfevents.2"), "no record at all");
}

// Prints what the real TensorBoard finds in a directory: a line "tag<TAB>step<TAB>bits of the float" per scalar, then
// the config after a line "text".
constexpr const char* kReadWithTensorBoard = R"(
import struct, sys
from tensorboard.backend.event_processing import plugin_event_accumulator
from tensorboard.util import tensor_util
found = plugin_event_accumulator.EventAccumulator(sys.argv[1])
found.Reload()
for tag in found.PluginTagToContent("scalars"):
    for event in found.Tensors(tag):
        bits = struct.unpack("<I", struct.pack("<f", tensor_util.make_ndarray(event.tensor_proto).item()))[0]
        print(tag, event.step, bits, sep="\t")
print("text")
for tag in found.PluginTagToContent("text"):
    print(tag, tensor_util.make_ndarray(found.Tensors(tag)[0].tensor_proto).item().decode())
)";

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), &::pclose);
  std::string output;
  char chunk[4096];
  for (size_t count = 0; (count = std::fread(chunk, 1, sizeof chunk, pipe.get())) > 0;) output.append(chunk, count);
  return output;
}

TEST(TensorBoard, TheRealOneReadsEveryTagAndValue) {
  if (output_of("python3 -c 'import tensorboard; print(1)' 2>/dev/null") != "1\n") {
    GTEST_SKIP() << "python3 has no tensorboard: pip install tensorboard";
  }
  const testing::TempDir directory;
  write_file(directory);
  test::append_to(directory / "read.py", kReadWithTensorBoard);
  const std::string command = "python3 " + (directory / "read.py").string() + " " + directory.path().string();
  std::istringstream output(output_of(command + " 2>/dev/null"));
  Scalars scalars;
  for (std::string line; std::getline(output, line) && line != "text";) {
    const size_t first = line.find('\t');
    const size_t second = line.find('\t', first + 1);
    ASSERT_NE(second, std::string::npos) << line;
    scalars[line.substr(0, first)] = {std::stoll(line.substr(first + 1)),
                                      std::bit_cast<float>(static_cast<uint32_t>(std::stoul(line.substr(second + 1))))};
  }
  expect_scalars(scalars);
  const std::string text{std::istreambuf_iterator<char>(output), {}};
  EXPECT_EQ(text, "config/text_summary ```yaml\ntrainer:\n  max_steps: 5\n```\n");
}

}  // namespace
}  // namespace megalith::observe
