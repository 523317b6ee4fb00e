#include <gtest/gtest.h>

#include "cli/run_program.h"
#include "core/clock.h"
#include "core/file.h"
#include "expect_error.h"
#include "resilience/secure/credentials.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using resilience::make_credentials;

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
  expect_refused("supervise" + kSmallGpt, {"--local", "--listen", "--make-credentials"});
}

// TCP is for those who show a certificate of their role, on this machine too.
TEST_F(Supervise, RefusesTcpWithoutTheRightCredentials) {
  const Outcome made = run_program("supervise --make-credentials keys --nodes node0", folder_.path().string());
  EXPECT_EQ(made.exit_code, 0) << made.output;
  expect_parts(made.output, {"keys/supervisor", "keys/monitor", "keys/monitors/node0", "keys/viewer", "keys/ca"});

  const std::string listen = "supervise --listen 127.0.0.1:0" + kSmallGpt;
  expect_refused(listen, {"127.0.0.1:0", "--credentials"});
  expect_refused(listen + " --credentials nowhere", {"nowhere/identity.pem", "--make-credentials"});
  expect_refused(listen + " --credentials keys/monitor", {"keys/monitor/identity.pem", "a supervisor is needed"});
  expect_refused("supervise --listen 127.0.0.1 --credentials keys/supervisor" + kSmallGpt, {"host:port"});
  expect_refused(listen + " --local 2x1", {"--local", "--listen"});

  const std::string monitor = "monitor --run run --node node1 --supervisors 127.0.0.1:7000";
  expect_refused(monitor, {"127.0.0.1:7000", "--credentials"});
  expect_refused(monitor + " --credentials keys/viewer", {"keys/viewer/identity.pem", "a monitor is needed"});
  expect_refused(monitor + " --credentials keys/monitors/node0", {"the monitor of node0", "this node is node1"});
}

TEST_F(Supervise, RefusesCredentialsThatAreExpiredOrOfAnotherAuthority) {
  make_credentials({.folder = folder_ / "old", .days = 1, .now = wall_seconds() - 1e6});
  make_credentials({.folder = folder_ / "mixed", .now = wall_seconds()});
  make_credentials({.folder = folder_ / "other", .now = wall_seconds()});
  replace_file(folder_ / "mixed" / "supervisor" / "ca.pem", read_text(folder_ / "other" / "supervisor" / "ca.pem"));
  const std::string listen = "supervise --listen 127.0.0.1:0" + kSmallGpt + " --credentials ";
  expect_refused(listen + "old/supervisor", {"old/supervisor/identity.pem", "expired on"});
  expect_refused(listen + "mixed/supervisor", {"mixed/supervisor/identity.pem", "not of the authority"});
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
