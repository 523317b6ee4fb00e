#include "launch/ranks/secret.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "core/file.h"
#include "expect_error.h"
#include "launch/environment.h"
#include "temp_dir.h"

namespace megalith::launch {
namespace {

std::filesystem::path file_of(const testing::TempDir& folder, const std::string& content, mode_t mode) {
  const std::filesystem::path path = folder / "secret";
  std::ofstream(path) << content;
  ::chmod(path.c_str(), mode);
  return path;
}

// The exit code of a process of another user, in this group beside its own: 0 where it reads "quiet", 2 where it is
// refused.
int read_as(uid_t user, gid_t group, const std::filesystem::path& file) {
  const pid_t process = ::fork();
  if (process == 0) {
    constexpr gid_t kOwnGroup = 65534;
    if (::setgroups(1, &group) != 0 || ::setgid(kOwnGroup) != 0 || ::setuid(user) != 0) std::_Exit(1);
    try {
      std::_Exit(read_secret_file(file) == "quiet" ? 0 : 1);
    } catch (const Error& error) {
      std::_Exit(exit_code(error.kind()));
    }
  }
  int status = 0;
  ::waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Secret, AFileOfItsOwnerIsRead) {
  const testing::TempDir folder;
  const auto path = file_of(folder, "quiet\n", 0600);
  EXPECT_EQ(secret_of_run(lookup_in({{"MEGALITH_STORE_SECRET_FILE", path.string()}})), "quiet");
  ::chmod(path.c_str(), 0400);
  EXPECT_EQ(read_secret_file(path), "quiet");
  std::filesystem::create_symlink(path, folder / "link");
  EXPECT_EQ(read_secret_file(folder / "link"), "quiet");
}

TEST(Secret, TheVariableStays) {
  EXPECT_EQ(secret_of_run(lookup_in({{"MEGALITH_STORE_SECRET", "by hand"}})), "by hand");
  EXPECT_EQ(secret_of_run(lookup_in({})), "");
}

TEST(Secret, WhatOthersCanReadIsRefused) {
  const testing::TempDir folder;
  const auto path = file_of(folder, "loud", 0600);
  for (const mode_t mode : {0644, 0640, 0604, 0660, 0601}) {
    ::chmod(path.c_str(), mode);
    expect_parts(user_error_of([&] { read_secret_file(path); }), {"MEGALITH_STORE_SECRET_FILE", "mode 0", "chmod 600"});
  }
}

// As a pod sees a Secret: root's, mode 0440 for the pods' group (fsGroup), behind two links.
TEST(Secret, AMountedSecretOfKubernetesIsRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make such a file";
  const testing::TempDir folder;
  constexpr uid_t kUser = 1000;
  constexpr gid_t kGroup = 1000, kOther = 1001;
  const std::filesystem::path mount = folder.path();
  std::filesystem::create_directory(mount / "..2026_01_01");
  std::filesystem::create_directory_symlink("..2026_01_01", mount / "..data");
  std::filesystem::create_symlink("..data/secret", mount / "secret");
  std::ofstream(mount / "..data/secret") << "quiet\n";
  for (const auto& directory : {mount, mount / "..2026_01_01"}) ::chmod(directory.c_str(), 0755);
  ASSERT_EQ(::chown((mount / "..data/secret").c_str(), 0, kGroup), 0);
  ASSERT_EQ(::chmod((mount / "..data/secret").c_str(), 0440), 0);
  EXPECT_EQ(read_as(kUser, kGroup, mount / "secret"), 0);
  EXPECT_EQ(read_as(kUser, kOther, mount / "secret"), 2);
  ASSERT_EQ(::chmod((mount / "..data/secret").c_str(), 0460), 0);
  EXPECT_EQ(read_as(kUser, kGroup, mount / "secret"), 2) << "its group can write to it";
}

TEST(Secret, WhatIsNoSecretIsRefused) {
  const testing::TempDir folder;
  EXPECT_NE(user_error_of([&] { read_secret_file(folder / "missing"); }).find("every node sees"), std::string::npos);
  expect_parts(user_error_of([&] { read_secret_file(folder.path()); }), {"not a file"});
  expect_parts(user_error_of([&] { read_secret_file(file_of(folder, "\n", 0600)); }), {"is empty"});
  expect_parts(user_error_of([&] { read_secret_file(file_of(folder, std::string(5000, 'x'), 0600)); }), {"no secret"});
  expect_parts(user_error_of([&] {
                 secret_of_run(lookup_in({{"MEGALITH_STORE_SECRET", "a"}, {"MEGALITH_STORE_SECRET_FILE", "b"}}));
               }),
               {"both set"});
}

TEST(Secret, EachFileIsNewAndItsOwners) {
  const testing::TempDir folder;
  const mode_t before = ::umask(0);
  write_secret_file(folder / "one");
  ::umask(before);
  write_secret_file(folder / "two");
  struct stat info {};
  ASSERT_EQ(::stat((folder / "one").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_EQ(read_secret_file(folder / "one").size(), 64U);
  EXPECT_NE(read_secret_file(folder / "one"), read_secret_file(folder / "two"));
  EXPECT_THROW(write_secret_file(folder / "one"), Error);
}

}  // namespace
}  // namespace megalith::launch
