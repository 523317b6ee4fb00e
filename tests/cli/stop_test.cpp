// How a run that is asked to stop ends, whoever the signal reaches, and what strangers at its ports can do to it.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/resource.h>

#include "background_program.h"
#include "comm/store/socket.h"
#include "comm/store/store.h"
#include "expect_error.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

std::string training(const std::filesystem::path& directory) {
  return "train trainer.accelerator=cpu trainer.cpu_threads=1 trainer.max_steps=1000000 model.num_layers=2 "
         "model.hidden_size=16 model.num_attention_heads=4 model.encoder_seq_length=16 model.micro_batch_size=2 "
         "model.global_batch_size=8 model.data.data_impl=mock exp_manager.explicit_log_dir=" +
         directory.string() + " ";
}

const std::string kRanks = "--nproc 4 ";
const std::string kStopping = ": stopping after this step, then saving";

int count(const std::string& text, const std::string& words) {
  int found = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

std::string last_of(const std::string& text) {
  return text.substr(text.size() - std::min<size_t>(text.size(), 2000));
}

void expect_saved(const std::filesystem::path& run) {
  const Outcome verified = run_program("checkpoint verify " + run.string());
  EXPECT_EQ(verified.exit_code, 0) << verified.output;
}

struct Reached {
  bool launcher;
  bool ranks;
  int times;
};

void expect_stop_saves(const Reached& reached, int signal) {
  SCOPED_TRACE(fmt::format("launcher {}, ranks {}, {} times, signal {}", reached.launcher, reached.ranks, reached.times,
                           signal));
  const TempDir dir;
  BackgroundProgram program(training(dir / "run") + kRanks, dir / "out");
  ASSERT_TRUE(program.wait_for_text("global_step=")) << program.text();
  std::vector<pid_t> processes = reached.ranks ? program.ranks() : std::vector<pid_t>();
  if (reached.launcher) processes.insert(processes.begin() + std::ssize(processes) / 2, program.process());
  for (int i = 0; i < reached.times; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    for (const pid_t process : processes) ::kill(process, signal);
  }
  EXPECT_EQ(program.exit_code(), 75) << last_of(program.text());
  EXPECT_EQ(count(program.text(), kStopping), 1) << last_of(program.text());
  expect_saved(dir / "run");
}

TEST(Stop, WhoeverTheSignalReachesTheRunSaves) {
  for (const int signal : {SIGTERM, SIGHUP}) expect_stop_saves({.launcher = true, .ranks = false, .times = 1}, signal);
  for (const int signal : {SIGTERM, SIGUSR1}) expect_stop_saves({.launcher = false, .ranks = true, .times = 1}, signal);
  for (const int signal : {SIGTERM, SIGINT}) expect_stop_saves({.launcher = true, .ranks = true, .times = 1}, signal);
  for (const int signal : {SIGTERM, SIGINT}) expect_stop_saves({.launcher = true, .ranks = true, .times = 2}, signal);
}

TEST(Stop, RanksWhoseLauncherDiesSave) {
  const TempDir dir;
  BackgroundProgram program(training(dir / "run") + kRanks, dir / "out");
  ASSERT_TRUE(program.wait_for_text("global_step=")) << program.text();
  const std::vector<pid_t> ranks = program.ranks();
  ASSERT_EQ(ranks.size(), 4U);
  program.send(SIGKILL);
  const auto have_ended = [&] {
    return std::none_of(ranks.begin(), ranks.end(), [](pid_t rank) { return ::kill(rank, 0) == 0; });
  };
  EXPECT_TRUE(wait_until(have_ended));
  expect_saved(dir / "run");
}

TEST(Stop, WhileItStartsTheRunEndsWith75) {
  for (const std::string& ranks : {kRanks, std::string()}) {
    for (const int milliseconds : {0, 100}) {
      const TempDir dir;
      BackgroundProgram program(training(dir / "run") + ranks, dir / "out");
      ASSERT_TRUE(program.wait_until_it_handles(SIGTERM));
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
      for (const pid_t rank : program.ranks()) ::kill(rank, SIGTERM);
      program.send(SIGTERM);
      EXPECT_EQ(program.exit_code(), 75) << last_of(program.text());
      EXPECT_EQ(count(program.text(), "SIGTERM: stop"), 1) << last_of(program.text());
    }
  }
}

TEST(Stop, CtrlCIsAnsweredAtOnceAndASecondOneQuits) {
  const TempDir dir;
  BackgroundProgram program(training(dir / "run") + kRanks, dir / "out");
  ASSERT_TRUE(program.wait_for_text("global_step=3")) << program.text();
  // A step that does not end.
  const std::vector<pid_t> ranks = program.ranks();
  ASSERT_EQ(ranks.size(), 4U);
  ::kill(ranks[2], SIGSTOP);
  const double begin = monotonic_seconds();
  program.send(SIGINT);
  EXPECT_TRUE(
      program.wait_for_text("SIGINT: stopping after this step, then saving; press again to quit without saving"));
  EXPECT_LT(monotonic_seconds() - begin, 1.0);
  program.send(SIGINT);  // so soon after the first, as one of a key that is held down
  std::this_thread::sleep_for(std::chrono::duration<double>(begin + 1.2 - monotonic_seconds()));
  EXPECT_FALSE(program.has_ended()) << last_of(program.text());
  program.send(SIGINT);
  EXPECT_EQ(program.exit_code(), 130);
  EXPECT_EQ(count(program.text(), "SIGINT: "), 1) << last_of(program.text());
  EXPECT_EQ(count(program.text(), "SIGINT again: quitting without saving"), 1) << last_of(program.text());
  EXPECT_FALSE(std::filesystem::exists(dir / "run/report.html"));
  EXPECT_NE(run_program("checkpoint verify " + (dir / "run").string()).exit_code, 0) << "nothing was saved";
}

TEST(Stop, OtherSignalsMayRepeatAndNohupIsObeyed) {
  const TempDir dir;
  BackgroundProgram program(training(dir / "run"), dir / "out", {.ignored_signal = SIGHUP});
  ASSERT_TRUE(program.wait_for_text("global_step=3"));
  program.send(SIGHUP);
  ASSERT_TRUE(program.wait_for_text("global_step=30")) << "ignored as nohup asks";
  for (int i = 0; i < 10; ++i) program.send(i % 2 == 0 ? SIGTERM : SIGUSR1);
  EXPECT_EQ(program.exit_code(), 75) << last_of(program.text());
  EXPECT_EQ(count(program.text(), kStopping), 1) << last_of(program.text());
  expect_saved(dir / "run");
}

int free_port() {
  return comm::listen_on("127.0.0.1", 0).local_port();
}

TEST(Ranks, AMistakeThatOnlyRankZeroFindsIsExplainedOnce) {
  const TempDir dir;
  std::filesystem::create_directory(dir / "used");
  const File lock = File::open_for_appending(dir / "used/.megalith.lock");
  ASSERT_EQ(::flock(lock.descriptor(), LOCK_EX), 0);
  std::filesystem::create_directory(dir / "held");
  std::ofstream(dir / "held/hparams.yaml") << "name: x\n";
  std::ofstream(dir / "file") << "x";
  const comm::Socket taken = comm::listen_on("127.0.0.1", 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {training(dir / "held"), "held already holds a run; continue it with"},
      {training(dir / "used"), "used is in use by another megalith"},
      {training(dir / "file"), "file exists and is not a directory"},
      {training(dir / "new") + fmt::format("exp_manager.prometheus.port={} ", taken.local_port()),
       "choose another exp_manager.prometheus.port"},
  };
  for (const auto& [arguments, reason] : cases) {
    const Outcome outcome = run_program(arguments + kRanks);
    EXPECT_EQ(outcome.exit_code, 2) << last_of(outcome.output);
    EXPECT_EQ(count(outcome.output, reason), 1) << last_of(outcome.output);
    EXPECT_EQ(count(outcome.output, "megalith: "), 1) << last_of(outcome.output);
    EXPECT_EQ(count(outcome.output, "rank 0"), 0) << last_of(outcome.output);
  }
}

TEST(Ranks, ATakenMasterPortIsAMistakeBeforeAnyStarts) {
  const TempDir dir;
  const comm::Socket taken = comm::listen_on("127.0.0.1", 0);
  const Outcome outcome =
      run_program(training(dir / "run") + "--nproc 2", ".",
                  fmt::format("RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={}", taken.local_port()));
  EXPECT_EQ(outcome.exit_code, 2) << last_of(outcome.output);
  EXPECT_EQ(count(outcome.output, "choose another MASTER_PORT"), 1) << last_of(outcome.output);
  EXPECT_EQ(count(outcome.output, "[0]"), 0) << last_of(outcome.output);
}

// More than a rank here may have open.
constexpr int kMany = 1300;

void let_this_test_open_more() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 3 * kMany);
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::vector<comm::Socket> connect_in_silence(int port) {
  std::vector<comm::Socket> sockets;
  for (int i = 0; i < kMany; ++i)
    sockets.push_back(comm::connect_to("127.0.0.1", static_cast<uint16_t>(port), monotonic_seconds() + 10.0));
  return sockets;
}

std::string environment_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/environ", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int master_port_of(pid_t rank) {
  const std::string environment = environment_of(rank);
  const std::string name = "MASTER_PORT=";
  return std::stoi(environment.substr(environment.find(name) + name.size()));
}

std::string scrape(int port) {
  const double until = monotonic_seconds() + 10.0;
  const comm::Socket socket = comm::connect_to("127.0.0.1", static_cast<uint16_t>(port), until);
  std::string request = "GET /metrics HTTP/1.1\r\n\r\n";
  socket.write_from(request);
  std::string answer;
  while (socket.wait_readable(until) && socket.read_into(answer, size_t{1} << 20)) {
  }
  return answer;
}

TEST(Ranks, StrangersAtTheirPortsChangeNothing) {
  let_this_test_open_more();
  const TempDir dir;
  const int metrics = free_port();
  BackgroundProgram program(training(dir / "run") + kRanks +
                                fmt::format("exp_manager.prometheus.port={} --persistent-ckpt-interval 50", metrics),
                            dir / "out");
  ASSERT_TRUE(program.wait_for_text("global_step=")) << program.text();
  const pid_t rank = program.ranks().at(0);
  const int store = master_port_of(rank);
  EXPECT_NE(environment_of(rank).find(std::string("\0MEGALITH_STORE_SECRET=\0", 24)), std::string::npos)
      << "the secret is in no variable";
  expect_error(ErrorKind::comm, {"does not know the secret"}, [&] {
    comm::StoreClient({.port = static_cast<uint16_t>(store), .connect_deadline = 10.0}).delete_prefix("");
  });

  const std::vector<comm::Socket> at_store = connect_in_silence(store);
  const std::vector<comm::Socket> at_metrics = connect_in_silence(metrics);
  const int saved = count(program.text(), "checkpoint of step");
  EXPECT_TRUE(wait_until([&] { return count(program.text(), "checkpoint of step") > saved + 1; })) << program.text();
  EXPECT_TRUE(scrape(metrics).starts_with("HTTP/1.1 200 OK"));
  program.send(SIGTERM);
  EXPECT_EQ(program.exit_code(), 75) << last_of(program.text());
  EXPECT_EQ(count(program.text(), "failed"), 0) << last_of(program.text());
  expect_saved(dir / "run");
}

}  // namespace
}  // namespace megalith::cli::testing
