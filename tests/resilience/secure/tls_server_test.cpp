#include "resilience/secure/tls_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "comm/store/socket.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "expect_error.h"
#include "resilience/unix_transport.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

namespace fs = std::filesystem;
constexpr double kDay = 24 * 3600.0;
constexpr const char* kRefused = "refused";  // the boot id of reports that nobody may hear
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kEndHeaders = 4;

// A connection that is not made by Megalith: OpenSSL alone, and HTTP/2 by hand.
class Stranger {
 public:
  struct Options {
    fs::path credentials;  // empty: no certificate
    int most_version = TLS1_3_VERSION;
  };

  Stranger(uint16_t port, const Options& options)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), ssl_(nullptr, SSL_free) {
    std::string problem;
    socket_ = connect_to({"127.0.0.1", port}, monotonic_seconds() + 10.0, -1, problem);
    EXPECT_GE(socket_, 0) << problem;
    const timeval limit{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::fcntl(socket_, F_SETFL, ::fcntl(socket_, F_GETFL) & ~O_NONBLOCK);
    SSL_CTX_set_max_proto_version(context_.get(), options.most_version);
    if (!options.credentials.empty()) {
      const std::string file = options.credentials / "identity.pem";
      EXPECT_EQ(SSL_CTX_use_certificate_file(context_.get(), file.c_str(), SSL_FILETYPE_PEM), 1);
      EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), file.c_str(), SSL_FILETYPE_PEM), 1);
    }
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), socket_);
    is_connected_ = SSL_connect(ssl_.get()) == 1;
  }
  ~Stranger() {
    ssl_.reset();
    ::close(socket_);
  }

  // The server closes the connection, or says over it why it will not be spoken to.
  bool is_turned_away() {
    if (!is_connected_) return true;
    std::array<char, 4096> bytes{};
    int got = 1;
    while (got > 0) got = SSL_read(ssl_.get(), bytes.data(), bytes.size());
    const int reason = SSL_get_error(ssl_.get(), got);
    return reason == SSL_ERROR_SSL || reason == SSL_ERROR_ZERO_RETURN ||
           (reason == SSL_ERROR_SYSCALL && errno != EAGAIN);
  }

  std::string binding() const {
    unsigned char bytes[32] = {};
    const std::string label = "EXPORTER-megalith-control";
    SSL_export_keying_material(ssl_.get(), bytes, sizeof bytes, label.data(), label.size(), nullptr, 0, 0);
    std::string text;
    for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
    return text;
  }

  // gRPC's call, as far as the first byte of its first message.
  void open_stream(const std::string& binding) {
    write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    frame(kSettings, 0, 0, "");
    const auto header = [](const std::string& name, const std::string& value) {
      return std::string(1, '\x10') + static_cast<char>(name.size()) + name + static_cast<char>(value.size()) + value;
    };
    frame(kHeaders, kEndHeaders, 1,
          header(":method", "POST") + header(":scheme", "http") + header(":authority", "supervisor") +
              header(":path", "/megalith.control.Control/Session") + header("content-type", "application/grpc") +
              header("te", "trailers") + header("megalith-binding", binding));
  }
  // A part of the stream: gRPC's messages begin with a zero and four bytes of length.
  void data(const std::string& bytes) { frame(kData, 0, 1, bytes); }
  static std::string message(const std::string& bytes) {
    std::string prefix(5, '\0');
    for (int byte = 0; byte < 4; ++byte)
      prefix[static_cast<size_t>(4 - byte)] = static_cast<char>(bytes.size() >> (8 * byte));
    return prefix + bytes;
  }

 private:
  void write(const std::string& bytes) { SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())); }
  void frame(uint8_t kind, uint8_t flags, uint8_t stream, const std::string& bytes) {
    std::string head(9, '\0');
    head[0] = static_cast<char>(bytes.size() >> 16);
    head[1] = static_cast<char>(bytes.size() >> 8);
    head[2] = static_cast<char>(bytes.size());
    head[3] = static_cast<char>(kind);
    head[4] = static_cast<char>(flags);
    head[8] = static_cast<char>(stream);
    write(head + bytes);
  }

  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  int socket_ = -1;
  bool is_connected_ = false;
};

Report report_of(const std::string& node, int64_t sequence = 1, const std::string& boot_id = "boot") {
  return {.header = {.run = "run-1", .sequence = sequence, .sender = node},
          .address = "10.0.0.7",
          .boot_id = boot_id,
          .session = 99};
}

Door door_at(uint16_t port, const fs::path& credentials) {
  Door door;
  door.endpoint = {"127.0.0.1", port};
  door.credentials = credentials;
  return door;
}

// A supervisor that hears node0, whatever happens beside it.
class TlsTransport : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      require_control_plane();
    } catch (const Error&) {
      GTEST_SKIP() << "this build has no gRPC";
    }
    comm::ignore_broken_pipes();
    made_ = make("made");
    supervisor_ = listen_for_monitors(door_at(0, made_ / "supervisor"));
    honest_ = dial("node0", made_ / "monitors" / "node0");
    ASSERT_TRUE(is_heard(*honest_, report_of("node0")));
  }

  fs::path make(const std::string& name, double days_ago = 0.0) const {
    const fs::path folder = dir_.path() / name;
    make_credentials({.folder = folder, .nodes = {"node0", "node1"}, .now = wall_seconds() - days_ago * kDay});
    return folder;
  }

  std::unique_ptr<UnixMonitorTransport> dial(const std::string& node, const fs::path& credentials) const {
    return dial_supervisors({door_at(supervisor_->port(), credentials)}, node);
  }

  bool comes_true(const std::function<bool()>& condition, double seconds = 30.0) {
    for (const double until = monotonic_seconds() + seconds; monotonic_seconds() < until;) {
      if (condition()) return true;
      greet();
      while (const std::optional<std::string> alarm = supervisor_->next_alarm()) alarms_ += *alarm + "\n";
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  // A monitor that hears nothing dials anew.
  void greet() {
    if (monotonic_seconds() < greets_at_) return;
    greets_at_ = monotonic_seconds() + 1.0;
    supervisor_->send("node0", {});
  }

  // The supervisor's side tells this monitor why it will not hear it.
  bool is_refused(UnixMonitorTransport& monitor, const Report& report) {
    return comes_true([&] {
      monitor.send(report);
      if (const std::optional<Report> got = supervisor_->receive()) {
        EXPECT_NE(got->boot_id, kRefused);
      }
      return !monitor.refusal().empty();
    });
  }

  bool is_heard(UnixMonitorTransport& monitor, Report report, double seconds = 30.0) {
    return comes_true(
        [&] {
          monitor.send(report);
          const std::optional<Report> got = supervisor_->receive();
          return got && got->header.sender == report.header.sender && got->boot_id == report.boot_id;
        },
        seconds);
  }

  // Something was refused for this reason, and counted; node0's stream is the same as before.
  void expect_refusal(const std::string& reason, double seconds = 30.0) {
    EXPECT_TRUE(comes_true(
        [&] {
          if (const std::optional<Report> got = supervisor_->receive()) {
            EXPECT_NE(got->boot_id, kRefused);
          }
          return alarms_.find(reason) != std::string::npos;
        },
        seconds))
        << reason << " is not in: " << alarms_;
    EXPECT_GT(supervisor_->refused(), 0);
    expect_undisturbed();
  }

  void expect_undisturbed() {
    EXPECT_TRUE(is_heard(*honest_, report_of("node0", ++sequence_)));
    while (const std::optional<std::string> broken = supervisor_->next_broken()) {
      EXPECT_NE(*broken, "node0");
    }
    ASSERT_TRUE(supervisor_->send("node0", {.header = {.sequence = sequence_}}));
    EXPECT_TRUE(comes_true([&] {
      const std::optional<Order> order = honest_->receive();
      return order && order->header.sequence == sequence_;
    }));
  }

  testing::TempDir dir_;
  fs::path made_;
  std::unique_ptr<UnixSupervisorTransport> supervisor_;
  std::unique_ptr<UnixMonitorTransport> honest_;
  std::string alarms_;
  int64_t sequence_ = 1;
  double greets_at_ = 0.0;
};

TEST_F(TlsTransport, HearsThoseWithCertificates) {
  const auto any = dial("node7", made_ / "monitor");
  EXPECT_TRUE(is_heard(*any, report_of("node7")));
  EXPECT_EQ(supervisor_->refused(), 0);
  expect_undisturbed();
  EXPECT_EQ(alarms_, "");
}

TEST_F(TlsTransport, RefusesOneWithoutACertificate) {
  EXPECT_TRUE(Stranger(supervisor_->port(), {}).is_turned_away());
  expect_refusal("peer did not return a certificate");
}

TEST_F(TlsTransport, RefusesACertificateOfAnotherAuthority) {
  EXPECT_TRUE(Stranger(supervisor_->port(), {.credentials = make("other") / "monitor"}).is_turned_away());
  expect_refusal("unable to get local issuer certificate");
}

TEST_F(TlsTransport, TellsAMonitorOfAnotherAuthorityWhy) {
  const auto stranger = dial("node0", make("other") / "monitor");
  EXPECT_TRUE(is_refused(*stranger, report_of("node0", 1, kRefused)));
  expect_parts(stranger->refusal(), {"certificate"});
  expect_parts(stranger->next_alarm().value_or(""), {"127.0.0.1", "no connection"});
  expect_undisturbed();
}

TEST_F(TlsTransport, RefusesAnExpiredCertificate) {
  const fs::path old = dir_.path() / "old";
  fs::create_directory(old);
  fs::copy(made_ / "ca", old / "ca");  // the same authority
  make_credentials({.folder = old, .days = 1, .now = wall_seconds() - 10 * kDay});
  EXPECT_TRUE(Stranger(supervisor_->port(), {.credentials = old / "monitor"}).is_turned_away());
  expect_refusal("certificate has expired");
}

TEST_F(TlsTransport, RefusesOldVersionsOfTls) {
  EXPECT_TRUE(Stranger(supervisor_->port(), {.credentials = made_ / "monitor", .most_version = TLS1_2_VERSION})
                  .is_turned_away());
  expect_refusal("was refused");
}

TEST_F(TlsTransport, RefusesWhatIsNoTls) {
  std::string problem;
  const int socket = connect_to({"127.0.0.1", supervisor_->port()}, monotonic_seconds() + 10.0, -1, problem);
  ASSERT_GE(socket, 0) << problem;
  const std::string nonsense(100000, 'x');
  [[maybe_unused]] const ssize_t written = ::send(socket, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
  expect_refusal("was refused");
  ::close(socket);
}

// A supervisor's certificate makes nobody a monitor, and a monitor's nobody a supervisor.
TEST_F(TlsTransport, RefusesASupervisorThatDials) {
  EXPECT_TRUE(Stranger(supervisor_->port(), {.credentials = made_ / "supervisor"}).is_turned_away());
  expect_refusal("was refused");
}

TEST_F(TlsTransport, IsNoServerWithAMonitorsCertificate) {
  expect_error(ErrorKind::user, {"monitor/identity.pem", "a supervisor is needed"},
               [&] { listen_for_monitors(door_at(0, made_ / "monitor")); });
}

TEST_F(TlsTransport, LetsAViewerReportNothing) {
  Stranger viewer(supervisor_->port(), {.credentials = made_ / "viewer"});
  viewer.open_stream(viewer.binding());
  expect_refusal("a viewer at 127.0.0.1 reports for no node");
  EXPECT_TRUE(viewer.is_turned_away());
}

// The name of a connection is nobody's but its own.
TEST_F(TlsTransport, RefusesAStreamOfAConnectionThatIsNotKnown) {
  Stranger one(supervisor_->port(), {.credentials = made_ / "monitor"});
  one.open_stream(std::string(64, 'a'));
  expect_refusal("its connection is not known");
}

TEST_F(TlsTransport, HearsANodeForItselfAlone) {
  const auto other = dial("node1", made_ / "monitors" / "node1");
  EXPECT_TRUE(is_refused(*other, report_of("node0", 1000, kRefused)));
  expect_parts(other->refusal(), {"the monitor of node1", "speaks as node0"});
  expect_refusal("its certificate is that of the monitor of node1, and it speaks as node0");
}

TEST_F(TlsTransport, BindsANameToItsFirstStream) {
  const auto first = dial("node7", made_ / "monitor");
  EXPECT_TRUE(is_heard(*first, report_of("node7", 1, "machine-1")));
  const auto second = dial("node7", made_ / "monitor");
  EXPECT_TRUE(is_refused(*second, report_of("node7", 2, kRefused)));
  expect_parts(second->refusal(), {"node7", "127.0.0.1", "certificate is for any node"});
  ASSERT_TRUE(supervisor_->send("node7", {.header = {.sequence = 5}}));
  EXPECT_TRUE(comes_true([&] { return first->receive().has_value(); }));
  EXPECT_FALSE(second->receive());
  // A monitor that was started again on the same machine is the same node.
  const auto again = dial("node7", made_ / "monitor");
  EXPECT_TRUE(is_heard(*again, report_of("node7", 1, "machine-1")));
  // Nor is a name free that somebody has a certificate for.
  const auto thief = dial("node0", made_ / "monitor");
  EXPECT_TRUE(is_refused(*thief, report_of("node0", 2, kRefused)));
  expect_undisturbed();
}

TEST_F(TlsTransport, RefusesMessagesThatAreTooLong) {
  const auto other = dial("node1", made_ / "monitors" / "node1");
  EXPECT_TRUE(is_heard(*other, report_of("node1")));
  Report huge = report_of("node1", 2, kRefused);
  huge.check_evidence.assign(300 << 10, 'x');
  other->send(huge);
  expect_refusal("bytes is too long");
}

TEST_F(TlsTransport, RefusesMessagesThatAreDamaged) {
  Stranger other(supervisor_->port(), {.credentials = made_ / "monitor"});
  other.open_stream(other.binding());
  other.data(Stranger::message("\x0a\xff\xff\xff\xff\x0f torn"));
  expect_refusal("a message is damaged");
  EXPECT_TRUE(other.is_turned_away());
}

TEST_F(TlsTransport, RefusesMessagesThatTrickle) {
  Stranger other(supervisor_->port(), {.credentials = made_ / "monitor"});
  other.open_stream(other.binding());
  const std::string slow = Stranger::message(std::string(1000, 'x'));
  std::atomic<bool> ends = false;
  std::thread trickle([&] {
    for (size_t byte = 0; byte < slow.size() && !ends; ++byte) {
      other.data(slow.substr(byte, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  expect_refusal("it has said nothing in time");
  ends = true;
  trickle.join();
}

TEST_F(TlsTransport, DropsThoseWhoSayNothing) {
  std::string problem;
  const int silent = connect_to({"127.0.0.1", supervisor_->port()}, monotonic_seconds() + 10.0, -1, problem);
  ASSERT_GE(silent, 0) << problem;
  const Stranger without_stream(supervisor_->port(), {.credentials = made_ / "monitor"});
  expect_refusal("it has shown no certificate in time");
  expect_refusal("it has opened no stream in time");
  ::close(silent);
}

// More of them than may shake hands at once.
TEST_F(TlsTransport, IsOpenWhileStrangersCrowdAround) {
  std::vector<int> crowd;
  std::string problem;
  for (int count = 0; count < 400; ++count)
    crowd.push_back(connect_to({"127.0.0.1", supervisor_->port()}, monotonic_seconds() + 10.0, -1, problem));
  const auto late = dial("node1", made_ / "monitors" / "node1");
  EXPECT_TRUE(is_heard(*late, report_of("node1")));
  expect_refusal("when too many others came");
  for (const int socket : crowd) ::close(socket);
}

TEST_F(TlsTransport, TakesNewCertificatesWithoutARestart) {
  const std::string good = read_text(made_ / "supervisor" / "identity.pem");
  const auto replace = [&](const std::string& text) {
    const fs::path file = made_ / "supervisor" / "identity.pem";
    replace_file(file, text);
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  };
  replace("nothing");
  const auto late = dial("node1", made_ / "monitors" / "node1");
  EXPECT_FALSE(is_heard(*late, report_of("node1"), 1.0));
  expect_refusal("no monitor can connect");
  make_credentials({.folder = made_, .nodes = {"node0", "node1"}, .now = wall_seconds()});
  EXPECT_NE(read_text(made_ / "supervisor" / "identity.pem"), good);
  EXPECT_TRUE(is_heard(*late, report_of("node1", 2)));
  expect_undisturbed();
}

TEST_F(TlsTransport, GivesAnAlarmBeforeItsCertificateExpires) {
  make_credentials({.folder = made_, .nodes = {"node0", "node1"}, .days = 13, .now = wall_seconds()});
  const auto late = dial("node1", made_ / "monitors" / "node1");
  EXPECT_TRUE(is_heard(*late, report_of("node1")));
  EXPECT_TRUE(comes_true([&] { return alarms_.find("expires in 13 days") != std::string::npos; })) << alarms_;
}

TEST_F(TlsTransport, DialsEverySupervisor) {
  const auto standby = listen_for_monitors(door_at(0, made_ / "supervisor"));
  const auto monitor = dial_supervisors(
      {door_at(supervisor_->port(), made_ / "monitor"), door_at(1, made_ / "monitor"),  // where nobody listens
       door_at(standby->port(), made_ / "monitor")},
      "node7");
  EXPECT_TRUE(is_heard(*monitor, report_of("node7")));
  EXPECT_TRUE(comes_true([&] {
    monitor->send(report_of("node7", 2));
    const std::optional<Report> got = standby->receive();
    return got && got->header.sequence == 2;
  }));
  ASSERT_TRUE(standby->send("node7", {.header = {.term = 2}}));
  EXPECT_TRUE(comes_true([&] {
    const std::optional<Order> order = monitor->receive();
    return order && order->header.term == 2;
  }));
}

}  // namespace
}  // namespace megalith::resilience
