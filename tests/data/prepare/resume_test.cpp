// What is there already: kept, gone on with, or refused.

#include <gtest/gtest.h>
#include <sys/file.h>

#include "data/prepare/prepare_fixture.h"

namespace megalith::data {
namespace {

using PrepareResume = PrepareTest;

TEST_F(PrepareResume, OverwritesOnlyWhenAsked) {
  auto options = single("in.txt", "old");
  EXPECT_EQ(run(options).shards_before, 0);
  EXPECT_EQ(run(options).shards_before, 1);  // the same again: nothing to do
  EXPECT_EQ(run(options).keys[0].counts.documents, 1);
  put("in.txt", "newer");
  expect_error(ErrorKind::user, {"out_text_document.bin exists", "--overwrite"}, [&] { run(options); });
  EXPECT_EQ(documents(), Texts{"old$"});
  options.overwrite = true;
  run(options);
  EXPECT_EQ(documents(), Texts{"newer$"});
  // Files of somebody else.
  options.overwrite = false;
  std::filesystem::remove(directory_ / "out_text_document.json");
  expect_error(ErrorKind::user, {"out_text_document.bin exists", "sidecar"}, [&] { run(options); });
}

TEST_F(PrepareResume, ExistingIsNotDone) {
  auto options = single("in.txt", "text");
  run(options);
  write_bytes(directory_ / "out_text_document.bin", "half");
  expect_error(ErrorKind::user, {"sizes"}, [&] { run(options); });
  options.overwrite = true;
  run(options);
  EXPECT_EQ(documents(), Texts{"text$"});
}

TEST_F(PrepareResume, AnotherConfigurationIsRefusedByTheManifest) {
  auto options = sharded(4);
  options.shards = 2;
  run(options);
  options.encode.append_eod = false;
  expect_error(ErrorKind::user, {"out.manifest.json", "append_eod"}, [&] { run(options); });
  options.encode.append_eod = true;
  options.shards = 4;
  expect_error(ErrorKind::user, {"4 files in 2 shards"}, [&] { run(options); });
  options.shards = 2;
  put("in4.jsonl", line_of("new"));
  expect_error(ErrorKind::user, {"5 files in 2 shards"}, [&] { run(options); });
  std::filesystem::remove(directory_ / "in4.jsonl");
  put("in3.jsonl", line_of("changed"));
  expect_error(ErrorKind::user, {"in3.jsonl"}, [&] { run(options); });
  options.overwrite = true;
  EXPECT_EQ(run(options).shards_before, 1);  // the first shard is as it was
  EXPECT_EQ(documents("out_01_text_document").back(), "changed$");
}

TEST_F(PrepareResume, TwoProcessesOnOneOutputAreDetected) {
  const auto options = single("in.txt", "text");
  const File journal = File::open_for_appending(directory_ / "out_text_document.journal");
  ASSERT_EQ(::flock(journal.descriptor(), LOCK_EX | LOCK_NB), 0);
  expect_error(ErrorKind::user, {"another process", "out_text_document.journal"}, [&] { run(options); });
}

TEST_F(PrepareResume, AFullDiskLeavesNothingWrongAndIsOvercome) {
  auto options = sharded(3);
  run(options);
  const auto expected = outputs();
  for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
  for (const char* place : {"file.write", "file.rename", "prepare.unit", "prepare.commit"}) {
    for (int at = 1;; ++at) {
      arm_failpoint(std::string(place) + "=io@" + std::to_string(at));
      bool failed = false;
      try {
        run(options);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::io);
        failed = true;
      }
      disarm_failpoints();
      run(options);
      ASSERT_EQ(outputs(), expected) << place << " " << at;
      for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
      if (!failed) break;
    }
  }
}

TEST_F(PrepareResume, ResumesBehindFinishedFilesAndDistrustsDamagedOnes) {
  auto options = sharded(5);
  run(options);
  const auto expected = outputs();
  const auto interrupt = [&] {
    for (const auto& file : expected) std::filesystem::remove(directory_ / file.first);
    arm_failpoint("prepare.unit=io@4");
    EXPECT_THROW(run(options), Error);
    disarm_failpoints();
    EXPECT_EQ(names_of(outputs()), (Texts{"out.manifest.json", "out_00_text_document.bin.part",
                                          "out_00_text_document.journal", "out_00_text_document.lengths.part"}));
  };
  interrupt();
  PrepareSummary summary = run(options);
  EXPECT_EQ(outputs(), expected);
  EXPECT_EQ(summary.progress.documents, 6 + 7);  // of the last two files
  EXPECT_EQ(summary.keys[0].counts.documents, 3 + 4 + 5 + 6 + 7);
  EXPECT_EQ(summary.progress.bytes, summary.progress.bytes_total);
  EXPECT_GT(summary.progress.bytes_resumed, 0);
  const auto damage = [&](const std::string& suffix, int64_t at, bool cut) {
    interrupt();
    const std::string path = directory_ / ("out_00_text_document" + suffix);
    std::string bytes = read_bytes(path);
    if (at < 0) at += std::ssize(bytes);
    if (cut) bytes.resize(static_cast<size_t>(at));
    if (!cut) bytes[static_cast<size_t>(at)] = static_cast<char>(bytes[static_cast<size_t>(at)] ^ 1);
    write_bytes(path, bytes);
    run(options);
    EXPECT_EQ(outputs(), expected) << suffix << at << cut;
  };
  for (const char* suffix : {".bin.part", ".lengths.part", ".journal"}) {
    damage(suffix, 5, false);
    damage(suffix, -9, false);
    damage(suffix, 11, true);
    damage(suffix, -3, true);
    damage(suffix, 0, true);
  }
}

}  // namespace
}  // namespace megalith::data
