#include "train/run/session.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "expect_error.h"
#include "observe/logs/event_line.h"
#include "temp_dir.h"
#include "train/tiny_run.h"

namespace megalith::train::testing {
namespace {

using ::megalith::testing::TempDir;

TEST(Session, LeavesTheFilesThatPeopleLookFor) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run"));
  for (const char* name :
       {"hparams.yaml", "dllogger/rank-0/dllogger.json", "nemo_log_globalrank-0_localrank-0.txt", "nemo_error_logs.txt",
        "events.jsonl", "checkpoints/step-00000020/manifest.json", "report.html"}) {
    EXPECT_TRUE(std::filesystem::exists(dir / "run" / name)) << name;
  }
}

TEST(Session, DlloggerHasOneRecordPerStepWithNemosKeys) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run"));
  std::ifstream file(dir / "run/dllogger/rank-0/dllogger.json");
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(nlohmann::json::parse(line.substr(5))["step"], "PARAMETER");
  int64_t step = 0;
  while (std::getline(file, line)) {
    const nlohmann::json record = nlohmann::json::parse(line.substr(5));
    if (!record["data"].contains("reduced_train_loss")) continue;
    EXPECT_EQ(record["step"], step);
    EXPECT_EQ(record["data"]["consumed_samples"], 4.0 * static_cast<double>(step + 1));
    for (const char* key :
         {"lr", "global_step", "train_backward_timing in s", "grad_norm", "train_step_timing in s", "epoch"}) {
      EXPECT_TRUE(record["data"].contains(key)) << key;
    }
    ++step;
  }
  EXPECT_EQ(step, 20);
}

TEST(Session, EventsTellTheStory) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", {"resilience.failpoints=[train.step=sigterm@5]"}));
  train_quietly(tiny_run(kTinyGpt, dir / "run"));
  std::ifstream file(dir / "run/events.jsonl");
  std::vector<std::string> story;
  std::vector<observe::JsonMember> scratch;
  for (std::string line; std::getline(file, line);) {
    const auto logged = observe::parse_event_line(line, scratch);
    ASSERT_TRUE(logged.has_value()) << line;
    if (logged->event == "metrics" || logged->phase == Phase::begin) continue;
    story.push_back(fmt::format("{}:{}@{}", logged->generation, logged->event, logged->step));
  }
  EXPECT_EQ(story, (std::vector<std::string>{"0:job_started@0", "0:checkpoint_loaded@0", "0:start_laps@0",
                                             "0:checkpoint_saved@5", "0:checkpoint_save@5", "0:job_terminated@5",
                                             "1:job_started@5", "1:checkpoint_load@5", "1:checkpoint_loaded@5",
                                             "1:start_laps@5", "1:validation@10", "1:validation@20",
                                             "1:checkpoint_saved@20", "1:checkpoint_save@20", "1:job_terminated@20"}));
}

TEST(Session, MetricsEventsHoldTheNumbersOfAStep) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run"));
  std::ifstream file(dir / "run/events.jsonl");
  int64_t steps = 0;
  std::vector<observe::JsonMember> scratch;
  for (std::string line; std::getline(file, line);) {
    const auto logged = observe::parse_event_line(line, scratch);
    ASSERT_TRUE(logged.has_value()) << line;
    if (logged->event != "metrics" || !logged->number("reduced_train_loss")) continue;
    for (const char* key : {"lr", "grad_norm", "step_time", "train_step_timing in s", "tokens_per_second", "tflops",
                            "tflops_per_rank", "data_wait", "checkpoint_stall"}) {
      EXPECT_TRUE(logged->number(key).has_value()) << key;
    }
    // Every arena once, and nothing that a rank alone on a CPU cannot know.
    EXPECT_EQ(logged->number("memory.weights").has_value(), steps == 0);
    for (const char* key : {"mfu", "floor_fraction", "communication_exposed", "slowest_rank"}) {
      EXPECT_FALSE(logged->number(key).has_value()) << key;
    }
    ++steps;
  }
  EXPECT_EQ(steps, 20);
}

TEST(Session, SinksAreChosenByConfig) {
  const TempDir dir;
  const auto has_tensorboard_file = [&] {
    for (const auto& entry : std::filesystem::directory_iterator(dir / "run")) {
      if (entry.path().filename().string().starts_with("events.out.tfevents.")) return true;
    }
    return false;
  };
  train_quietly(
      tiny_run(kTinyGpt, dir / "run",
               {"trainer.max_steps=2", "trainer.enable_progress_bar=false", "exp_manager.create_events_logger=false",
                "exp_manager.create_dllogger_logger=false", "exp_manager.create_tensorboard_logger=false"}));
  EXPECT_FALSE(std::filesystem::exists(dir / "run/events.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(dir / "run/dllogger"));
  EXPECT_FALSE(has_tensorboard_file());
  train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=4"}));
  EXPECT_TRUE(std::filesystem::exists(dir / "run/events.jsonl"));
  EXPECT_TRUE(has_tensorboard_file());
}

TEST(Session, RefusesToOverwriteARun) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=2"}));
  const std::string before = final_state(dir / "run", 2);
  const std::string message = error_of(
      ErrorKind::user, [&] { train_quietly(tiny_run(kTinyGpt, dir / "run", {"exp_manager.resume_if_exists=false"})); });
  EXPECT_NE(message.find("already holds a run"), std::string::npos) << message;
  EXPECT_EQ(final_state(dir / "run", 2), before);
}

TEST(Session, RefusesADirectoryOfSomethingElse) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "photos");
  std::ofstream(dir / "photos/cat.jpg") << "meow";
  error_of(ErrorKind::user, [&] { train_quietly(tiny_run(kTinyGpt, dir / "photos")); });
  std::ofstream(dir / "file") << "not a directory";
  error_of(ErrorKind::user, [&] { train_quietly(tiny_run(kTinyGpt, dir / "file")); });
}

TEST(Session, RefusesWhatItCannotRun) {
  const TempDir dir;
  error_of(ErrorKind::user, [&] { train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.devices=2"})); });
  error_of(ErrorKind::user, [&] {
    train_quietly(
        tiny_run(kTinyGpt, dir / "run", {"model.data.data_impl=mmap", "model.data.data_prefix=[/nowhere/text]"}));
  });
  EXPECT_FALSE(std::filesystem::exists(dir / "run"));
}

TEST(Session, RefusesToContinueAsAnotherModel) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=2"}));
  const std::string hparams = read_text(dir / "run/hparams.yaml");
  for (const char* change :
       {"model.hidden_size=32", "model.num_layers=3", "model.num_layers=1", "model.num_attention_heads=4"}) {
    const std::string message =
        error_of(ErrorKind::user, [&] { train_quietly(tiny_run(kTinyGpt, dir / "run", {change})); });
    EXPECT_NE(message.find("does not fit this config"), std::string::npos) << message;
  }
  EXPECT_EQ(read_text(dir / "run/hparams.yaml"), hparams);
}

TEST(Session, PassesOverADamagedCheckpointAndNamesIt) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run",
                         {"exp_manager.checkpoint_callback_params.every_n_train_steps=5",
                          "exp_manager.checkpoint_callback_params.save_top_k=-1", "trainer.max_steps=10"}));
  const auto shard = dir / "run/checkpoints/step-00000010/shard-g1-r00000.safetensors";
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(5000);
    file.put('!');
  }
  const Summary resumed = train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=12"}));
  EXPECT_EQ(resumed.first_step, 5);
  std::ifstream log(dir / "run/nemo_error_logs.txt");
  const std::string text((std::istreambuf_iterator<char>(log)), {});
  EXPECT_NE(text.find("step-00000010"), std::string::npos) << text;
}

TEST(Session, RefusesWhenEveryCheckpointIsDamaged) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=2"}));
  std::filesystem::resize_file(dir / "run/checkpoints/step-00000002/shard-g1-r00000.safetensors", 1000);
  const std::string message = error_of(ErrorKind::data, [&] { train_quietly(tiny_run(kTinyGpt, dir / "run")); });
  EXPECT_NE(message.find("step-00000002"), std::string::npos) << message;
}

// As a run that was killed in its first save leaves it.
TEST(Session, BeginsAnewWhereNoSaveWasEverFinished) {
  const TempDir dir;
  const auto run = tiny_run(kTinyGpt, dir / "run", {"trainer.max_steps=4"});
  train_quietly(run);
  const std::string whole = final_state(dir / "run", 4);
  std::filesystem::remove(dir / "run/checkpoints/step-00000004/manifest.json");
  std::filesystem::remove(dir / "run/checkpoints/latest_checkpointed_iteration.txt");
  EXPECT_EQ(train_quietly(run).first_step, 0);
  EXPECT_EQ(final_state(dir / "run", 4), whole);
  EXPECT_EQ(checkpoint::Store(dir / "run/checkpoints").open(4).manifest().state.extra.at("start"), "2");
}

TEST(Session, ACompleteRunStillRemovesWhatACrashLeftOfARemoval) {
  const TempDir dir;
  train_quietly(tiny_run(kTinyGpt, dir / "run"));
  const std::filesystem::path trash = dir / "run/checkpoints/trash-step-00000010-g1";
  std::filesystem::create_directory(trash);
  train_quietly(tiny_run(kTinyGpt, dir / "run"));
  EXPECT_FALSE(std::filesystem::exists(trash));
  EXPECT_TRUE(std::filesystem::exists(dir / "run/checkpoints/step-00000020/manifest.json"));
}

TEST(Session, AFailedSaveDoesNotEndTrainingAndTheLastOneMustSucceed) {
  const TempDir dir;
  const std::vector<std::string> often{"exp_manager.checkpoint_callback_params.every_n_train_steps=5",
                                       "trainer.max_steps=12"};
  std::vector<std::string> once = often;
  once.push_back("resilience.failpoints=[checkpoint.before_manifest=io@1]");
  EXPECT_EQ(train_quietly(tiny_run(kTinyGpt, dir / "once", once)).steps_done, 12);
  std::vector<std::string> always = often;
  always.push_back("resilience.failpoints=[checkpoint.before_manifest=io]");
  error_of(ErrorKind::io, [&] { train_quietly(tiny_run(kTinyGpt, dir / "always", always)); });
  // On the node it is safe, but a run that ends well takes that away.
  always.push_back("exp_manager.checkpoint_callback_params.local_every_n_train_steps=1");
  error_of(ErrorKind::io, [&] { train_quietly(tiny_run(kTinyGpt, dir / "local", always)); });
}

TEST(Session, NonFiniteGradientsStopOrSkipAndNameTheParameter) {
  const TempDir dir;
  const std::vector<std::string> explode{"model.optim.lr=1e30", "model.optim.sched.name=constant",
                                         "model.optim.sched.warmup_steps=0", "trainer.val_check_interval=0"};
  try {
    train_quietly(tiny_run(kTinyGpt, dir / "stop", explode));
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    ASSERT_NE(error.facts().parameter, "");
    expect_parts(error.what(), {"step ", "the gradient of " + error.facts().parameter});
    const std::string events = read_text(dir / "stop/events.jsonl");
    expect_parts(events, {R"("error":"non_finite")", fmt::format(R"("parameter":"{}")", error.facts().parameter)});
    EXPECT_EQ(events.find(R"("ranks")"), std::string::npos);
  }
  std::vector<std::string> skip = explode;
  skip.push_back("resilience.on_non_finite=skip");
  const Summary summary = train_quietly(tiny_run(kTinyGpt, dir / "skip", skip));
  EXPECT_EQ(summary.steps_done, 20);
  EXPECT_GT(summary.skipped_steps, 0);
}

TEST(Session, MaxTimeStopsAndSaves) {
  const TempDir dir;
  const Summary summary = train_quietly(
      tiny_run(kTinyGpt, dir / "run",
               {"trainer.max_steps=1000000", "trainer.max_time=00:00:00:01", "trainer.val_check_interval=0"}));
  EXPECT_EQ(summary.ending, Ending::stopped_early);
  EXPECT_EQ(summary.stop_reason, "trainer.max_time");
  EXPECT_TRUE(std::filesystem::exists(dir / "run/checkpoints" / fmt::format("step-{:08}", summary.steps_done)));
}

}  // namespace
}  // namespace megalith::train::testing
