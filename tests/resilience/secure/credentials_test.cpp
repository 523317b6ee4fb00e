#include "resilience/secure/credentials.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::resilience {
namespace {

namespace fs = std::filesystem;
constexpr double kDay = 24 * 3600.0;

class CredentialsTest : public ::testing::Test {
 protected:
  fs::path make(const std::string& name, double days_ago = 0.0, int64_t days = kCredentialDays) const {
    make_credentials({.folder = dir_.path() / name, .nodes = {"node4"}, .days = days, .now = now_ - days_ago * kDay});
    return dir_.path() / name;
  }
  void expect_refused(const fs::path& folder, const std::vector<std::string>& parts) const {
    expect_error(ErrorKind::user, parts, [&] { load_credentials(folder, now_); });
  }
  static int mode_of(const fs::path& path) {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0) << path;
    return static_cast<int>(info.st_mode & 07777);
  }

  testing::TempDir dir_;
  double now_ = wall_seconds();
};

TEST_F(CredentialsTest, AreMadeByRole) {
  const fs::path made = make("made");
  const std::pair<const char*, Identity> cases[] = {{"supervisor", {.role = Role::supervisor}},
                                                    {"monitor", {.role = Role::monitor}},
                                                    {"monitors/node4", {.role = Role::monitor, .node = "node4"}},
                                                    {"operator", {.role = Role::human_operator}},
                                                    {"viewer", {.role = Role::viewer}}};
  for (const auto& [folder, identity] : cases) {
    const Credentials loaded = load_credentials(made / folder, now_);
    EXPECT_EQ(loaded.identity, identity);
    EXPECT_NEAR(loaded.expires - now_, 400 * kDay, 2.0);
    EXPECT_EQ(mode_of(made / folder / "identity.pem"), 0600);
    EXPECT_EQ(mode_of(made / folder), 0700);
  }
}

// What goes to nodes can make no certificate.
TEST_F(CredentialsTest, KeepTheKeyOfTheAuthorityApart) {
  const fs::path made = make("made");
  EXPECT_EQ(mode_of(made / "ca" / "key.pem"), 0600);
  const std::string key = read_text(made / "ca" / "key.pem");
  for (const auto& entry : fs::recursive_directory_iterator(made)) {
    if (!entry.is_regular_file() || entry.path().parent_path() == made / "ca") continue;
    EXPECT_EQ(read_text(entry.path()).find(key), std::string::npos) << entry.path();
    EXPECT_NE(entry.path().filename(), "key.pem");
  }
}

TEST_F(CredentialsTest, AreRenewedByTheSameAuthority) {
  const fs::path made = make("made");
  const std::string authority = read_text(made / "monitor" / "ca.pem");
  const std::string identity = read_text(made / "monitor" / "identity.pem");
  make("made");
  EXPECT_EQ(read_text(made / "monitor" / "ca.pem"), authority);
  EXPECT_NE(read_text(made / "monitor" / "identity.pem"), identity);
  load_credentials(made / "monitor", now_);
}

TEST_F(CredentialsTest, AreNotMadeAmongOtherFiles) {
  make_directory(dir_.path() / "home");
  replace_file(dir_.path() / "home" / "thesis.txt", "mine");
  expect_error(ErrorKind::user, {"home", "holds no credentials"}, [&] { make("home"); });
  expect_error(ErrorKind::user, {"../x", "no name of a node"},
               [&] { make_credentials({.folder = dir_.path() / "names", .nodes = {"../x"}, .now = now_}); });
  const fs::path made = make("made");
  replace_file(made / "ca" / "ca.pem", "torn");
  expect_error(ErrorKind::user, {"made/ca", "no certificate of an authority"}, [&] { make("made"); });
}

TEST_F(CredentialsTest, SayWhatIsWrongWithThem) {
  expect_refused(dir_.path() / "none", {"none/identity.pem", "--make-credentials"});
  const fs::path made = make("made");
  const fs::path other = make("other");

  expect_refused(make("old", 401.0) / "monitor", {"identity.pem", "expired on"});
  expect_refused(make("early", -3.0) / "monitor", {"not valid before"});

  replace_file(made / "viewer" / "ca.pem", read_text(other / "viewer" / "ca.pem"));
  expect_refused(made / "viewer", {"identity.pem", "not of the authority in ca.pem"});

  const std::string mine = read_text(made / "monitor" / "identity.pem");
  const std::string theirs = read_text(other / "monitor" / "identity.pem");
  const size_t key = mine.find("-----BEGIN PRIVATE KEY");
  replace_file(made / "monitor" / "identity.pem",
               mine.substr(0, key) + theirs.substr(theirs.find("-----BEGIN PRIVATE KEY")));
  ::chmod((made / "monitor" / "identity.pem").c_str(), 0600);
  expect_refused(made / "monitor", {"the key is not that of the certificate"});
  replace_file(made / "monitor" / "identity.pem", mine.substr(0, key));
  ::chmod((made / "monitor" / "identity.pem").c_str(), 0600);
  expect_refused(made / "monitor", {"holds no certificate and its key"});

  ::chmod((made / "operator" / "identity.pem").c_str(), 0644);
  expect_refused(made / "operator", {"operator/identity.pem", "0644", "chmod 600"});
}

TEST_F(CredentialsTest, AreOfOneRoleAndOneNode) {
  const fs::path made = make("made");
  expect_error(ErrorKind::user, {"monitor/identity.pem", "a monitor", "a supervisor is needed"},
               [&] { load_credentials(made / "monitor", now_, Role::supervisor); });
  expect_error(ErrorKind::user, {"viewer/identity.pem", "a viewer", "a monitor is needed"},
               [&] { load_credentials(made / "viewer", now_, Role::monitor, "node4"); });
  expect_error(ErrorKind::user, {"monitors/node4/identity.pem", "the monitor of node4", "this node is node5"},
               [&] { load_credentials(made / "monitors" / "node4", now_, Role::monitor, "node5"); });
  load_credentials(made / "monitors" / "node4", now_, Role::monitor, "node4");
  load_credentials(made / "monitor", now_, Role::monitor, "node5");
}

TEST_F(CredentialsTest, GiveAnAlarmFourteenDaysBeforeTheyExpire) {
  const Credentials made = load_credentials(make("made") / "monitor", now_);
  EXPECT_EQ(expiry_alarm(made, now_), "");
  EXPECT_EQ(expiry_alarm(made, now_ + 385 * kDay), "");
  expect_parts(expiry_alarm(made, now_ + 387 * kDay), {"monitor/identity.pem", "13 days", "--make-credentials"});
}

}  // namespace
}  // namespace megalith::resilience
