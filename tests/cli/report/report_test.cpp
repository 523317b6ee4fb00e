#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/run_program.h"
#include "golden_data.h"
#include "observe/sinks/events.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

bool says(const Outcome& outcome, const std::string& words) {
  return outcome.output.find(words) != std::string::npos;
}

TEST(ReportTraining, GoogleToolsNumbersDigitForDigit) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const std::string file = "report training --file=" + (golden / "dllogger/dllogger.json").string() +
                           " --batch_size=2048 --num_accelerators=256 ";
  const Outcome bf16 = run_program(file + "--model_type=gpt3-175b --accelerator_type=h100");
  EXPECT_EQ(bf16.exit_code, 0);
  EXPECT_TRUE(
      bf16.output.starts_with("Average step time: 25.39738855\nTFLOPS/Accelerator: 692.98463368\nMFU: 0.70069225\n"))
      << bf16.output;
  EXPECT_TRUE(says(bf16, "note: ") && says(bf16, "--precision fp8")) << bf16.output;
  const Outcome fp8 = run_program(file + "--model_type gpt3-175b --accelerator_type h100 --precision fp8");
  EXPECT_TRUE(says(fp8, "\nMFU: 0.35034612\n")) << fp8.output;
  const Outcome given = run_program(file + "--model_flops 1.6E15 --max_flops 1000");
  EXPECT_TRUE(says(given, "\nTFLOPS/Accelerator: 503.98882449\nMFU: 0.50398882\n")) << given.output;
}

TEST(ReportTraining, BadInputSaysWhatTheFileHolds) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const TempDir directory;
  std::ofstream(directory / "garbage.txt") << "no\nstep\ntimes\n";
  const std::string log = (golden / "dllogger/dllogger.json").string();
  const std::string model = " --batch_size 2048 --num_accelerators 256 --model_type gpt3-175b ";
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {log + model + "--accelerator_type h100 --start_step 60 --end_step 70", {"steps 0 to 49", "60 and 70"}},
      {log + model + "--accelerator_type h100 --start_step 30 --end_step 10", {"--start_step 30"}},
      {log + model + "--accelerator_type h1000", {"h1000", "h100 (bf16 989, fp8 1978)"}},
      {log + model + "--accelerator_type a100 --precision fp8", {"a100 has no fp8 peak"}},
      {log + model, {"Either the --accelerator_type or --max_flops is needed"}},
      {log + " --num_accelerators 256 --max_flops 989", {"Either the --model_type or --model_flops is needed"}},
      {log + " --model_type gpt4 --num_accelerators 256", {"gpt4", "gpt3-175b"}},
      {log + " --model_type gpt3-175b --max_flops 989", {"--num_accelerators"}},
      {(directory / "garbage.txt").string() + model, {"garbage.txt", "3 lines"}},
      {(directory / "missing.json").string() + model, {"missing.json"}},
      {directory.path().string() + model, {"not a run directory"}},
      {"--sequence_length 2048", {"--step_time"}},
      {"--step_time 8.9", {"--batch_size"}},
      {"--step_time 8.9 8.8 8.7 --batch_size 256 512", {"--batch_size has 2 values for 3 columns"}},
  };
  for (const auto& [arguments, words] : cases) {
    const Outcome outcome = run_program("report training " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments << "\n" << outcome.output;
    for (const std::string& word : words) EXPECT_TRUE(says(outcome, word)) << word << "\n" << outcome.output;
  }
}

TEST(ReportTraining, FromAStepTime) {
  const Outcome outcome = run_program(
      "report training --step_time 8.91 5.92 --batch_size 256 --num_accelerators 128 --sequence_length 2048 "
      "--tokens 1e12 --model_flops 2.2e15 --max_flops 989 --format json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const auto columns = nlohmann::json::parse(outcome.output);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_NEAR(columns[0].at("tokens_per_second").get<double>(), 58843, 0.5);
  EXPECT_NEAR(columns[1].at("days_to_train").get<double>(), 131, 0.5);
}

TEST(ReportGoodput, OfTheGoldenLog) {
  MEGALITH_GOLDEN_OR_SKIP(golden);
  const TempDir directory;
  const std::string log = "--log-file " + (golden / "goodput/event_log.jsonl").string();
  const std::string job = " --job-name test-040104-goodput-n112-70b-a3m ";
  const Outcome outcome =
      run_program("report goodput " + log + job + "--reference-step-time 8 --verbose --export goodput.json",
                  directory.path().string());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* words :
       {"| Total Events                       | 193     |", "| 48      |", "| 40.0    |", "| 43.43%  |", "44 incidents",
        "start-up and warm-up", "Metrics exported to: goodput.json"}) {
    EXPECT_TRUE(says(outcome, words)) << words << "\n" << outcome.output;
  }
  std::ifstream exported(directory / "goodput.json");
  EXPECT_EQ(nlohmann::json::parse(exported).at("goodput_percentage"), 43.43365004195837);

  const Outcome wrong = run_program("report goodput --job-name other " + log);
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(says(wrong, "'other'") && says(wrong, "test-040104-goodput-n112-70b-a3m")) << wrong.output;
}

TEST(ReportGoodput, BadInputGetsAnAnswer) {
  const TempDir directory;
  std::ofstream(directory / "garbage.jsonl") << "{\"a\": 1}\nnonsense\n";
  const Outcome lookback = run_program("report goodput --job-name my-job --gcloud-logging-lookback-days 2");
  EXPECT_EQ(lookback.exit_code, 2);
  EXPECT_TRUE(says(lookback, "gcloud logging read") && says(lookback, "my-job-goodput") && says(lookback, "48h"))
      << lookback.output;
  const Outcome garbage = run_program("report goodput --log-file garbage.jsonl", directory.path().string());
  EXPECT_EQ(garbage.exit_code, 2);
  EXPECT_TRUE(says(garbage, "2 lines")) << garbage.output;
  EXPECT_EQ(run_program("report goodput --log-file missing.jsonl").exit_code, 2);
  EXPECT_EQ(run_program("report goodput " + directory.path().string()).exit_code, 2);
  EXPECT_EQ(run_program("report goodput --log-file garbage.jsonl --reference-step-time -1").exit_code, 2);
}

TEST(Report, OfARunDirectory) {
  const TempDir directory;
  const std::string train =
      "train trainer.accelerator=cpu model.micro_batch_size=1 model.global_batch_size=2 model.encoder_seq_length=8 "
      "model.num_layers=1 model.hidden_size=8 model.num_attention_heads=2 model.data.data_impl=mock "
      "exp_manager.explicit_log_dir=run exp_manager.resume_if_exists=true ";
  for (const char* steps : {"20", "35"}) {
    const Outcome outcome = run_program(train + "trainer.max_steps=" + steps, directory.path().string());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  }
  const Outcome training =
      run_program("report training run run --max_flops 1 --format json", directory.path().string());
  ASSERT_EQ(training.exit_code, 0) << training.output;
  const auto columns = nlohmann::json::parse(training.output);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].at("records"), 21);
  EXPECT_EQ(columns[0].at("batch_size"), 2);
  EXPECT_EQ(columns[0].at("sequence_length"), 8);
  EXPECT_EQ(columns[0].at("num_accelerators"), 1);
  EXPECT_GT(columns[0].at("mfu"), 0.0);
  EXPECT_LT(columns[0].at("causal_model_flops"), columns[0].at("model_flops"));

  const Outcome goodput = run_program("report goodput run --export run.json", directory.path().string());
  ASSERT_EQ(goodput.exit_code, 0) << goodput.output;
  std::ifstream exported(directory / "run.json");
  const auto wall = nlohmann::json::parse(exported).at("wall_time");
  EXPECT_EQ(wall.at("kept_steps"), 35) << goodput.output;
  EXPECT_GT(wall.at("seconds").at("planned_stop"), 0.0);
  EXPECT_EQ(wall.at("seconds").at("wasted_steps"), 0.0);
  EXPECT_EQ(wall.at("incidents").size(), 1u);

  const Outcome no_peak = run_program("report training run", directory.path().string());
  EXPECT_TRUE(says(no_peak, "MFU: -")) << no_peak.output;
  observe::EventsSink(directory / "run/events.jsonl", {.run_id = "run"})
      .on_event({.name = "job_started",
                 .step = 35,
                 .fields = {{"accelerator", std::string("a card")}, {"peak_tflops", 989.0}}});
  const Outcome peak = run_program("report training run --format json", directory.path().string());
  ASSERT_EQ(peak.exit_code, 0) << peak.output;
  EXPECT_EQ(nlohmann::json::parse(peak.output)[0].at("peak_tflops"), 989.0);
  EXPECT_EQ(nlohmann::json::parse(peak.output)[0].at("peak_source"), "the run's accelerator");
}

}  // namespace
}  // namespace megalith::cli::testing
