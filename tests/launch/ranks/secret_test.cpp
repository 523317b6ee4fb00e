#include "launch/ranks/secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
