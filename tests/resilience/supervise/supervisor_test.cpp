#include "resilience/supervise/supervisor.h"

#include <gtest/gtest.h>

#include <deque>

#include "expect_error.h"
#include "resilience/simulation/fake_directory.h"

namespace megalith::resilience {
namespace {

class ScriptedTransport final : public SupervisorTransport {
 public:
  bool send(const std::string& node, const Order& order) override {
    sent.emplace_back(node, order);
    return true;
  }
  std::optional<Report> receive() override {
    if (reports.empty()) return std::nullopt;
    Report report = std::move(reports.front());
    reports.pop_front();
    return report;
  }
  std::optional<std::string> next_broken() override { return std::nullopt; }

  std::deque<Report> reports;
  std::vector<std::pair<std::string, Order>> sent;
};

class SupervisorTest : public ::testing::Test {
 protected:
  SupervisorTest() { poll(0.0); }  // it leads from then on

  Report report(const std::string& node, int64_t sequence) const {
    return {.header = {.run = "run-1", .sequence = sequence, .sender = node},
            .address = "10.0.0.1",
            .boot_id = "boot",
            .session = 5};
  }
  void poll(double seconds) {
    now += seconds;
    supervisor.poll({.wall = 1e9 + now, .monotonic = now});
  }
  bool has_heard(const std::string& node) const {
    const auto found = supervisor.state().nodes.find(node);
    return found != supervisor.state().nodes.end() && found->second.is_heard;
  }

  testing::FakeDirectory directory;
  ScriptedTransport transport;
  std::vector<std::string> alarms;
  double now = 100.0;
  Supervisor supervisor{{.run = "run-1", .nodes = 2},
                        {.boot_id = "machine", .alarm = [this](const std::string& text) { alarms.push_back(text); }},
                        directory,
                        transport};
};

TEST_F(SupervisorTest, HearsMonitorsOfOtherMinorVersions) {
  for (const int64_t version : {kProtocol / 1000 * 1000, kProtocol + 7}) {
    transport.reports.push_back(report("node" + std::to_string(version), 1));
    transport.reports.back().header.protocol = version;
    poll(0.1);
    EXPECT_TRUE(has_heard("node" + std::to_string(version)));
  }
  EXPECT_EQ(supervisor.refused(), 0);
  EXPECT_TRUE(alarms.empty());
}

TEST_F(SupervisorTest, RefusesAnotherMajorVersionByName) {
  for (int64_t sequence = 1; sequence <= 3; ++sequence) {
    transport.reports.push_back(report("node7", sequence));
    transport.reports.back().header.protocol = kProtocol + 1000;
    poll(1.0);
  }
  EXPECT_FALSE(has_heard("node7"));
  EXPECT_EQ(supervisor.refused(), 3);
  ASSERT_EQ(alarms.size(), 1U) << "it is named once, and counted each time";
  expect_parts(alarms[0], {"node7", protocol_name(kProtocol + 1000), protocol_name(kProtocol)});
}

TEST_F(SupervisorTest, RefusesAMonitorOfAnotherRunByName) {
  transport.reports.push_back(report("node7", 1));
  transport.reports.back().header.run = "run-2";
  poll(1.0);
  EXPECT_FALSE(has_heard("node7"));
  EXPECT_EQ(supervisor.refused(), 1);
  ASSERT_EQ(alarms.size(), 1U);
  expect_parts(alarms[0], {"node7", "run-2", "run-1"});
}

// Who repeats what was said before changes nothing.
TEST_F(SupervisorTest, RefusesReportsThatAreReplayed) {
  transport.reports = {report("node0", 1), report("node0", 2)};
  poll(0.1);
  const size_t heard = transport.sent.size();
  transport.reports = {report("node0", 1), report("node0", 2)};
  poll(0.1);
  EXPECT_EQ(supervisor.refused(), 2);
  EXPECT_EQ(transport.sent.size(), heard);
}

}  // namespace
}  // namespace megalith::resilience
