#include "checkpoint/kept_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "core/file.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::checkpoint {
namespace {

using ::megalith::testing::TempDir;

class KeptTokenizer : public ::testing::Test {
 protected:
  // In a directory of their own, so that their names may be the same.
  std::string write(const std::string& name, const std::string& content) const {
    const auto path = dir_ / "given" / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << content;
    return path.string();
  }

  TempDir dir_;
  config::Tokenizer tokenizer_{
      .type = "GPT2BPETokenizer", .vocab_file = write("a/x", "the ids"), .merge_file = write("b/x", "the merges")};
  std::filesystem::path checkpoints_ = dir_ / "run/checkpoints";
};

TEST_F(KeptTokenizer, StaysWhenItsFilesAreGone) {
  EXPECT_TRUE(keep_tokenizer(tokenizer_, checkpoints_).empty());
  std::filesystem::remove_all(dir_ / "given");
  std::filesystem::rename(dir_ / "run", dir_ / "moved");
  const config::Tokenizer kept = kept_tokenizer(tokenizer_, dir_ / "moved/checkpoints");
  EXPECT_EQ(read_text(kept.vocab_file), "the ids");
  EXPECT_EQ(read_text(kept.merge_file), "the merges");
  EXPECT_EQ(kept.model, "");
  EXPECT_EQ(kept.type, "GPT2BPETokenizer");
}

TEST_F(KeptTokenizer, IsTheOneThatTheRunBeganWith) {
  keep_tokenizer(tokenizer_, checkpoints_);
  EXPECT_TRUE(keep_tokenizer(tokenizer_, checkpoints_).empty());
  write("a/x", "mended ids");
  EXPECT_TRUE(keep_tokenizer(tokenizer_, checkpoints_).empty()) << "nothing was learned yet";
  EXPECT_EQ(read_text(kept_tokenizer(tokenizer_, checkpoints_).vocab_file), "mended ids");

  std::filesystem::create_directory(checkpoints_ / "step-00000001");
  write("b/x", "other merges");
  const std::vector<std::string> notes = keep_tokenizer(tokenizer_, checkpoints_);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("is not the file that this run began with"), std::string::npos) << notes[0];
  EXPECT_EQ(read_text(kept_tokenizer(tokenizer_, checkpoints_).merge_file), "the merges");
}

TEST_F(KeptTokenizer, KeepsTheEndingOfAModel) {
  const config::Tokenizer one_file{.type = "HuggingFaceTokenizer", .model = write("tokenizer.json", "{}")};
  EXPECT_TRUE(keep_tokenizer(one_file, checkpoints_).empty());
  EXPECT_EQ(kept_tokenizer(one_file, checkpoints_).model, (checkpoints_ / "tokenizer/model.json").string());
}

TEST_F(KeptTokenizer, WithoutACopyTheFilesThatAreNamedCount) {
  EXPECT_EQ(kept_tokenizer(tokenizer_, checkpoints_).vocab_file, tokenizer_.vocab_file);
  const config::Tokenizer to_come{
      .type = "GPT2BPETokenizer", .vocab_file = "none", .merge_file = tokenizer_.merge_file};
  EXPECT_TRUE(keep_tokenizer(to_come, checkpoints_).empty());
  EXPECT_EQ(kept_tokenizer(to_come, checkpoints_).merge_file, tokenizer_.merge_file) << "half a tokenizer";
}

TEST_F(KeptTokenizer, ADirectoryThatCannotBeWrittenIsTold) {
  const std::vector<std::string> notes = keep_tokenizer(tokenizer_, write("a file", "") + "/checkpoints");
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_NE(notes[0].find("the tokenizer cannot be kept with the checkpoints"), std::string::npos) << notes[0];
}

TEST_F(KeptTokenizer, AnotherFileInItsPlaceIsFoundByItsDigest) {
  keep_tokenizer(tokenizer_, checkpoints_);
  const std::string digests = kept_digests(tokenizer_, checkpoints_);
  const config::Tokenizer kept = kept_tokenizer(tokenizer_, checkpoints_);
  check_kept_tokenizer(checkpoints_, digests);
  check_tokenizer_files(kept, digests);
  std::filesystem::create_directory(checkpoints_ / "step-00000001");
  std::ofstream(kept.merge_file) << "the swapped merges";
  for (const auto& check : {std::function<void()>([&] { check_kept_tokenizer(checkpoints_, digests); }),
                            std::function<void()>([&] { check_tokenizer_files(kept, digests); })}) {
    const std::string message = error_of(ErrorKind::data, check);
    EXPECT_NE(message.find("tokenizer/merges.txt is not the file that the model learned from"), std::string::npos)
        << message;
  }
  std::filesystem::remove(kept.merge_file);
  error_of(ErrorKind::data, [&] { check_kept_tokenizer(checkpoints_, digests); });
  EXPECT_TRUE(keep_tokenizer(tokenizer_, checkpoints_, digests).empty()) << "the same file is put back";
  check_kept_tokenizer(checkpoints_, digests);
  std::filesystem::remove(kept.merge_file);
  write("b/x", "other merges");
  EXPECT_EQ(keep_tokenizer(tokenizer_, checkpoints_, digests).size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(kept.merge_file));
  error_of(ErrorKind::data, [&] { check_tokenizer_files(tokenizer_, digests); });
  // A step that was moved without them.
  check_kept_tokenizer(dir_ / "elsewhere", digests);
}

}  // namespace
}  // namespace megalith::checkpoint
