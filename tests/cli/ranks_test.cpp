// Several ranks of the built program as real processes: how they start, and how they end when one of them is lost.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/process/exit_codes.h"
#include "ranks.h"
#include "repository.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

// Calls that would go on for longer than any test waits.
const std::string kEndless = "bench comm --accelerator cpu --most-bytes 8 --seconds 1000 ";

void expect_others_name(int lost, int signal, double timeout, const std::vector<std::string>& reasons) {
  constexpr int kRanks = 3;
  Ranks ranks(kRanks, kEndless + "--timeout " + std::to_string(timeout));
  ASSERT_TRUE(ranks.wait_until_told("ranks met"));
  ranks.send(lost, signal);
  EXPECT_TRUE(ranks.wait_for_all_but(lost, 20.0));
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank == lost) continue;
    const std::string text = ranks.text_of(rank);
    EXPECT_EQ(ranks.exit_code(rank), kExitRankLost) << text;
    EXPECT_NE(text.find("rank " + std::to_string(lost) + " ("), std::string::npos) << text;
    EXPECT_TRUE(std::any_of(reasons.begin(), reasons.end(), [&](const std::string& reason) {
      return text.find(reason) != std::string::npos;
    })) << text;
  }
}

// At once, as a rule. Gloo forgets a send whose first write fails (UnboundBuffer::waitSend): then at the deadline.
TEST(Ranks, AKilledOneIsNamed) {
  for (const int lost : {0, 1}) expect_others_name(lost, SIGKILL, 5.0, {"is gone", "did not arrive"});
}

TEST(Ranks, AStoppedOneIsNamedAtTheDeadline) {
  for (const int lost : {0, 1}) expect_others_name(lost, SIGSTOP, 1.0, {"did not arrive"});
}

TEST(Ranks, OneThatDoesNotAppearIsNamed) {
  const Outcome outcome =
      run_program("bench comm --accelerator cpu --start-timeout 0.5", ".", "RANK=0 WORLD_SIZE=3 MASTER_PORT=29417");
  EXPECT_EQ(outcome.exit_code, kExitRankLost);
  EXPECT_NE(outcome.output.find("of 3 ranks did not appear within 0.5 s: 1, 2"), std::string::npos) << outcome.output;
}

TEST(Ranks, EightStartOnOneMachine) {
  const Outcome outcome = run_program("bench comm --nproc 8 --accelerator cpu --most-bytes 8 --seconds 0.001");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("[0] 8 ranks met in"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("[0] all_to_all"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("[1]"), std::string::npos) << "rank 0 speaks for all\n" << outcome.output;
}

TEST(Ranks, TheirCallsAreAWireForOneOfThem) {
  const TempDir dir;
  const std::string path = dir.path().string();
  const Outcome measured =
      run_program("bench comm --nproc 2 --accelerator cpu --most-bytes 512 --seconds 0.001 --csv times.csv", path);
  ASSERT_EQ(measured.exit_code, 0) << measured.output;
  const std::string step =
      "bench step --as-rank last --wire times.csv trainer.accelerator=cpu trainer.devices=2 model.micro_batch_size=1 "
      "model.global_batch_size=2 model.encoder_seq_length=8 model.num_layers=2 model.hidden_size=8 "
      "model.num_attention_heads=2 model.pipeline_model_parallel_size=2";
  // The wire serves; only the GPU is missing.
  const Outcome outcome = run_program(step, path);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.output.find("measures a rank on a GPU"), std::string::npos) << outcome.output;
}

TEST(Ranks, ALaunchThatLosesOneFailsAndSaysWhich) {
  const TempDir dir;
  // The second of the launcher's children is rank 1.
  const Outcome outcome = run_program(kEndless +
                                          "--nproc 3 > out 2>&1 & launcher=$!; "
                                          "until grep -qs met out; do sleep 0.05; done; "
                                          "set -- $(cat /proc/$launcher/task/$launcher/children); kill -9 $2; "
                                          "wait $launcher; code=$?; cat out; exit $code",
                                      dir.path().string());
  EXPECT_EQ(outcome.exit_code, kExitInternal) << outcome.output;
  EXPECT_NE(outcome.output.find("rank 1 was ended by signal 9"), std::string::npos) << outcome.output;
}

TEST(Ranks, ADryRunShowsThemAndStartsNone) {
  const std::string recipes = in_repository("recipes/").string();
  Outcome outcome = run_program("train --dry-run --rank 37 -c " + recipes + "llama3.1-405b.yaml");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("rank             37 of 432: tensor 5 of 8")) << outcome.output;
  outcome = run_program("train --dry-run --nproc 4 -c " + recipes + "gpt3-125m.yaml");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("layout           4 ranks"), std::string::npos) << outcome.output;
  const TempDir folder;
  outcome = run_program("train --dry-run --rank 37 --draw pictures -c " + recipes + "llama3.1-405b.yaml",
                        folder.path().string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* picture : {"mesh.svg", "schedule.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(folder / "pictures" / picture)) << picture;
  }
  EXPECT_EQ(run_program("train --rank 1").exit_code, 2);
  EXPECT_EQ(run_program("train --draw pictures").exit_code, 2);
}

TEST(Ranks, TheConfigMustBeForThoseThatWereStarted) {
  const std::string tiny =
      "train trainer.accelerator=cpu model.num_layers=1 model.hidden_size=8 model.data.data_impl=mock ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"--nproc 2 trainer.devices=3",
       "the config is for 3 ranks (trainer.devices 3 x trainer.num_nodes 1), and 2 were"},
      {"--nproc 3 model.global_batch_size=4", "a global batch of 4 is not a multiple of micro batch 1 x data 3"},
      {"trainer.devices=2", "and 1 was started"},
  };
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = run_program(tiny + "model.num_attention_heads=2 " + arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
    EXPECT_EQ(outcome.output.find("[0]"), std::string::npos) << "no rank need start\n" << outcome.output;
  }
}

}  // namespace
}  // namespace megalith::cli::testing
