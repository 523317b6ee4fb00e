#include "train/run/run_directory.h"

#include <gtest/gtest.h>

#include "core/run_folders.h"
#include "expect_error.h"
#include "temp_dir.h"
#include "train/run/rosters.h"

namespace megalith::train {
namespace {

using ::megalith::testing::TempDir;

class RunDirectoryTest : public ::testing::Test {
 protected:
  RunDirectoryTest() { run_.exp_manager.explicit_log_dir = path_.string(); }

  void make_roster(int64_t generation) const {
    make_directory(path_ / kControlFolder);
    replace_file(path_ / kControlFolder / fmt::format("roster-{:06}.json", generation), "");
  }
  config::FleetEnvironment fleet(int64_t generation) const {
    return {.run_id = "0123456789abcdef", .node = "a", .generations = {{generation, 20}}, .holders_file = {}};
  }

  TempDir directory_;
  std::filesystem::path path_ = directory_ / "run";
  config::Run run_;
};

TEST_F(RunDirectoryTest, UnderASupervisorTheRosterIsTheClaim) {
  make_roster(4);
  const RunDirectory frozen = RunDirectory::open(run_, fleet(4));
  const RunDirectory next = RunDirectory::open(run_, fleet(4));
  EXPECT_EQ(next.identity(), (RunIdentity{.id = "0123456789abcdef", .generation = 4, .has_roster = true}));
  EXPECT_EQ(next.identity().start(), 4) << "in shards' names as in the roster";
  EXPECT_EQ(RunIdentity::from_text(next.identity().to_text()), next.identity());
  EXPECT_FALSE(std::filesystem::exists(starts_file(run_))) << "starts are not counted";
}

TEST_F(RunDirectoryTest, AGenerationThatIsOverDoesNotBegin) {
  make_roster(5);
  expect_error(ErrorKind::io, {"generation 5 has taken over", "generation 4"},
               [&] { RunDirectory::open(run_, fleet(4)); });
}

TEST_F(RunDirectoryTest, IsRefusedToAStartWithoutTheSupervisor) {
  make_roster(4);
  expect_error(ErrorKind::user, {"under a supervisor", "megalith supervise", "control"},
               [&] { RunDirectory::open(run_); });
  std::filesystem::remove_all(path_ / kControlFolder);
  EXPECT_NO_THROW(RunDirectory::open(run_));
}

TEST_F(RunDirectoryTest, SupervisorsThatStartNothingAreNoStarts) {
  claim_run(run_);
  make_roster(3);
  for (int supervisor = 0; supervisor < 3; ++supervisor) EXPECT_EQ(claim_run(run_).identity.start(), 4);
  std::filesystem::remove_all(path_ / kControlFolder);
  replace_file(path_ / "hparams.yaml", "");
  run_.exp_manager.resume_if_exists = true;
  EXPECT_EQ(RunDirectory::open(run_).identity().start(), 5) << "none that a roster may have had";
}

TEST_F(RunDirectoryTest, ASupervisorClaimsIt) {
  std::string id;
  {
    const ClaimedRun claimed = claim_run(run_);
    id = claimed.identity.id;
    EXPECT_EQ(claimed.identity.start(), 1) << "its first generation";
    expect_error(ErrorKind::user, {"in use by"}, [&] { claim_run(run_); });
    expect_error(ErrorKind::user, {"in use by"}, [&] { RunDirectory::open(run_); });
    make_roster(1);
  }
  const ClaimedRun again = claim_run(run_);
  EXPECT_EQ(again.identity.id, id) << "its successor";
}

TEST_F(RunDirectoryTest, ASupervisorGoesOnWithARunThatHadNone) {
  run_.exp_manager.resume_if_exists = true;
  { const RunDirectory first = RunDirectory::open(run_); }
  replace_file(path_ / "hparams.yaml", "");
  const std::string id = RunDirectory::open(run_).identity().id;
  const ClaimedRun claimed = claim_run(run_);
  EXPECT_EQ(claimed.identity.id, id);
  EXPECT_EQ(claimed.identity.start(), 3);
}

TEST_F(RunDirectoryTest, ASupervisorRefusesWhatIsNotItsOwn) {
  make_directory(path_);
  replace_file(path_ / "thesis.txt", "");
  expect_error(ErrorKind::user, {"files that are not a run's"}, [&] { claim_run(run_); });
  replace_file(path_ / "hparams.yaml", "");
  expect_error(ErrorKind::user, {"already holds a run", "resume_if_exists"}, [&] { claim_run(run_); });
}

}  // namespace
}  // namespace megalith::train
