#include "resilience/record/journal.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

const Fact kFault{.kind = FactKind::fault,
                  .time = 12.375,
                  .node = "a \"quoted\" node",
                  .ranks = {0, 3, 17},
                  .generation = 4,
                  .step = 120,
                  .number = 121,
                  .seconds = 0.1,
                  .symptom = Symptom::rank_stuck,
                  .evidence = "rank 3: section step\n\tno beat for 11.0 s, \xc3\xa4",
                  .text = "text",
                  .digest = "0123456789abcdef",
                  .order = "start"};

std::string journal_text(const std::vector<Fact>& facts, const std::string& run = "run-1") {
  const megalith::testing::TempDir folder;
  DiskControlDirectory directory(folder.path());
  Journal journal = *Journal::claim(directory, 1, {.run = run, .boot_id = "boot"});
  for (const Fact& fact : facts) journal.append(fact, {.wall = 1.7e9, .monotonic = 5.5});
  journal.sync();
  return *directory.read("term-000001.jsonl");
}

TEST(Journal, FactsComeBackAsTheyWere) {
  const std::vector<Fact> facts = {kFault, Fact{}, {.kind = FactKind::tick, .time = 1e-3}};
  const std::vector<JournalEntry> entries = parse_journal(journal_text(facts), "run-1", "here");
  ASSERT_EQ(entries.size(), facts.size());
  for (size_t i = 0; i < facts.size(); ++i) EXPECT_EQ(entries[i].fact, facts[i]) << i;
  EXPECT_EQ(entries[0].boot_id, "boot");
  EXPECT_EQ(entries[0].when.monotonic, 5.5);
}

TEST(Journal, EveryKindOfFactHasAName) {
  for (int kind = 0; kind < kFactKinds; ++kind) {
    EXPECT_EQ(fact_kind_named(name_of(FactKind(kind))), FactKind(kind)) << kind;
  }
  for (int symptom = 0; symptom < kSymptoms; ++symptom) {
    EXPECT_EQ(symptom_named(name_of(Symptom(symptom))), Symptom(symptom)) << symptom;
  }
}

TEST(Journal, ATermHasOneWriter) {
  const megalith::testing::TempDir folder;
  DiskControlDirectory directory(folder.path());
  EXPECT_EQ(newest_term(directory), 0);
  EXPECT_TRUE(Journal::claim(directory, 1, {}));
  EXPECT_FALSE(Journal::claim(directory, 1, {}));
  EXPECT_EQ(newest_term(directory), 1);
}

TEST(Journal, OnlyTheLastLineMayBeTorn) {
  const std::string text = journal_text({kFault, kFault});
  const size_t first = text.find('\n') + 1;
  for (size_t size = first; size < text.size() - 1; ++size) {
    EXPECT_EQ(parse_journal(text.substr(0, size), "run-1", "here").size(), 1U) << size;
  }
  std::string damaged = text;
  damaged[10] = 'x';
  expect_error(ErrorKind::data, {"term-000001.jsonl", "line 1 is damaged"},
               [&] { parse_journal(damaged, "run-1", "term-000001.jsonl"); });
}

TEST(Journal, WhatIsForeignMissingOrNewerIsRefused) {
  const std::string text = journal_text({kFault, kFault});
  expect_error(ErrorKind::data, {"here", "belongs to run 'run-1', not to 'other'"},
               [&] { parse_journal(text, "other", "here"); });
  expect_error(ErrorKind::data, {"here", "lines are missing"},
               [&] { parse_journal(text.substr(text.find('\n') + 1), "run-1", "here"); });
  const megalith::testing::TempDir folder;
  DiskControlDirectory directory(folder.path());
  expect_error(ErrorKind::data, {"term-000007.jsonl", "missing"}, [&] { read_journal(directory, 7, "run-1"); });
}

}  // namespace
}  // namespace megalith::resilience
