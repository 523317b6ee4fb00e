#include "resilience/monitor/node.h"

#include <gtest/gtest.h>

#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

class ANode : public ::testing::Test {
 protected:
  ANode() {
    make_directory(run_);
    folders_.make();
  }
  Node node() const { return Node({.run_directory = run_, .run = "run-1", .node = "node0", .folders = folders_}); }
  Roster roster() const {
    return {.run = "run-1",
            .term = 1,
            .generation = 1,
            .world_size = 1,
            .ranks_per_node = 1,
            .nodes = {{.node = "node0", .index = 0, .address = "127.0.0.1"}},
            .config = "exp_manager: {checkpoint_callback_params: {memory_dirpath: none}}",
            .reason = "start",
            .store_node = "node0"};
  }
  void claim(const Roster& roster) const {
    DiskControlDirectory control(run_);
    EXPECT_EQ(claim_roster(control, roster), Claim::taken);
  }

  megalith::testing::TempDir dir_;
  std::filesystem::path run_ = dir_.path() / "run";
  NodeFolders folders_{.disk = dir_.path() / "disk", .memory = dir_.path() / "memory"};
};

TEST(Overrides, AreKeysAndValuesAlone) {
  check_overrides({"trainer.max_steps=5", "model.data.data_prefix=[1.0,data/my]"});
  for (const char* words : {"--resume-with-other-data", "-c", "-c=/etc/passwd", "trainer.max_steps", ""})
    expect_error(ErrorKind::user, {"key=value"}, [&] { check_overrides({words}); });
}

TEST_F(ANode, HoldsNothingBeforeThereIsARun) {
  Node node = this->node();
  EXPECT_TRUE(node.holdings().empty());
  EXPECT_EQ(node.holder_place().port, 0);
  EXPECT_EQ(node.newest_term(), 0);
  EXPECT_FALSE(node.newest_roster());
}

TEST_F(ANode, SaysWhetherItCanTrain) {
  Node node = this->node();
  std::string evidence;
  EXPECT_EQ(node.check(evidence), CheckOutcome::ok) << evidence;
  std::filesystem::remove_all(folders_.disk);
  EXPECT_EQ(node.check(evidence), CheckOutcome::failed);
  expect_parts(evidence, {folders_.disk.string()});
}

// Whoever can write a roster can still not make a node do more than train.
TEST_F(ANode, RefusesWhatARosterMayNotSay) {
  for (const char* config : {"resilience: {failpoints: ['train.step=exit']}", "no: {such: key}", "[broken"}) {
    Roster bad = roster();
    bad.config = config;
    const megalith::testing::TempDir other;
    run_ = other.path();
    claim(bad);
    error_of(ErrorKind::user, [&] { node().holdings(); });
  }
  run_ = dir_.path() / "run";
  Roster bad = roster();
  bad.overrides = {"--resume-with-other-data"};
  claim(bad);
  expect_error(ErrorKind::user, {"--resume-with-other-data"}, [&] { node().holdings(); });
}

}  // namespace
}  // namespace megalith::resilience
