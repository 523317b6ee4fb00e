#include "resilience/record/roster.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash/digest.h"
#include "expect_error.h"
#include "resilience/simulation/fake_directory.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {
using testing::FakeDirectory;

Roster example() {
  return {.run = "run-1",
          .term = 3,
          .generation = 12,
          .world_size = 4,
          .ranks_per_node = 2,
          .nodes = {{.node = "a", .index = 0, .address = "10.0.0.1"}, {.node = "c", .index = 1, .address = "10.0.0.3"}},
          .spares = {"d"},
          .out = {{.node = "b", .reason = "node b was silent\nfor 5 s, \"gone\""}},
          .config = "name: tiny\ntrainer: {max_steps: 10}\n",
          .overrides = {"trainer.max_steps=20"},
          .from_step = 7,
          .reason = "node_gone: b",
          .budgets = {.in_job_restarts = 1, .workload_restarts = 0, .starts = 2},
          .store_node = "a"};
}

// With a digest that fits, so that what comes after it is looked at.
std::string resealed(std::string text, const std::string& from, const std::string& to) {
  const std::string key = ",\"digest\":\"";
  std::string body = text.substr(0, text.find(key));
  body.replace(body.find(from), from.size(), to);
  return body + key + megalith::digest_of(std::string_view(body)) + "\"}\n";
}

void expect_refused(const std::string& text, const std::vector<std::string>& parts) {
  expect_error(ErrorKind::data, parts, [&] { parse_roster(text, "control/roster-000012.json"); });
}

TEST(Roster, TextAndBack) {
  const Roster roster = example();
  EXPECT_EQ(parse_roster(to_text(roster), "here"), roster);
  EXPECT_NE(to_text(roster).find(digest_of(roster)), std::string::npos);
  EXPECT_EQ(roster.node_of(3).node, "c");
  EXPECT_EQ(roster.node("d"), nullptr);
}

TEST(Roster, EveryTornTextIsRefused) {
  const std::string text = to_text(example());
  for (size_t size = 0; size < text.size(); ++size)
    expect_refused(text.substr(0, size), {"roster-000012.json", "torn"});
}

TEST(Roster, EveryFlippedByteIsRefused) {
  const std::string text = to_text(example());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(parse_roster(damaged, "here"), Error) << at;
  }
}

TEST(Roster, WhatDoesNotFitTogetherIsRefused) {
  const std::string text = to_text(example());
  expect_refused(resealed(text, "\"version\":1", "\"version\":2"), {"version 2", "use a newer megalith"});
  expect_refused(resealed(text, "\"world_size\":4", "\"world_size\":6"), {"2 nodes of 2 ranks are not 6 ranks"});
  expect_refused(resealed(text, "\"node\":\"c\"", "\"node\":\"a\""), {"'a'", "stands twice"});
  expect_refused(resealed(text, "\"index\":1", "\"index\":3"), {"has index 3, not 1"});
  expect_refused(resealed(text, "\"store_node\":\"a\"", "\"store_node\":\"d\""), {"'d' has no ranks"});
  expect_refused(resealed(text, "\"term\":3", "\"secret\":1,\"term\":3"), {"unknown field 'secret'"});
}

TEST(Roster, OneGenerationHasOneRoster) {
  FakeDirectory directory;
  Roster roster = example();
  EXPECT_EQ(claim_roster(directory, roster), Claim::taken);
  EXPECT_EQ(claim_roster(directory, roster), Claim::taken)
      << "the same, since it is not known whether the first try arrived";
  roster.term = 4;
  EXPECT_EQ(claim_roster(directory, roster), Claim::conflict);
  EXPECT_EQ(read_newest_roster(directory, "run-1")->term, 3);
}

TEST(Roster, TheNewestOfARunDirectory) {
  const megalith::testing::TempDir run;
  DiskControlDirectory directory(run.path());
  EXPECT_FALSE(read_newest_roster(directory, "run-1"));
  Roster roster = example();
  claim_roster(directory, roster);
  roster.generation = 13;
  EXPECT_EQ(claim_roster(directory, roster), Claim::taken);
  EXPECT_EQ(newest_generation(directory), 13);
  EXPECT_EQ(read_newest_roster(directory, "run-1"), roster);
  expect_error(ErrorKind::data, {"roster-000013.json", "belongs to run 'run-1', not to 'run-2'"},
               [&] { read_newest_roster(directory, "run-2"); });
  replace_file(run / "control/roster-000014.json", to_text(roster));
  expect_error(ErrorKind::data, {"roster-000014.json", "generation 13"},
               [&] { read_newest_roster(directory, "run-1"); });
}

}  // namespace
}  // namespace megalith::resilience
