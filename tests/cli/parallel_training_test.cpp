// Training on several ranks of the built program: how it ends, how it goes on, and what it refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "core/process/exit_codes.h"
#include "final_state.h"
#include "observe/logs/event_line.h"
#include "ranks.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::final_state;
using ::megalith::testing::TempDir;

std::string training(const std::filesystem::path& directory, int64_t steps) {
  return fmt::format(
      "train trainer.accelerator=cpu trainer.cpu_threads=1 trainer.max_steps={} model.num_layers=4 "
      "model.hidden_size=16 model.num_attention_heads=4 model.encoder_seq_length=16 model.micro_batch_size=2 "
      "model.global_batch_size=8 "
      "model.hidden_dropout=0.1 model.position_embedding_type=rope model.data.data_impl=mock "
      "model.optim.sched.max_steps=1000 exp_manager.resume_if_exists=true exp_manager.explicit_log_dir={} ",
      steps, directory.string());
}

const std::string kTensor2 = "model.tensor_model_parallel_size=2 ";
const std::string kPipeline2 = "model.pipeline_model_parallel_size=2 ";

void expect_others_name(int lost, int signal, double timeout) {
  SCOPED_TRACE(fmt::format("rank {}, signal {}", lost, signal));
  constexpr int kRanks = 4;
  const TempDir dir;
  Ranks ranks(kRanks, training(dir / "run", 1000000) + kTensor2 + kPipeline2 +
                          fmt::format("trainer.devices={} trainer.communication_timeout={}", kRanks, timeout));
  ASSERT_TRUE(ranks.wait_until_told("global_step=3")) << ranks.text_of(0);
  const double begin = monotonic_seconds();
  ranks.send(lost, signal);
  constexpr double kToEnd = 15.0;
  EXPECT_TRUE(ranks.wait_for_all_but(lost, timeout + kToEnd)) << monotonic_seconds() - begin << " s";
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == lost) continue;
    const std::string text = ranks.text_of(rank);
    EXPECT_EQ(ranks.exit_code(rank), kExitRankLost) << "rank " << rank << ": " << text;
    EXPECT_NE(text.find(fmt::format("rank {} (", lost)), std::string::npos) << "rank " << rank << ": " << text;
  }
}

TEST(ParallelTraining, NamesAKilledRank) {
  for (const int lost : {0, 1, 3}) expect_others_name(lost, SIGKILL, 10.0);
}

TEST(ParallelTraining, NamesAStoppedRankAtTheDeadline) {
  for (const int lost : {0, 2}) expect_others_name(lost, SIGSTOP, 3.0);
}

TEST(ParallelTraining, StopsTogetherOnRequestAndGoesOnToTheSameBits) {
  constexpr int64_t kSteps = 60;
  const std::string layout = kTensor2 + "model.wrap_with_zero=true --nproc 4 ";
  const TempDir dir;
  Outcome outcome = run_program(training(dir / "whole", kSteps) + layout);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;

  outcome = run_program(training(dir / "halved", kSteps) + layout +
                            "> out 2>&1 & launcher=$!; until grep -qs global_step=0 out; do sleep 0.05; done; "
                            "kill -TERM $launcher; wait $launcher; code=$?; cat out; exit $code",
                        dir.path().string());
  EXPECT_EQ(outcome.exit_code, 75) << outcome.output;
  outcome = run_program(training(dir / "halved", kSteps) + layout);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("resuming from"), std::string::npos) << outcome.output;
  EXPECT_EQ(final_state(dir / "halved", kSteps), final_state(dir / "whole", kSteps));
}

std::vector<double> losses_of(const std::filesystem::path& run) {
  std::vector<double> losses;
  std::vector<observe::JsonMember> scratch;
  std::ifstream file(run / "events.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto logged = observe::parse_event_line(line, scratch);
    if (!logged || logged->event != "metrics") continue;
    if (const auto loss = logged->number("reduced_train_loss")) losses.push_back(*loss);
  }
  return losses;
}

TEST(ParallelTraining, GoesOnInAnotherLayout) {
  const std::vector<std::string> layouts = {kTensor2 + "--nproc 2", kPipeline2 + "model.wrap_with_zero=true --nproc 4",
                                            "", "model.fsdp=true model.context_parallel_size=2 --nproc 2"};
  constexpr int64_t kStepsEach = 8;
  const TempDir dir;
  int64_t steps = 0;
  for (const std::string& layout : layouts) {
    steps += kStepsEach;
    for (const auto& [run, arguments] : {std::pair{"moved", layout}, {"alone", std::string()}}) {
      const Outcome outcome = run_program(training(dir / run, steps) + arguments);
      ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
    }
  }
  const std::vector<double> moved = losses_of(dir / "moved");
  const std::vector<double> alone = losses_of(dir / "alone");
  ASSERT_EQ(std::ssize(moved), steps);
  ASSERT_EQ(std::ssize(alone), steps);
  for (size_t step = 0; step < alone.size(); ++step) EXPECT_NEAR(moved[step] / alone[step], 1.0, 1e-4) << step;
}

TEST(ParallelTraining, RefusesALayoutThatCannotWorkBeforeAnythingStarts) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--nproc 8 model.tensor_model_parallel_size=8", "tensor 8 is more than the 4 attention heads"},
      {"--nproc 2 model.ffn_hidden_size=15 " + kTensor2, "tensor 2 does not divide 15 channels of the MLP"},
      {"--nproc 3 model.pipeline_model_parallel_size=3", "4 layers cannot be cut into 3 equal chunks"},
      {"--nproc 2 model.virtual_pipeline_model_parallel_size=2 model.global_batch_size=2 " + kPipeline2,
       "1 micro batches are too few"},
      {"--nproc 4 model.context_parallel_size=4 model.encoder_seq_length=12", "use a multiple of 8"},
      {"--nproc 3 " + kTensor2, "one copy of the model takes 2 ranks"},
      {"--nproc 2 model.pipeline_schedule=zero_bubble", "the zero-bubble schedule needs more than one pipeline stage"},
  };
  for (const auto& [arguments, reason] : cases) {
    const TempDir dir;
    const Outcome outcome = run_program(training(dir / "run", 1) + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("layouts near it that work"), std::string::npos) << outcome.output;
    EXPECT_FALSE(std::filesystem::exists(dir / "run"));
  }
}

}  // namespace
}  // namespace megalith::cli::testing
