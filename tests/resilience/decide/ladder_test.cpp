#include "resilience/decide/ladder.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "expect_error.h"
#include "resilience/settings.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

void expect_refused(const std::string& policy, const std::vector<std::string>& parts) {
  Ladder ladder;
  expect_error(ErrorKind::user, parts, [&] { ladder.replace_rows(policy, "policy.yaml"); });
}

TEST(Ladder, EverySymptomHasARow) {
  const Ladder ladder;
  for (int symptom = 1; symptom < kSymptoms; ++symptom) {
    EXPECT_FALSE(ladder.row(Symptom(symptom)).rungs.empty()) << name_of(Symptom(symptom));
  }
}

TEST(Ladder, APolicyReplacesRows) {
  Ladder ladder;
  ladder.replace_rows("rank_stuck: [hot_swap, give_up]", "policy.yaml");
  EXPECT_EQ(ladder.row(Symptom::rank_stuck).rungs, (std::vector<Rung>{Rung::hot_swap, Rung::give_up}));
  EXPECT_EQ(ladder.row(Symptom::rank_ended).rungs, Ladder().row(Symptom::rank_ended).rungs);
}

TEST(Ladder, SaysWhichRowsAreOthers) {
  Ladder ladder;
  EXPECT_TRUE(ladder.differences(Ladder()).empty());
  ladder.replace_rows("rank_stuck: [hot_swap, give_up]\nnode_gone: [hot_swap]", "policy.yaml");
  EXPECT_EQ(ladder.differences(Ladder()), std::vector<std::string>{"rank_stuck: [hot_swap, give_up]"});
}

TEST(Ladder, AWrongPolicyIsRefused) {
  expect_refused("all_wait: [give_up]\nrank_stuk: [hot_swap]",
                 {"policy.yaml:2", "'rank_stuk' is no symptom", "rank_stuck"});
  expect_refused("rank_stuck: [reboot]", {"policy.yaml", "rank_stuck", "'reboot'", "in_job_restart"});
  expect_refused("rank_stuck: [hot_swap, in_job_restart]", {"goes down from hot_swap to in_job_restart"});
  expect_refused("rank_stuck: []", {"rank_stuck has no way out", "list"});
  expect_refused("rank_stuck:", {"rank_stuck has no way out", "list"});
  expect_refused("rank_stuck: hot_swap", {"rank_stuck has no way out", "list"});
  expect_refused("rank_stuck: [[hot_swap]]", {"rank_stuck", "'a list'"});
  expect_refused("rank_stuck: [hot_swap]\nrank_stuck: [give_up]", {"policy.yaml:2", "rank_stuck", "twice"});
  expect_refused("node_gone: [in_job_restart]", {"node_gone has no way out", "cannot go on"});
  expect_refused("livelock: [in_job_restart, hot_swap]", {"livelock has no way out", "no node"});
  expect_refused("[", {"policy.yaml", "YAML"});
  expect_refused("", {"policy.yaml", "not a mapping"});
  expect_refused("hot_swap", {"policy.yaml", "not a mapping"});
}

TEST(Settings, OfAConfig) {
  const megalith::testing::TempDir folder;
  replace_file(folder / "policy.yaml", "rank_stuck: [give_up]");
  config::Run run;
  run.trainer.num_nodes = 3;
  run.supervision.max_in_job_restarts = 0;
  run.supervision.policy = folder / "policy.yaml";
  const Settings settings = settings_of(run);
  EXPECT_EQ(settings.nodes, 3);
  EXPECT_EQ(settings.max_in_job_restarts, 0);
  EXPECT_EQ(settings.ladder.row(Symptom::rank_stuck).rungs, std::vector<Rung>{Rung::give_up});
  run.supervision.policy = folder / "missing.yaml";
  expect_error(ErrorKind::user, {"resilience.policy", "missing.yaml"}, [&] { settings_of(run); });
}

TEST(Settings, TextAndBack) {
  Settings settings{.run = "run-1", .nodes = 4, .config = "a: 1\n", .overrides = {"b=2"}, .back_off = {1, 2.5}};
  settings.ladder.replace_rows("all_wait: [give_up]", "policy.yaml");
  EXPECT_EQ(parse_settings(to_text(settings), "here"), settings);
  expect_error(ErrorKind::data, {"here", "damaged"}, [] { parse_settings("{\"nodes\":1}", "here"); });
  expect_error(ErrorKind::data, {"here", "damaged"}, [] { parse_settings("{", "here"); });
  settings.fewer_nodes = {2, 2};
  expect_error(ErrorKind::data, {"here", "2, 2 of 4 nodes"}, [&] { parse_settings(to_text(settings), "here"); });
}

}  // namespace
}  // namespace megalith::resilience
