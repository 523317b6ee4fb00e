#include "launch/folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/file.h"
#include "expect_error.h"
#include "launch/environment.h"
#include "launch/profiles/profile_reader.h"
#include "launch/storage.h"
#include "temp_dir.h"

namespace megalith::launch {
namespace {

Launch launch_in(const std::filesystem::path& run, const std::string& name) {
  Launch launch;
  launch.name = name;
  launch.verb = {"train"};
  launch.arguments = {"x=1"};
  launch.profile = default_profile("here", {"kind=local"});
  launch.run_directory = run;
  launch.folder = run / "launch" / name;
  launch.folder_in_job = launch.folder.string();
  launch.files = {{.name = "recipe.yaml", .text = "name: x\n"}};
  launch.number = launches_in(launch.folder) + 1;
  return launch;
}

class LaunchFolder : public ::testing::Test {
 protected:
  LaunchRecord submit(const Launch& launch) {
    LaunchRecord record = begin_folder(launch, "job.sh", "echo hello\n");
    finish_folder(record, {"12"}, environment_);
    return record;
  }

  testing::TempDir folder_;
  config::Lookup environment_ = lookup_in({{"XDG_STATE_HOME", (folder_ / "state").string()}});
};

TEST_F(LaunchFolder, HoldsAllThatIsKnown) {
  submit(launch_in(folder_ / "run", "gpt"));
  const LaunchRecord record = find_launch("gpt", environment_);
  EXPECT_EQ(record.name, "gpt");
  EXPECT_EQ(record.kind, "local");
  EXPECT_EQ(record.command, (std::vector<std::string>{"train", "x=1"}));
  EXPECT_EQ(record.ids, std::vector<std::string>{"12"});
  EXPECT_EQ(record.run_directory, folder_ / "run");
  EXPECT_EQ(read_text(record.file("job.sh")), "echo hello\n");
  EXPECT_EQ(read_text(record.file("recipe.yaml")), "name: x\n");
  EXPECT_NE(read_text(record.file("profile.yaml")).find("kind: local"), std::string::npos);
  struct stat info {};
  ASSERT_EQ(::stat(record.file(kSecretName).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  EXPECT_FALSE(record.ending());
  EXPECT_EQ(find_launch((folder_ / "run").string(), environment_).name, "gpt");
}

TEST_F(LaunchFolder, AnEarlierLaunchIsKeptBefore) {
  const LaunchRecord first = submit(launch_in(folder_ / "run", "gpt"));
  const std::string secret = read_text(first.file(kSecretName));
  const LaunchRecord second = submit(launch_in(folder_ / "run", "gpt"));
  EXPECT_EQ(second.number, 2);
  EXPECT_NE(read_text(second.file(kSecretName)), secret);
  EXPECT_EQ(read_text(second.folder / "before" / "1" / "secret"), secret);
  EXPECT_EQ(all_launches(environment_).size(), 1U);
}

TEST_F(LaunchFolder, OnlyOneLaunchesIntoItAtATime) {
  const Launch planned = launch_in(folder_ / "run", "gpt");
  {
    const File claim = claim_folder(planned);
    expect_parts(user_error_of([&] { claim_folder(planned); }), {"gpt is being launched by another process", "--name"});
    submit(planned);
  }
  expect_parts(user_error_of([&] { claim_folder(planned); }), {"being launched by another process"});
  const Launch next = launch_in(folder_ / "run", "gpt");
  const File claim = claim_folder(next);
  submit(next);
  EXPECT_EQ(find_launch("gpt", environment_).number, 2);
}

TEST_F(LaunchFolder, JournalAndEndingAreTheJobs) {
  const LaunchRecord record = submit(launch_in(folder_ / "run", "gpt"));
  EXPECT_TRUE(record.journal().empty());
  std::ofstream(record.file(kJournalName)) << "2026-11-18T12:00:00+0000 start 0 12 n[1-2]\n"
                                              "2026-11-18T13:00:00+0000 end 0 12 75 stopped early, step 3 saved\n"
                                              "2026-11-18T13:0";
  const auto journal = record.journal();
  ASSERT_EQ(journal.size(), 2U);
  EXPECT_TRUE(journal[0].starts);
  EXPECT_EQ(journal[0].detail, "n[1-2]");
  EXPECT_EQ(journal[1].code, 75);
  EXPECT_EQ(journal[1].detail, "stopped early, step 3 saved");
  std::ofstream(record.file(kEndedName)) << "2 the input is wrong\n";
  EXPECT_EQ(record.ending()->code, 2);
  EXPECT_EQ(record.ending()->reason, "the input is wrong");
}

TEST_F(LaunchFolder, NamesThatAreNoneAreRefused) {
  submit(launch_in(folder_ / "run", "gpt"));
  expect_parts(user_error_of([&] { find_launch("gptt", environment_); }), {"'gptt'", "did you mean 'gpt'?"});
  submit(launch_in(folder_ / "run", "other"));
  expect_parts(user_error_of([&] { find_launch((folder_ / "run").string(), environment_); }), {"2 launches"});
  for (const std::string& bad : std::vector<std::string>{"", "a/b", "-x", ".x", "a b", std::string(64, 'x')})
    expect_parts(user_error_of([&] { check_name(bad); }), {"--name"});
  std::ofstream(folder_ / "run/launch/gpt/launch.json") << "{}";
  expect_error(ErrorKind::data, {"launch.json", "not the record"}, [&] { read_record(folder_ / "run/launch/gpt"); });
}

TEST_F(LaunchFolder, RemovingItLeavesTheRun) {
  const LaunchRecord record = submit(launch_in(folder_ / "run", "gpt"));
  std::ofstream(folder_ / "run/hparams.yaml") << "x";
  remove_launch(record, environment_);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run/launch"));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "run/hparams.yaml"));
  EXPECT_TRUE(all_launches(environment_).empty());
}

TEST(Storage, SeesWhatIsMounted) {
  const testing::TempDir folder;
  const std::string here = folder.path().string();
  const Storage bare(default_profile("x", {"kind=slurm"}), "/work");
  EXPECT_EQ(bare.seen_here("data/x"), "/work/data/x");
  EXPECT_EQ(bare.seen_here("/data/x"), "/data/x");
  const Profile profile =
      default_profile("x", {"kind=slurm", "image=i", "mounts[0].source=" + here, "mounts[0].target=/data",
                            "mounts[1].source=/nowhere/x", "mounts[1].target=/data/deep",
                            "mounts[2].claim=c,mounts[2].target=/runs,mounts[2].seen_at=" + here});
  const Storage storage(profile, "/work");
  EXPECT_EQ(storage.seen_here("/data/a/b"), folder.path() / "a/b");
  EXPECT_EQ(storage.seen_here("/data"), folder.path());
  EXPECT_EQ(storage.seen_here("/data/deep/a"), std::nullopt);
  EXPECT_EQ(storage.seen_here("/database"), std::nullopt);
  EXPECT_EQ(storage.seen_here("/runs/a"), folder.path() / "a");
  EXPECT_EQ(storage.seen_here("relative"), std::nullopt);
}

TEST(LaunchJournal, NotesEachStartAndEndOnce) {
  const testing::TempDir folder;
  const LaunchRecord record{.name = "gpt", .folder = folder.path()};
  const JournalLine start{.time = "t0", .starts = true, .job = "pod-a", .detail = "n1"};
  const JournalLine end{.time = "t1", .job = "pod-a", .code = 75, .detail = "stopped early"};
  const JournalLine second{.time = "t2", .starts = true, .job = "pod-b", .detail = "n2"};
  record.note({start});
  record.note({start, end});
  record.note({second, end});
  EXPECT_EQ(read_text(record.file(kJournalName)),
            "t0 start 0 pod-a n1\nt1 end 0 pod-a 75 stopped early\nt2 start 1 pod-b n2\n");
  EXPECT_EQ(record.journal().size(), 3U);
}

}  // namespace
}  // namespace megalith::launch
