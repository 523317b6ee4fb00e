#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/nodes/part_server.h"
#include "checkpoint/nodes/remote_holders.h"
#include "core/run_folders.h"
#include "expect_error.h"
#include "temp_dir.h"
#include "train/run/rosters.h"
#include "train/run/tiers.h"
#include "train/tiny_run.h"

namespace megalith::train::testing {
namespace {

namespace fs = std::filesystem;
using config::GenerationStart;
using ::megalith::testing::TempDir;

constexpr const char* kRunId = "0123456789abcdef";
constexpr int64_t kSteps = 20;
const std::string kCallback = "exp_manager.checkpoint_callback_params.";

// Generations of one run, as a monitor starts them.
class Fleet : public ::testing::Test {
 protected:
  config::Run run(std::vector<std::string> overrides = {}) const {
    overrides.push_back(kCallback + "memory_dirpath=" + (directory_ / "%n/memory").string());
    return tiny_run(kTinyGpt, directory_ / "run", overrides);
  }

  // The next generation, on this node, from this step.
  Summary start(int64_t from_step, const std::vector<std::string>& overrides = {}, const std::string& node = "a",
                const fs::path& holders = {}) {
    const int64_t generation = std::ssize(generations_) + 1;
    generations_.push_back({generation, from_step});
    make_directory(directory_ / "run" / kControlFolder);
    replace_file(directory_ / "run" / kControlFolder / fmt::format("roster-{:06}.json", generation), "");
    const config::FleetEnvironment fleet{
        .run_id = kRunId, .node = node, .generations = generations_, .holders_file = holders};
    return train_quietly(run(overrides), {.fleet = fleet});
  }

  std::string log() const {
    std::ifstream file(directory_ / "run/nemo_log_globalrank-0_localrank-0.txt");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path step(int64_t number) const { return directory_ / fmt::format("run/checkpoints/step-{:08}", number); }

  std::string undisturbed() const {
    train_quietly(tiny_run(kTinyGpt, directory_ / "undisturbed"));
    return final_state(directory_ / "undisturbed", kSteps);
  }

  TempDir directory_;
  std::vector<GenerationStart> generations_;
};

TEST_F(Fleet, TheRostersGenerationIsTheOnlyOne) {
  start(GenerationStart::kAnew, {"resilience.failpoints=[train.step=sigterm@5]"});
  EXPECT_EQ(start(5).first_step, 5);
  EXPECT_TRUE(fs::exists(step(20) / "shard-g2-r00000.safetensors"));
  EXPECT_FALSE(fs::exists(directory_ / "run/.megalith.starts"));
  std::ifstream events(directory_ / "run/events.jsonl");
  std::string last;
  for (std::string line; std::getline(events, line);) last = line;
  EXPECT_NE(last.find("\"generation\":2"), std::string::npos) << last;
  EXPECT_NE(last.find(kRunId), std::string::npos) << last;
  EXPECT_TRUE(final_state(directory_ / "run", kSteps) == undisturbed());
}

TEST_F(Fleet, GoesBackToTheStepThatIsNamed) {
  const std::string often = kCallback + "every_n_train_steps=5";
  start(GenerationStart::kAnew, {often, kCallback + "save_top_k=-1", "resilience.failpoints=[train.step=sigterm@12]"});
  EXPECT_TRUE(fs::exists(step(12)));
  EXPECT_EQ(start(5, {often}).first_step, 5);
  EXPECT_NE(log().find("given up: " + step(12).string()), std::string::npos);
  EXPECT_NE(log().find("given up: " + step(10).string()), std::string::npos);
  EXPECT_TRUE(fs::exists(step(20) / "shard-g2-r00000.safetensors"));
  EXPECT_FALSE(fs::exists(step(12))) << "it is of the history that was given up";
  EXPECT_TRUE(final_state(directory_ / "run", kSteps) == undisturbed());
}

TEST_F(Fleet, AStepThatIsNotThereEndsTheGenerationBeforeItsFirstStep) {
  start(GenerationStart::kAnew, {"resilience.failpoints=[train.step=sigterm@5]"});
  const std::string message = error_of(ErrorKind::io, [&] { start(7); });
  expect_parts(message, {"cannot go on from step 7: "});
  EXPECT_TRUE(fs::exists(step(5))) << "nothing is set aside for it";
  fs::resize_file(step(5) / "shard-g1-r00000.safetensors", 100);
  const std::string damaged = error_of(ErrorKind::io, [&] { start(5); });
  expect_parts(damaged, {"cannot go on from step 5: "});
}

TEST_F(Fleet, AStepThatIsDamagedIsNamed) {
  start(GenerationStart::kAnew, {"resilience.failpoints=[train.step=sigterm@5]"});
  const fs::path shard = step(5) / "shard-g1-r00000.safetensors";
  const auto size = fs::file_size(shard);
  fs::resize_file(shard, size - 1);
  fs::resize_file(shard, size);
  const std::string message = error_of(ErrorKind::io, [&] { start(5); });
  expect_parts(message, {"cannot go on from step 5: ", "is damaged"});
}

TEST_F(Fleet, AGenerationThatWasOvertakenCommitsNothing) {
  make_directory(directory_ / "run" / kControlFolder);
  replace_file(directory_ / "run" / kControlFolder / "roster-000009.json", "");
  expect_error(ErrorKind::io, {"generation 9 has taken over", "generation 1"}, [&] { start(GenerationStart::kAnew); });
  EXPECT_FALSE(fs::exists(directory_ / "run/checkpoints"));
}

// Node "a" has been dropped, and its monitor serves what it holds: node "b", which has never had anything, goes on.
TEST_F(Fleet, ANodeGoesOnFromWhatAnotherHoldsThatTrainsNoMore) {
  const std::vector<std::string> local{kCallback + "local_every_n_train_steps=1",
                                       kCallback + "local_dirpath=" + (directory_ / "%n/disk").string()};
  std::vector<std::string> killed = local;
  killed.emplace_back("resilience.failpoints=[checkpoint.before_manifest=io,train.step=sigterm@5]");
  EXPECT_THROW(start(GenerationStart::kAnew, killed), Error);
  const Tiers of_a = tiers_of(run(local), "a");
  EXPECT_NE(of_a.local.string().find("/a/disk/"), std::string::npos);
  checkpoint::PartServer server(of_a.on_node(), kRunId, "127.0.0.1");
  server.offer();
  const std::vector<checkpoint::HeldSave> held = checkpoint::saves_on(of_a.on_node(), kRunId);
  ASSERT_FALSE(held.empty());
  EXPECT_EQ(held.front().step, 5);
  EXPECT_EQ(held.front().generation, 1);
  checkpoint::write_holders(directory_ / "holders", {{"a", server.place()}});
  EXPECT_EQ(start(5, local, "b", directory_ / "holders").first_step, 5);
  EXPECT_TRUE(final_state(directory_ / "run", kSteps) == undisturbed());
}

// A node that is lost while an image is overwritten costs no step: the one before is still there on the others.
TEST_F(Fleet, MemoryKeepsTheStepBeforeUntilTheNextIsWhole) {
  const std::vector<std::string> local{kCallback + "local_every_n_train_steps=1"};
  std::vector<std::string> killed = local;
  killed.emplace_back("resilience.failpoints=[train.step=io@5]");
  EXPECT_THROW(start(GenerationStart::kAnew, killed), Error);
  const checkpoint::MemoryParts memory(tiers_of(run(), "a").memory);
  EXPECT_EQ(memory.steps_of(0, kRunId), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(start(3, local).first_step, 3);
  EXPECT_NE(log().find("given up: part 0 of step 4 in " + memory.directory().string()), std::string::npos);
  EXPECT_TRUE(final_state(directory_ / "run", kSteps) == undisturbed());
  EXPECT_EQ(memory.steps_of(0, kRunId), (std::vector<int64_t>{-1, -1})) << "the run has ended well";
}

TEST_F(Fleet, AStartSparesTheImageThatItGoesOnFrom) {
  const std::vector<std::string> local{kCallback + "local_every_n_train_steps=1"};
  std::vector<std::string> killed = local;
  killed.emplace_back("resilience.failpoints=[train.step=io@2]");
  EXPECT_THROW(start(GenerationStart::kAnew, killed), Error);
  const checkpoint::MemoryParts memory(tiers_of(run(), "a").memory);
  EXPECT_EQ(memory.steps_of(0, kRunId), (std::vector<int64_t>{1, -1}));
  EXPECT_THROW(start(1, killed), Error);
  EXPECT_EQ(memory.steps_of(0, kRunId), (std::vector<int64_t>{1, 2})) << "until it has a newer one";
}

TEST_F(Fleet, WithoutSavesOnTheNodeOneImageIsEnough) {
  EXPECT_THROW(
      start(GenerationStart::kAnew, {kCallback + "every_n_train_steps=1", "resilience.failpoints=[train.step=io@5]"}),
      Error);
  EXPECT_EQ(checkpoint::MemoryParts(tiers_of(run(), "a").memory).steps_of(0, kRunId), (std::vector<int64_t>{4, -1}));
}

TEST_F(Fleet, AFileOfHoldersThatOthersCanReadIsRefused) {
  checkpoint::write_holders(directory_ / "holders", {});
  fs::permissions(directory_ / "holders", fs::perms::others_read, fs::perm_options::add);
  expect_error(ErrorKind::user, {"holders", "0600"},
               [&] { start(GenerationStart::kAnew, {}, "a", directory_ / "holders"); });
}

}  // namespace
}  // namespace megalith::train::testing
