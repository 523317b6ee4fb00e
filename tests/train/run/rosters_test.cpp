#include "train/run/rosters.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/run_folders.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::train {
namespace {

using ::megalith::testing::TempDir;

TEST(Rosters, ARunWithoutASupervisorHasNone) {
  const TempDir run;
  EXPECT_EQ(newest_roster(run.path()), 0);
  EXPECT_EQ(newest_roster(run / "not there"), 0);
  EXPECT_NO_THROW(refuse_superseded(run.path(), 1));
}

TEST(Rosters, TheNewestIsTheOneThatCountsHowEverDamaged) {
  const TempDir run;
  make_directory(run / kControlFolder);
  for (const char* name : {"roster-000002.json", "roster-000012.json", "roster-000003.json", "term-000099.jsonl",
                           "roster-000013.json.part", "roster-x.json", "roster--1.json", "roster-.json", "roster-5"})
    replace_file(run / kControlFolder / name, "");
  EXPECT_EQ(newest_roster(run.path()), 12);
  EXPECT_NO_THROW(refuse_superseded(run.path(), 12));
  expect_error(ErrorKind::io, {"generation 12 has taken over", "generation 11"},
               [&] { refuse_superseded(run.path(), 11); });
}

TEST(Rosters, WhereTheFolderCannotBeReadTheFenceStands) {
  const TempDir run;
  std::filesystem::create_symlink("control", run / kControlFolder);
  expect_error(ErrorKind::io, {"cannot list", "control"}, [&] { refuse_superseded(run.path(), 1); });
}

}  // namespace
}  // namespace megalith::train
