#include "observe/sinks/dllogger.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "golden_data.h"
#include "observe/files.h"
#include "observe/sinks/python_json.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using nlohmann::ordered_json;
using testing::TempDir;

TEST(PythonJson, NumbersAsPythonWritesThem) {
  const std::pair<double, const char*> cases[] = {{46.0, "46.0"},
                                                  {0.0, "0.0"},
                                                  {-0.0, "-0.0"},
                                                  {0.1, "0.1"},
                                                  {1e-4, "0.0001"},
                                                  {0.00001, "1e-05"},
                                                  {3.600000127335079e-05, "3.600000127335079e-05"},
                                                  {1e15, "1000000000000000.0"},
                                                  {1e16, "1e+16"},
                                                  {123456789012345680.0, "1.2345678901234568e+17"},
                                                  {1e100, "1e+100"},
                                                  {5e-324, "5e-324"},
                                                  {-2.5, "-2.5"},
                                                  {1727487085.63194, "1727487085.63194"},
                                                  {std::numeric_limits<double>::max(), "1.7976931348623157e+308"}};
  for (const auto& [number, text] : cases) EXPECT_EQ(python_repr(number), text);
  EXPECT_EQ(python_repr(std::nan("")), "nan");
  EXPECT_EQ(python_json(std::nan("")), "NaN");
  EXPECT_EQ(python_json(-std::numeric_limits<double>::infinity()), "-Infinity");
}

TEST(PythonJson, StructuresAsPythonWritesThem) {
  const ordered_json value = {
      {"b", {1, 2.0, nullptr, true}}, {"a", "ü\"\n\x7f"}, {"e", ordered_json::object()}, {"l", ordered_json::array()}};
  EXPECT_EQ(python_json(value), R"({"b": [1, 2.0, null, true], "a": "\u00fc\"\n\u007f", "e": {}, "l": []})");
}

TEST(Dllogger, GoldenFileIsReproducedByteForByte) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const std::vector<std::string> lines = test::lines_of(golden / "dllogger" / "dllogger.json");
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    ASSERT_TRUE(line.starts_with("DLLL "));
    EXPECT_EQ(dllogger_line(ordered_json::parse(line.substr(5))), line);
  }
}

Metrics train_metrics(int64_t step) {
  return {.kind = "train",
          .step = step,
          .values = {{"tokens_per_second", 1e5},
                     {"epoch", int64_t{0}},
                     {"reduced_train_loss", 11.0625},
                     {"lr", 3.600000127335079e-05},
                     {"global_step", step},
                     {"consumed_samples", int64_t{2048}},
                     {"train_backward_timing in s", 6.5e-05},
                     {"grad_norm", 59.25},
                     {"train_step_timing in s", 107.5},
                     {"tflops", 400.0}}};
}

TEST(Dllogger, RecordsOfARun) {
  const TempDir directory;
  const auto path = directory / "dllogger.json";
  {
    DlloggerSink sink(path, {{"cfg/micro_batch_size", 1}, {"cfg/betas", {0.9, 0.95}}});
    sink.on_metrics(train_metrics(46));
    sink.on_metrics({.kind = "validation", .step = 46, .values = {{"val_loss", 6.25}}});
    sink.flush();
  }
  const std::vector<std::string> lines = test::lines_of(path);
  ASSERT_EQ(lines.size(), 3u);
  const auto data_of = [](const std::string& line) { return line.substr(line.find("\"type\"")); };
  EXPECT_EQ(data_of(lines[0]),
            R"("type": "LOG", "step": "PARAMETER", "data": {"cfg/micro_batch_size": 1, "cfg/betas": [0.9, 0.95]}})");
  EXPECT_EQ(
      data_of(lines[1]),
      R"("type": "LOG", "step": 46, "data": {"reduced_train_loss": 11.0625, "lr": 3.600000127335079e-05, )"
      R"("global_step": 46.0, "consumed_samples": 2048.0, "train_backward_timing in s": 6.5e-05, "grad_norm": 59.25, )"
      R"("train_step_timing in s": 107.5, "epoch": 0}})");
  EXPECT_EQ(data_of(lines[2]), R"("type": "LOG", "step": 46, "data": {"val_loss": 6.25}})");
  for (const std::string& line : lines) {
    const ordered_json record = ordered_json::parse(line.substr(5));
    std::vector<std::string> keys;
    for (const auto& [key, value] : record.items()) keys.push_back(key);
    EXPECT_EQ(keys, (std::vector<std::string>{"timestamp", "datetime", "elapsedtime", "type", "step", "data"}));
    EXPECT_EQ(record["datetime"].get<std::string>().size(), 26u);
    const std::string timestamp = record["timestamp"];
    EXPECT_LE(timestamp.size() - timestamp.find('.') - 1, 6u);
    EXPECT_GE(std::stod(record["elapsedtime"].get<std::string>()), 0.0);
  }
}

TEST(Dllogger, AResumedRunAppends) {
  const TempDir directory;
  const auto path = directory / "dllogger.json";
  { DlloggerSink(path, ordered_json::object()).on_metrics(train_metrics(0)); }
  test::append_to(path, "DLLL {\"times");
  { DlloggerSink(path, ordered_json::object()).on_metrics(train_metrics(1)); }
  const std::vector<std::string> lines = test::lines_of(path);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[2], "DLLL {\"times");
  EXPECT_NE(lines[3].find("PARAMETER"), std::string::npos);
}

}  // namespace
}  // namespace megalith::observe
