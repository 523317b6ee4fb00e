#include "launch/ranks/self.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "launch/environment.h"

namespace megalith::launch {
namespace {

TEST(LaunchPlace, OneMachineUnlessALauncherSaysOtherwise) {
  EXPECT_EQ(launch_place(lookup_in({})).machines, 1);
  const LaunchPlace place = launch_place(lookup_in(
      {{"JOB_COMPLETION_INDEX", "2"}, {"NNODES", "4"}, {"MASTER_ADDR", "job-0.job"}, {"MASTER_PORT", "6002"}}));
  EXPECT_EQ(place.machine, 2);
  EXPECT_EQ(place.machines, 4);
  EXPECT_EQ(place.master_address, "job-0.job");
  EXPECT_EQ(place.master_port, 6002);
  expect_parts(user_error_of([] {
                 launch_place(lookup_in({{"RANK", "1"}, {"LOCAL_RANK", "1"}, {"WORLD_SIZE", "2"}}));
               }),
               {"--nproc", "torchrun"});
}

TEST(WithoutNproc, BothSpellingsGo) {
  const std::vector<std::string> rest = {"megalith", "train", "-c", "a.yaml", "b=1"};
  EXPECT_EQ(without_nproc({"megalith", "train", "--nproc", "4", "-c", "a.yaml", "b=1"}), rest);
  EXPECT_EQ(without_nproc({"megalith", "train", "-c", "a.yaml", "--nproc=4", "b=1"}), rest);
}

}  // namespace
}  // namespace megalith::launch
