#include "observe/logs/training_log.h"

#include <gtest/gtest.h>

#include <fstream>

#include "golden_data.h"
#include "observe/event_lines.h"
#include "observe/files.h"
#include "observe/sinks/dllogger.h"
#include "observe/sinks/events.h"
#include "temp_dir.h"

namespace megalith::observe {
namespace {

using test::step_line;
using testing::TempDir;

TrainingLog collect(const std::vector<std::string>& lines) {
  TrainingLogCollector collector;
  for (const std::string& line : lines) collector.take(line);
  return std::move(collector).finish();
}

std::string dllogger(const std::string& step, const std::string& seconds) {
  return R"(DLLL {"timestamp": "1.0", "type": "LOG", "step": )" + step +
         R"(, "data": {"reduced_train_loss": NaN, "train_step_timing in s": )" + seconds + R"(, "epoch": 0}})";
}

TEST(TrainingLog, ReadsTheGoldenFile) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const TrainingLog log = read_training_log(golden / "dllogger" / "dllogger.json");
  EXPECT_EQ(log.kind, TrainingLogKind::dllogger);
  EXPECT_EQ(log.steps.size(), 50u);
  EXPECT_EQ(log.bad_lines, 0);
  EXPECT_EQ(log.global_batch_size, 2048);
  EXPECT_EQ(log.sequence_length, 2048);
  EXPECT_TRUE(log.fp8);
  EXPECT_EQ(fmt::format("{:.8f}", mean_step_time(log, 10, 30).seconds), "25.39738855");
  EXPECT_EQ(mean_step_time(log, 10, 30).records, 21);
  EXPECT_EQ(mean_step_time(log, 60, 70).records, 0);
}

TEST(TrainingLog, SurvivesTornLinesAndRecordsOfOthers) {
  const TrainingLog log =
      collect({dllogger("\"PARAMETER\"", "1"), dllogger("3", "2.5"), dllogger("4", "2.5").substr(0, 70),
               R"(DLLL {"type": "LOG", "step": 3, "data": {"val_loss": 6.5}})", dllogger("[]", "1"),
               dllogger("5", "NaN"), dllogger("6", "3.5"), "some words"});
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.bad_lines, 2);
  EXPECT_EQ(mean_step_time(log, 0, 10).seconds, 3.0);
}

TEST(TrainingLog, TheLastStartTellsThePeak) {
  const TempDir directory;
  const auto path = directory / "events.jsonl";
  const auto start = [&](Fields fields) {
    EventsSink(path, {.run_id = "run"}).on_event({.name = "job_started", .step = 0, .fields = std::move(fields)});
    return read_training_log(path).peak_tflops;
  };
  EXPECT_EQ(start({}), std::nullopt);
  EXPECT_EQ(start({{"peak_tflops", 312.0}}), 312.0);
  EXPECT_EQ(start({{"peak_tflops", 989.0}}), 989.0);
  std::ofstream(path, std::ios::app) << R"({"event":"job_started","fields":{"peak_tflops":1.0},"crc":"0"})" << '\n';
  EXPECT_EQ(read_training_log(path).peak_tflops, 989.0) << "a damaged line counts";
  EXPECT_EQ(start({}), std::nullopt) << "it went on without an accelerator";
}

TEST(TrainingLog, ReadsNemosConsole) {
  const TrainingLog log =
      collect({"Epoch 0: :  98%|█████████▊| 49/50 [31:45<00:05, reduced_train_loss=6.140, global_step=49.0, "
               "consumed_samples=75264.0, train_step_timing in s=5.910]",
               "Epoch 0: : 100%|██████████| 50/50 [31:51<00:00, reduced_train_loss=6.130, global_step=50.0, "
               "consumed_samples=76800.0, train_step_timing in s=5.900]",
               "Epoch 0: : 100%|██████████| 50/50 [31:51<00:00, reduced_train_loss=6.130, global_step=50.0, "
               "consumed_samples=76800.0, train_step_timing in s=5.900, val_loss=6.250]",
               "[NeMo I 2024-11-01 10:00:00 rank] train_step_timing in s is measured"});
  EXPECT_EQ(log.kind, TrainingLogKind::nemo);
  ASSERT_EQ(log.steps.size(), 2u);
  EXPECT_EQ(log.steps[1].step, 50);
  EXPECT_EQ(log.steps[1].seconds, 5.9);
}

TEST(TrainingLog, ReadsNemosSecondConsole) {
  const TrainingLog log =
      collect({"Training epoch 0, iteration 12/49 | lr: 1.8e-06 | global_batch_size: 2048 | "
               "global_step: 12 | reduced_train_loss: 11.03 | train_step_timing in s: 9.05"});
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 12);
  EXPECT_EQ(log.steps[0].seconds, 9.05);
  EXPECT_EQ(log.global_batch_size, 2048);
}

TEST(TrainingLog, ReadsMegatronsConsole) {
  const TrainingLog log = collect(
      {" [2025-05-22 10:00:00.123456] iteration      100/  500000 | consumed samples:       153600 | elapsed time per "
       "iteration (ms): 6012.3 | throughput per GPU (TFLOP/s/GPU): 601.2 | learning rate: 6.000000E-05 | global batch "
       "size:  1536 | lm loss: 6.013150E+00 | loss scale: 1.0 | grad norm: 1.204 | number of skipped iterations:   0 | "
       "number of nan iterations:   0 |"});
  EXPECT_EQ(log.kind, TrainingLogKind::megatron);
  ASSERT_EQ(log.steps.size(), 1u);
  EXPECT_EQ(log.steps[0].step, 100);
  EXPECT_NEAR(log.steps[0].seconds, 6.0123, 1e-12);
  EXPECT_EQ(log.global_batch_size, 1536);
}

TEST(TrainingLog, ReadsMegalithsEventsAndPrefersDllogger) {
  std::string damaged = step_line(1.7e9, 1, 2.0);
  damaged[50] ^= 1;
  const std::vector<std::string> lines{step_line(1.7e9, 0, 1.0), damaged};
  const TrainingLog events = collect(lines);
  EXPECT_EQ(events.kind, TrainingLogKind::events);
  EXPECT_EQ(events.steps.size(), 1u);
  EXPECT_EQ(events.bad_lines, 1);
  const TrainingLog mixed = collect({lines[0], dllogger("7", "2.5"), lines[0]});
  EXPECT_EQ(mixed.kind, TrainingLogKind::dllogger);
  ASSERT_EQ(mixed.steps.size(), 1u);
  EXPECT_EQ(mixed.steps[0].step, 7);
}

}  // namespace
}  // namespace megalith::observe
