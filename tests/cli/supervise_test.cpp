#include <gtest/gtest.h>

#include "cli/run_program.h"
#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

const std::string kSmallGpt =
    " trainer.accelerator=cpu trainer.cpu_threads=1 trainer.max_steps=2 model.num_layers=2 model.hidden_size=32"
    " model.num_attention_heads=2 model.encoder_seq_length=16 model.global_batch_size=8 model.data.data_impl=mock"
    " exp_manager.explicit_log_dir=run";

class Supervise : public ::testing::Test {
 protected:
  void expect_refused(const std::string& arguments, const std::vector<std::string>& parts) const {
    SCOPED_TRACE(arguments);
    const Outcome outcome = run_program(arguments, folder_.path().string());
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    expect_parts(outcome.output, parts);
    EXPECT_LT(size_if_there(folder_ / "run" / "control"), 0);
  }

  megalith::testing::TempDir folder_;
};

TEST_F(Supervise, RefusesWhatIsNoFleet) {
  for (const char* fleet : {"4", "4x", "x2", "0x2", "2x0", "2x2x2", "-1x2", "twoxtwo", "9999x1"})
    expect_refused("supervise --local " + std::string(fleet) + kSmallGpt, {fleet, "nodes x ranks", "4x2"});
  expect_refused("supervise" + kSmallGpt, {"--local"});
}

TEST_F(Supervise, RefusesBeforeAnythingIsStarted) {
  expect_refused("supervise --local 2x2" + kSmallGpt + " model.tensor_model_parallel_size=3", {"tensor"});
  expect_refused("supervise --local 2x2" + kSmallGpt + " 'resilience.failpoints=[train.step=exit]'", {"--failpoints"});
  expect_refused("supervise --local 2x2" + kSmallGpt + " no.such.key=1", {"no.such.key"});
  expect_refused("supervise --local 2x2" + kSmallGpt +
                     " exp_manager.checkpoint_callback_params.local_dirpath=disk"
                     " exp_manager.checkpoint_callback_params.local_every_n_train_steps=1",
                 {"local_dirpath", "%n"});
}

TEST_F(Supervise, RefusesARunOfSomebodyElse) {
  make_directory(folder_ / "run");
  replace_file(folder_ / "run" / "thesis.txt", "mine");
  expect_refused("supervise --local 1x1" + kSmallGpt, {"run", "not a run's"});
}

TEST_F(Supervise, MonitorsRefuseNamesThatBecomeNoPaths) {
  for (const char* name : {"../else", ".hidden", "a/b", "''"})
    expect_refused("monitor --run run --node " + std::string(name), {"--node"});
}

}  // namespace
}  // namespace megalith::cli::testing
