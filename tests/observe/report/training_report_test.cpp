#include "observe/report/training_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace megalith::observe {
namespace {

// One column of the tables in NVIDIA's recipe for NeMo Megatron 175B on H100 (NeMo 24.11, 2048 tokens).
struct Column {
  int64_t gpus;
  double step_time;
  const char* tokens_per_second;
  const char* mfu;
  const char* days;
};

void expect_column(const Column& column, double peak) {
  const TrainingInputs inputs{.step_time = column.step_time,
                              .batch_size = 2 * column.gpus,
                              .accelerators = column.gpus,
                              .sequence_length = 2048,
                              .model_flops = 2.2e15,
                              .peak_tflops = peak};
  EXPECT_EQ(fmt::format("{:.0f}", *tokens_per_second(inputs)), column.tokens_per_second);
  EXPECT_EQ(fmt::format("{:.2f}%", *model_flops_utilization(inputs) * 100.0), column.mfu);
  EXPECT_EQ(fmt::format("{:.0f}", *days_to_train(inputs)), column.days);
}

TEST(TrainingReport, ReproducesThePublishedTables) {
  for (const Column& column : {Column{128, 8.91, "58843", "49.93%", "197"},
                               {256, 8.95, "117159", "49.71%", "99"},
                               {512, 9.09, "230710", "48.94%", "50"},
                               {1024, 9.01, "465517", "49.38%", "25"},
                               {2048, 9.02, "930001", "49.32%", "12"}}) {
    expect_column(column, 989.0);
  }
  for (const Column& column : {Column{128, 5.92, "88562", "37.56%", "131"},
                               {256, 5.96, "175936", "37.30%", "66"},
                               {512, 6.44, "325645", "34.52%", "36"},
                               {1024, 6.72, "624152", "33.09%", "19"},
                               {2048, 6.24, "1344328", "35.63%", "9"}}) {
    expect_column(column, 1979.0);
  }
}

TrainingInputs golden_run() {
  return {.name = "dllogger.json",
          .step_time = 25.397388548,
          .averaged = TrainingInputs::Averaged{.log = "DLLogger", .first_step = 10, .last_step = 30, .records = 21},
          .batch_size = 2048,
          .accelerators = 256,
          .sequence_length = 2048,
          .model_flops = 2.2e15,
          .model_source = "gpt3-175b",
          .peak_tflops = 989.0,
          .peak_source = "h100 bf16"};
}

TEST(TrainingReport, BeginsWithGooglesThreeLines) {
  const std::vector<TrainingInputs> columns{golden_run()};
  const std::string text = training_text(columns);
  EXPECT_TRUE(text.starts_with("Average step time: 25.39738855\nTFLOPS/Accelerator: 692.98463"));
  EXPECT_NE(text.find("\nMFU: 0.700692"), std::string::npos) << text;
  for (const char* word : {"tokens/s", "days to train 1e+12 tokens", "70.08", "10 to 30, 21 records",
                           "2.2e+15 (gpt3-175b)", "989 (h100 bf16)", "/ accelerators / 1e12"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
}

TEST(TrainingReport, WhatIsNotKnownIsLeftOut) {
  const std::vector<TrainingInputs> columns{{.name = "bare", .step_time = 2.0, .batch_size = 4}, golden_run()};
  EXPECT_EQ(tflops_per_accelerator(columns[0]), std::nullopt);
  EXPECT_EQ(days_to_train(columns[0]), std::nullopt);
  const auto json = training_json(columns);
  EXPECT_TRUE(json.at(0).at("mfu").is_null());
  EXPECT_NEAR(json.at(1).at("mfu").get<double>(), 0.70069225, 1e-8);
  const std::string csv = training_csv(columns);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
  EXPECT_NE(csv.find("\r\nbare,2.0,,,,"), std::string::npos) << csv;
  const std::string text = training_text(columns);
  EXPECT_NE(text.find("bare"), std::string::npos);
  EXPECT_NE(text.find("dllogger.json"), std::string::npos);
}

TEST(TrainingReport, TheCausalCountStandsUnderItsOwnName) {
  std::vector<TrainingInputs> columns{golden_run()};
  EXPECT_EQ(training_text(columns).find("causal"), std::string::npos);
  columns[0].causal_flops = 1.1e15;
  EXPECT_NE(training_text(columns).find("causal MFU                  0.350346"), std::string::npos)
      << training_text(columns);
}

}  // namespace
}  // namespace megalith::observe
