#include "resilience/unix_transport.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "core/error.h"
#include "expect_error.h"
#include "resilience/control_socket.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

Report report_of(const std::string& node, int64_t sequence = 1) {
  Report report{.header = {.run = "run-1", .term = 3, .generation = 2, .sequence = sequence, .sender = node},
                .address = "10.0.0.7",
                .boot_id = "b",
                .session = 99,
                .overslept = 1.5};
  report.ranks.push_back({.rank = 5,
                          .generation = 2,
                          .pid = 77,
                          .page = PageReport{.section = Section::save,
                                             .section_seconds = 0.25,
                                             .longest = {0.5, 1.5, 2.5},
                                             .step = 9,
                                             .micro_batch = 1,
                                             .beats = 1234,
                                             .beat_seconds = 0.5,
                                             .working_seconds = 0.125,
                                             .local_step = 8,
                                             .persistent_step = 4,
                                             .calls = {{"tp[0,1]", "all_reduce", 7, 6, 4096, false, {3, 5}}},
                                             .ending = {EndingKind::comm, "rank 1 is gone", {1}}},
                          .page_problem = "torn",
                          .process = ProcessReport{'D', "futex", 12.5, "stack"},
                          .end = ProcessEnd{.exit_code = 0, .signal = 0}});
  report.ranks.push_back({.rank = RankReport::kStore, .generation = 2, .pid = 78, .end = ProcessEnd{}});
  report.result = Result{3, 11, OrderKind::start, 2, Outcome::failed, "no room"};
  report.tells_holdings = true;
  report.holdings = {{8, 2, Tier::local, 8, {0, 1, 7}}};
  report.holder = {"10.0.0.7", 4000, std::string("se\0cret", 7)};
  report.store = Place{"10.0.0.7", 4001, "other"};
  report.check = CheckOutcome::failed;
  report.check_evidence = "slow disk";
  report.stop_requested = true;
  report.stop_grace = 30.0;
  report.refused = 2;
  return report;
}

Order order_to(const std::string& node) {
  return {.header = {.run = "run-1", .term = 3, .generation = 2, .sequence = 12, .sender = "supervisor"},
          .kind = OrderKind::start,
          .session = 98,
          .roster_digest = "0123456789abcdef",
          .store = {"10.0.0.7", 4001, "other"},
          .holders = {{node, {"10.0.0.8", 4002, "third"}}},
          .exit_code = 75,
          .reason = "why"};
}

class UnixTransport : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      require_control_plane();
    } catch (const Error&) {
      GTEST_SKIP() << "this build has no gRPC";
    }
    directory_ = dir_.path() / "control";
    socket_ = directory_ / "socket";
  }

  static bool comes_true(const std::function<bool()>& condition) {
    for (int look = 0; look < 3000; ++look) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  // Of this node, the next one; the others are passed over.
  static Report next_report(UnixSupervisorTransport& supervisor, UnixMonitorTransport& monitor, const Report& sent) {
    std::optional<Report> got;
    EXPECT_TRUE(comes_true([&] {
      if (!got) monitor.send(sent);
      got = supervisor.receive();
      return got && got->header.sender == sent.header.sender && got->header.sequence == sent.header.sequence;
    }));
    return got.value_or(Report{});
  }

  testing::TempDir dir_;
  std::filesystem::path directory_;
  std::filesystem::path socket_;
};

TEST_F(UnixTransport, CarriesEveryField) {
  const auto supervisor = listen_for_monitors({.socket = socket_});
  const auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
  const Report sent = report_of("node0");
  EXPECT_EQ(next_report(*supervisor, *monitor, sent), sent);
  const Order order = order_to("node1");
  ASSERT_TRUE(supervisor->send("node0", order));
  EXPECT_FALSE(supervisor->send("node1", order));
  std::optional<Order> got;
  ASSERT_TRUE(comes_true([&] { return (got = monitor->receive()).has_value(); }));
  EXPECT_EQ(*got, order);
  EXPECT_EQ(supervisor->refused(), 0);
}

TEST_F(UnixTransport, DialsAnewWhenASupervisorComesBack) {
  auto supervisor = listen_for_monitors({.socket = socket_});
  const auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
  next_report(*supervisor, *monitor, report_of("node0", 1));
  supervisor.reset();
  monitor->send(report_of("node0", 2));  // to nobody
  supervisor = listen_for_monitors({.socket = socket_});
  EXPECT_EQ(next_report(*supervisor, *monitor, report_of("node0", 3)).header.sequence, 3);
}

// The last channel of a process ends the threads of gRPC, which none of these can survive doing itself.
TEST_F(UnixTransport, EndsItsLastChannelOnAThreadOfItsOwn) {
  for (int round = 0; round < 10; ++round) {
    auto supervisor = listen_for_monitors({.socket = socket_});
    const auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
    next_report(*supervisor, *monitor, report_of("node0"));
    supervisor.reset();
    for (int look = 0; look < 20; ++look) {  // until the monitor has seen it and hung up
      monitor->send(report_of("node0", 2));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
}

TEST_F(UnixTransport, TellsABrokenSessionOnce) {
  const auto supervisor = listen_for_monitors({.socket = socket_});
  auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
  next_report(*supervisor, *monitor, report_of("node0"));
  EXPECT_FALSE(supervisor->next_broken());
  monitor.reset();
  std::optional<std::string> broken;
  ASSERT_TRUE(comes_true([&] {
    supervisor->receive();
    return (broken = supervisor->next_broken()).has_value();
  }));
  EXPECT_EQ(*broken, "node0");
  EXPECT_FALSE(supervisor->send("node0", order_to("node0")));
  supervisor->receive();
  EXPECT_FALSE(supervisor->next_broken());
}

TEST_F(UnixTransport, TakesTheNewestSessionOfANode) {
  const auto supervisor = listen_for_monitors({.socket = socket_});
  const auto first = dial_supervisors({{.socket = socket_}}, "node0");
  next_report(*supervisor, *first, report_of("node0", 1));
  const auto second = dial_supervisors({{.socket = socket_}}, "node0");
  next_report(*supervisor, *second, report_of("node0", 2));
  ASSERT_TRUE(supervisor->send("node0", order_to("node0")));
  EXPECT_TRUE(comes_true([&] { return second->receive().has_value(); }));
  EXPECT_FALSE(first->receive());
}

// A node speaks for itself alone.
TEST_F(UnixTransport, RefusesASecondNameInASession) {
  const auto supervisor = listen_for_monitors({.socket = socket_});
  const auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
  next_report(*supervisor, *monitor, report_of("node0", 1));
  monitor->send(report_of("node1", 2));
  ASSERT_TRUE(comes_true([&] {
    supervisor->receive();
    return supervisor->refused() > 0;
  }));
  EXPECT_FALSE(supervisor->send("node1", order_to("node1")));
}

TEST_F(UnixTransport, OutlivesOneWhoSpeaksSomethingElse) {
  const auto supervisor = listen_for_monitors({.socket = socket_});
  const int stranger = connect_to_control_socket(socket_);
  ASSERT_GE(stranger, 0);
  const std::string nonsense(100000, 'x');
  [[maybe_unused]] const ssize_t written = ::send(stranger, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
  const auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
  next_report(*supervisor, *monitor, report_of("node0"));
  ::close(stranger);
}

TEST_F(UnixTransport, DropsAMessageThatIsTooLong) {
  const auto supervisor = listen_for_monitors({.socket = socket_});
  const auto monitor = dial_supervisors({{.socket = socket_}}, "node0");
  Report sent = report_of("node0");
  sent.check_evidence.assign(300 << 10, 'x');
  monitor->send(sent);
  for (int look = 0; look < 50; ++look) {
    EXPECT_FALSE(supervisor->receive());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  next_report(*supervisor, *monitor, report_of("node0", 2));
}

TEST(ControlSocket, IsInADirectoryOfItsOwnerAlone) {
  const testing::TempDir dir;
  const std::filesystem::path open = dir.path() / "open";
  std::filesystem::create_directory(open);
  ::chmod(open.c_str(), 0755);
  expect_error(ErrorKind::user, {"0755"}, [&] { ControlSocket{open / "socket"}; });
}

TEST(ControlSocket, ReplacesThatOfADeadSupervisorAndNoOther) {
  const testing::TempDir dir;
  const std::filesystem::path path = dir.path() / "private" / "socket";
  const ControlSocket first(path);
  expect_error(ErrorKind::user, {"another supervisor listens"}, [&] { ControlSocket{path}; });

  const std::filesystem::path stale = dir.path() / "private" / "stale";
  const int left = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(stale.c_str(), stale.native().size() + 1, address.sun_path);
  ASSERT_EQ(::bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ::close(left);
  EXPECT_LT(connect_to_control_socket(stale), 0);
  const ControlSocket second(stale);
  const int connection = connect_to_control_socket(stale);
  EXPECT_GE(connection, 0);
  ::close(connection);
}

TEST(ControlSocket, RefusesANameThatNoSocketCanHave) {
  const testing::TempDir dir;
  expect_error(ErrorKind::user, {"too long"}, [&] { ControlSocket{dir.path() / "private" / std::string(120, 'x')}; });
}

}  // namespace
}  // namespace megalith::resilience
