// A fleet whose supervisor and monitors speak over TCP, as on machines of their own.
#include <gtest/gtest.h>
#include <unistd.h>

#include "background_program.h"
#include "core/process/exit_codes.h"
#include "expect_error.h"
#include "resilience/secure/credentials.h"
#include "resilience/secure/endpoint.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

namespace fs = std::filesystem;

class Machines : public ::testing::Test {
 protected:
  Machines() {
    make_credentials(folder_ / "keys");
    const int socket = resilience::listen_at({"127.0.0.1", 0});
    port_ = resilience::local_port(socket);
    ::close(socket);
  }

  static void make_credentials(const fs::path& folder) {
    resilience::make_credentials({.folder = folder, .nodes = {"node0", "node1"}, .now = wall_seconds()});
  }

  // Until it is stopped.
  std::string supervise() const {
    return fmt::format(
        "supervise --listen 127.0.0.1:{} --credentials {} trainer.accelerator=cpu trainer.cpu_threads=1 "
        "trainer.max_steps=10000000 trainer.num_nodes=2 trainer.devices=1 model.num_layers=2 model.hidden_size=32 "
        "model.num_attention_heads=2 model.encoder_seq_length=16 model.global_batch_size=8 model.data.data_impl=mock "
        "exp_manager.explicit_log_dir={} exp_manager.checkpoint_callback_params.memory_dirpath={}",
        port_, (folder_ / "keys" / "supervisor").string(), (folder_ / "run").string(),
        (folder_ / "memory" / "%n").string());
  }

  std::string monitor(const std::string& node, const fs::path& credentials) const {
    fs::create_directories(folder_ / "monitors");
    return fmt::format("monitor --run {} --node {} --supervisors 127.0.0.1:{} --credentials {} --disk {} --memory {}",
                       (folder_ / "run").string(), node, port_, credentials.string(),
                       (folder_ / "disks" / node).string(), (folder_ / "monitors" / node).string());
  }

  size_t count(const std::string& pattern) const {
    size_t found = 0;
    if (!fs::is_directory(folder_ / "run" / "control")) return 0;
    for (const auto& entry : fs::directory_iterator(folder_ / "run" / "control"))
      found += entry.path().filename().string().starts_with(pattern);
    return found;
  }

  std::string journal() const { return read_text(folder_ / "run" / "control" / "term-000001.jsonl"); }

  megalith::testing::TempDir folder_;
  uint16_t port_ = 0;
};

TEST_F(Machines, TrainWhileStrangersKnockAndCertificatesAreReplaced) {
  BackgroundProgram supervisor(supervise(), folder_ / "supervisor.log");
  BackgroundProgram first(monitor("node0", folder_ / "keys" / "monitors" / "node0"), folder_ / "first.log");
  BackgroundProgram second(monitor("node1", folder_ / "keys" / "monitor"), folder_ / "second.log");
  ASSERT_TRUE(supervisor.wait_for_text("generation 1: running")) << supervisor.text() << first.text();

  make_credentials(folder_ / "strangers");
  const Outcome stranger = run_program(monitor("node7", folder_ / "strangers" / "monitor"));
  EXPECT_EQ(stranger.exit_code, 2) << stranger.output;
  expect_parts(stranger.output, {"refuses node 'node7'", "certificate"});
  // One for any node is none for a node that has its own.
  const std::string with_other_folders = monitor("node0", folder_ / "keys" / "monitor") + "-2";
  const Outcome thief = run_program(with_other_folders);
  EXPECT_EQ(thief.exit_code, 2) << thief.output;
  expect_parts(thief.output, {"refuses node 'node0'", "certificate is for any node"});

  make_credentials(folder_ / "keys");
  BackgroundProgram late(monitor("node2", folder_ / "keys" / "monitor"), folder_ / "late.log");

  EXPECT_TRUE(wait_until([&] { return journal().find("node2") != std::string::npos; })) << late.text();

  supervisor.send(SIGTERM);
  for (BackgroundProgram* const each : {&supervisor, &first, &second, &late})
    EXPECT_EQ(each->exit_code(), kExitStoppedEarly) << each->text();
  EXPECT_EQ(count("roster-"), 1U) << "nobody was disturbed: " << supervisor.text();
  EXPECT_EQ(count("term-"), 1U);
  expect_parts(supervisor.text(), {"was refused"});
}

}  // namespace
}  // namespace megalith::cli::testing
