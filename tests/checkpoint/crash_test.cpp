// A save that dies at any point leaves the previous checkpoint the latest one, or commits the new one whole.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/file_names.h"
#include "checkpoint/fixtures.h"
#include "checkpoint/store.h"
#include "core/file.h"
#include "core/process/failpoint.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

namespace fs = std::filesystem;
using test::ExampleRun;
using testing::TempDir;

struct Disarm {
  ~Disarm() { disarm_failpoints(); }
};

// Saves in a child process that the failpoint ends. True if it was reached.
bool save_and_crash(const fs::path& directory, const ExampleRun& run, const std::string& failpoint) {
  const pid_t child = ::fork();
  if (child == 0) {
    arm_failpoint(failpoint);
    Store(directory, 1).save(run.snapshot());
    std::_Exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

TEST(Crash, AtEveryPlace) {
  const std::pair<const char*, int64_t> cases[] = {{"checkpoint.before_shard=exit", 10},
                                                   {"file.write=exit@1", 10},
                                                   {"checkpoint.before_manifest=exit", 10},
                                                   {"file.write=exit@2", 10},
                                                   {"file.rename=exit@1", 10},
                                                   {"checkpoint.after_manifest=exit", 20},
                                                   {"file.write=exit@3", 20},
                                                   {"file.rename=exit@2", 20}};
  for (const auto& [failpoint, expected] : cases) {
    const TempDir directory;
    Store store(directory.path(), 1);
    const ExampleRun before(10);
    const ExampleRun after(20);
    store.save(before.snapshot());
    ASSERT_TRUE(save_and_crash(directory.path(), after, failpoint)) << failpoint;
    const Latest latest = store.latest_verified();
    ASSERT_EQ(latest.step, expected) << failpoint;
    EXPECT_EQ(latest.passed_over.size(), expected == 10 ? 1u : 0u) << failpoint;
    Loaded loaded = store.open(expected);
    EXPECT_TRUE((expected == 10 ? before : after).equals(loaded)) << failpoint;

    // The run comes back to the step and saves it.
    EXPECT_TRUE(store.save(after.snapshot()).warnings.empty());
    Loaded again = store.open(20);
    EXPECT_TRUE(after.equals(again)) << failpoint;
    EXPECT_EQ(store.list().size(), 1u) << failpoint;
  }
}

// `path` and everything under it, by content.
std::string fingerprint(const fs::path& path) {
  std::vector<std::string> parts;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) parts.push_back(entry.path().string() + " " + digest_of(test::bytes_of(entry.path())));
  }
  std::sort(parts.begin(), parts.end());
  std::string all;
  for (const std::string& part : parts) all += part + "\n";
  return all;
}

TEST(DiskFull, LeavesThePreviousCheckpointsUntouched) {
  const Disarm disarm;
  const TempDir directory;
  Store store(directory.path());
  store.save(ExampleRun(10).snapshot());
  const std::string before = fingerprint(directory.path());
  const ExampleRun run(20);
  for (const char* failpoint : {"checkpoint.before_shard=io", "file.write=io@1", "checkpoint.before_manifest=io",
                                "file.write=io@2", "file.rename=io@1"}) {
    disarm_failpoints();
    arm_failpoint(failpoint);
    error_of(ErrorKind::io, [&] { store.save(run.snapshot()); });
    EXPECT_EQ(fingerprint(directory.path()), before) << failpoint;
    EXPECT_FALSE(fs::exists(directory / "step-00000020")) << failpoint;
  }
  disarm_failpoints();
  store.save(run.snapshot());
  EXPECT_EQ(store.latest_verified().step, 20);
}

TEST(DiskFull, WhileSavingAStepAgainKeepsItsFirstVersion) {
  const Disarm disarm;
  const TempDir directory;
  Store store(directory.path());
  const ExampleRun run(20);
  store.save(run.snapshot());
  const std::string before = fingerprint(directory.path());
  for (const char* failpoint : {"file.write=io@1", "file.write=io@2", "file.rename=io@1"}) {
    disarm_failpoints();
    arm_failpoint(failpoint);
    error_of(ErrorKind::io, [&] { store.save(run.snapshot()); });
    EXPECT_EQ(fingerprint(directory.path()), before) << failpoint;
  }
}

TEST(DiskFull, AfterTheCommitIsAWarning) {
  const Disarm disarm;
  const TempDir directory;
  Store store(directory.path());
  arm_failpoint("file.write=io@3");
  const SaveResult result = store.save(ExampleRun(20).snapshot());
  ASSERT_EQ(result.warnings.size(), 1u);
  EXPECT_NE(result.warnings[0].find("tracker file"), std::string::npos);
  EXPECT_EQ(store.latest_verified().step, 20);
}

// A run that was complete then saves no more, and its next start has it right.
TEST(Crash, BetweenCommitAndTrackerIsMadeGood) {
  const TempDir directory;
  Store store(directory.path());
  const fs::path tracker = directory / std::string(kTrackerName);
  store.catch_up_tracker();
  EXPECT_FALSE(fs::exists(tracker));
  store.save(ExampleRun(10).snapshot());
  store.save(ExampleRun(20).snapshot());
  fs::create_directory(directory / "step-00000030");  // not committed
  replace_file(tracker, "10");
  store.catch_up_tracker();
  EXPECT_EQ(test::bytes_of(tracker), "20");
  fs::copy_file(tracker, fs::path(tracker) += ".part");
  store.catch_up_tracker();
  EXPECT_EQ(test::bytes_of(tracker), "20");
  EXPECT_FALSE(fs::exists(fs::path(tracker) += ".part"));
}

}  // namespace
}  // namespace megalith::checkpoint
