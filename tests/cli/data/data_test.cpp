#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "cli/run_program.h"
#include "core/process/exit_codes.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

// A folder with a text of a few hundred words, and what the program says about it.
class DataVerbs : public ::testing::Test {
 protected:
  DataVerbs() {
    std::string text;
    for (int i = 0; i < 60; ++i)
      text += "The old mill stood by river number " + std::to_string(i) + ", and turned.\n\n";
    write("text.txt", text);
  }

  std::string path() const { return dir_.path().string(); }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(dir_ / name, std::ios::binary) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream file(dir_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The exit code, and all of these words in what is printed.
  std::string expect(int exit_code, const std::string& arguments, const std::vector<std::string>& words = {}) const {
    const Outcome outcome = run_program(arguments, path());
    EXPECT_EQ(outcome.exit_code, exit_code) << arguments << "\n" << outcome.output;
    for (const std::string& word : words) {
      EXPECT_NE(outcome.output.find(word), std::string::npos) << arguments << " does not say '" << word << "'\n"
                                                              << outcome.output;
    }
    return outcome.output;
  }

  TempDir dir_;
};

TEST_F(DataVerbs, TokenizeDividesItsInputsAmongWorkers) {
  for (const char* name : {"part2.jsonl", "part10.jsonl", "part3.jsonl"})
    write(name, std::string("{\"text\": \"of ") + name + "\"}\n");
  write("list.txt", "part2.jsonl\npart10.jsonl\npart3.jsonl\n");
  // In natural order: 2, 3, 10.
  expect(0, "data tokenize --input 'part*.jsonl' --output-dir tokens --worker 1/2",
         {"wrote tokens/part3.jsonl_text_document"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "tokens/part2.jsonl_text_document.bin"));
  expect(0, "data tokenize --input-list list.txt --output-dir tokens --worker 0/2",
         {"wrote tokens/part2.jsonl_text_document", "wrote tokens/part10.jsonl_text_document"});
  expect(0, "data tokenize --input-list list.txt --output-dir tokens",
         {"complete before: tokens/part10.jsonl_text_document"});
  expect(0, "data tokenize --input part2.jsonl part3.jsonl part10.jsonl --output-prefix one");
  expect(0, "data merge --input 'tokens/*_document' --output-prefix all", {"3 documents", "3 datasets"});
  EXPECT_EQ(read("all.bin"), read("one_text_document.bin"));
  EXPECT_EQ(read("all.idx"), read("one_text_document.idx"));
  expect(2, "data tokenize --input part2.jsonl", {"--output-prefix", "--output-dir"});
  expect(2, "data tokenize --input part2.jsonl --output-prefix x --output-dir y", {"--output-prefix", "--output-dir"});
  expect(2, "data tokenize --input part2.jsonl --output-prefix x --worker 0/2", {"--worker needs --output-dir"});
  expect(2, "data merge --input 'none*' --output-prefix x", {"no file matches none*.idx"});
}

TEST_F(DataVerbs, ExtractAndConcatTakeLists) {
  write("a.jsonl", "{\"text\": \"a\"}\n");
  write("list.txt", "a.jsonl\n");
  expect(0, "data extract --input-list list.txt --output-dir text", {"1 file (0 were there before), 1 line,"});
  expect(0, "data concat --input-list list.txt --output-dir chunks", {"1 file "});
  EXPECT_EQ(read("text/a.jsonl"), read("chunks/train_chunk_0.jsonl"));
  expect(2, "data extract --input-list none --output-dir text", {"the list of inputs none does not exist"});
  expect(2, "data extract --output-dir text", {"no input file given"});
}

TEST_F(DataVerbs, IndexAsksForAsManyValidationSamplesAsMegatron) {
  expect(0, "data tokenize --input text.txt --output-prefix bytes --split-paragraphs --append-eod");
  write("run.yaml",
        "trainer: {max_steps: 100, val_check_interval: 30, limit_val_batches: 5}\n"
        "model:\n"
        "  global_batch_size: 8\n"
        "  micro_batch_size: 8\n"
        "  encoder_seq_length: 16\n"
        "  data:\n"
        "    data_impl: mmap\n"
        "    index_mapping_dir: indices\n"
        "    data_prefix: {train: [1.0, bytes_text_document], validation: [1.0, bytes_text_document],"
        " test: [1.0, bytes_text_document]}\n");
  expect(0, "data index -c run.yaml", {"train  800 samples asked for", "valid  160 samples asked for"});
}

// Two vocabularies of the same size, and a dataset of each.
class TwoTokenizers : public DataVerbs {
 protected:
  TwoTokenizers() {
    std::string other;
    for (int i = 0; i < 60; ++i) other += "zebra quagga okapi gnu eland " + std::to_string(i) + "\n";
    write("other.txt", other);
    for (const char* name : {"text", "other"}) {
      const std::string of = name;
      expect(0, "data train-tokenizer --vocab-size 300 --input " + of + ".txt --output-dir " + of);
      expect(0, "data tokenize --append-eod --split-paragraphs --input text.txt --output-prefix by_" + of + files(of));
    }
  }

  static std::string files(const std::string& of) {
    return " --tokenizer-type GPT2BPETokenizer --vocab-file " + of + "/vocab.json --merge-file " + of + "/merges.txt";
  }
  static std::string keys(const std::string& of) {
    return " model.tokenizer.type=GPT2BPETokenizer model.tokenizer.vocab_file=" + of +
           "/vocab.json model.tokenizer.merge_file=" + of + "/merges.txt";
  }
  std::string digest_of(const std::string& of) const {
    const std::string sidecar = read("by_" + of + "_text_document.json");
    const std::string key = "\"digest\": \"";
    return sidecar.substr(sidecar.find(key) + key.size(), 16);
  }
};

TEST_F(TwoTokenizers, AreNotMistakenForEachOther) {
  const std::string right = digest_of("text");
  const std::string wrong = digest_of("other");
  ASSERT_NE(right, wrong);
  expect(0, "data check by_text_text_document" + files("text"), {"completed successfully"});
  expect(2, "data check by_text_text_document" + files("other"), {right, wrong, "by_text_text_document"});

  const std::string merge = "data merge --input by_text_text_document by_other_text_document --output-prefix ";
  expect(2, merge + "both", {right, wrong, "by_text_text_document", "by_other_text_document", "--force"});
  expect(0, merge + "both --force");
  expect(0, "data merge --input by_text_text_document --output-prefix same");
  expect(0, "data check same" + files("text"));
  expect(2, "data check same" + files("other"), {right, wrong});

  const std::string train =
      "train trainer.max_steps=2 trainer.accelerator=cpu model.micro_batch_size=1 model.global_batch_size=1 "
      "model.encoder_seq_length=8 model.num_layers=1 model.hidden_size=8 model.num_attention_heads=2 "
      "model.data.data_impl=mmap model.data.splits_string=1,0,0 exp_manager.explicit_log_dir=run "
      "model.data.data_prefix=[by_text_text_document]";
  expect(2, train + keys("other"), {right, wrong, "by_text_text_document"});
  EXPECT_FALSE(std::filesystem::exists(dir_ / "run"));
  expect(2, train, {right, "ByteTokenizer"});
  expect(0, train + keys("text"));
  expect(2, "evaluate --checkpoint run --split train model.data.data_prefix=[by_other_text_document]", {right, wrong});
  // What Megatron made has no sidecar.
  std::filesystem::remove(dir_ / "by_text_text_document.json");
  expect(0, train + keys("other") + " exp_manager.explicit_log_dir=run2");
}

TEST_F(DataVerbs, FilesOfATokenizerSayWhichOneIsMeant) {
  expect(0, "data train-tokenizer --input text.txt --vocab-size 300 --output-dir bpe");
  const std::string prepare = "data prepare --input text.txt --output-prefix out/";
  // Both files can only be GPT-2's.
  expect(0, prepare + "a --vocab-file bpe/vocab.json --merge-file bpe/merges.txt",
         {"tokenizer: GPT2BPETokenizer (grammar gpt2, digest "});
  expect(2, prepare + "b --vocab-file bpe/vocab.json",
         {"--vocab-file", "without --tokenizer-type", "GPT2BPETokenizer"});
  expect(2, prepare + "b --tokenizer-model bpe/vocab.json",
         {"--tokenizer-model", "without --tokenizer-type", "HuggingFaceTokenizer"});
  expect(2, prepare + "b --tokenizer-type ByteTokenizer --vocab-file bpe/vocab.json",
         {"--vocab-file", "ByteTokenizer does not use"});
  for (const char* verb :
       {"check out", "info out", "encode x", "decode 1", "tokenize --input text.txt --output-prefix b"}) {
    expect(2, "data " + std::string(verb) + " --vocab-file bpe/vocab.json", {"without --tokenizer-type"});
  }
  expect(0, prepare + "bytes", {"tokenizer: ByteTokenizer"});
  expect(0, "data tokenize --input text.txt --output-prefix one", {"by ByteTokenizer"});
}

TEST_F(DataVerbs, ATokenizerThatIsNotThereIsNamed) {
  const std::string prepare = "data prepare --input text.txt --output-prefix a ";
  expect(2, prepare + "--vocab-file nope.json --merge-file nope.txt", {"nope.json", "does not exist"});
  expect(2, prepare + "--tokenizer-type HuggingFaceTokenizer --tokenizer-model nope/tokenizer.json",
         {"nope/tokenizer.json", "does not exist"});
  expect(2, prepare + "--tokenizer-type Foo",
         {"Foo", "GPT2BPETokenizer", "HuggingFaceTokenizer", "TikTokenizer", "ByteTokenizer"});
  expect(2,
         "train model.data.data_impl=mock model.tokenizer.type=HuggingFaceTokenizer "
         "model.tokenizer.model=nope/tokenizer.json",
         {"cannot open nope/tokenizer.json"});
}

TEST_F(DataVerbs, TrainTokenizerReadsWhatPrepareReads) {
  const std::string train = "data train-tokenizer --vocab-size 280 --output-dir ";
  std::string lines;
  for (int i = 0; i < 40; ++i)
    lines += R"({"body": "river and mill\n", "text": "other"})"
             "\n";
  write("corpus.jsonl", lines);
  write("plain.txt", std::string("river and mill\n") + "\n");
  ASSERT_EQ(std::system(("gzip -k " + (dir_ / "corpus.jsonl").string()).c_str()), 0);
  expect(0, train + "a --input 'corp*.jsonl' --json-keys body", {"40 documents", "600 bytes"});
  expect(0, train + "b --input corpus.jsonl.gz --json-keys body", {"40 documents", "600 bytes"});
  write("list", "corpus.jsonl.gz\n");
  expect(0, train + "c --input-list list --json-keys body");
  EXPECT_EQ(read("a/merges.txt"), read("b/merges.txt"));
  EXPECT_EQ(read("a/merges.txt"), read("c/merges.txt"));
  EXPECT_EQ(read("a/merges.txt").find("text"), std::string::npos) << "JSON itself is no text";
  expect(2, train + "d --input corpus.jsonl --json-keys nope", {"corpus.jsonl:1:", "nope"});
  expect(2, train + "d --input nope.txt", {"nope.txt"});
  expect(2, train + "d --input 'nope/*.txt'", {"nope/*.txt"});
  expect(2, train + "d", {"--input"});
}

TEST_F(DataVerbs, TextMustBeUtf8) {
  write("latin.txt", "ok\ncaf\xe9\n");
  write("wide.txt", std::string("\xff\xfeo\0k\0", 6));
  const std::string tokenize = "data tokenize --output-prefix out --input ";
  expect(2, tokenize + "latin.txt", {"latin.txt:2:", "byte 6:", "invalid UTF-8"});
  expect(2, tokenize + "wide.txt", {"wide.txt", "looks like UTF-16"});
  expect(2, "data train-tokenizer --output-dir t --input latin.txt", {"latin.txt:2:", "invalid UTF-8"});
  expect(0, tokenize + "latin.txt --bad-text replace", {"1 document, 10 tokens from 10 bytes by"});
}

TEST_F(DataVerbs, AbsurdCountsAreRefused) {
  for (const char* verb :
       {"prepare --input text.txt --output-prefix a", "tokenize --input text.txt --output-prefix a",
        "extract --input text.txt --output-dir a", "concat --input text.txt --output-dir a", "check text"}) {
    for (const char* count : {"100000", "-3"}) {
      expect(2, std::string("data ") + verb + " --workers " + count, {"--workers must be", "4096", count});
    }
    expect(2, std::string("data ") + verb + " --workers x", {"--workers must be a whole number, not x"});
  }
  expect(2, "data download http://127.0.0.1:1/x --output-dir a --jobs 100000", {"--jobs", "4096"});
  expect(2, "data prepare --input text.txt --output-prefix a --shards 0", {"--shards must be at least 1, not 0"});
  expect(2, "data prepare --input text.txt --output-prefix a --files-per-shard 0", {"--files-per-shard"});
}

TEST_F(DataVerbs, WhatIsNotAFileIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((dir_ / "fifo.txt").c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((dir_ / "set.idx").c_str(), 0600), 0);
  write("set.bin", "");
  const auto refused = [&](const std::string& arguments, const std::string& what) {
    expect(2, arguments, {what, "where a file is expected"});
  };
  refused("data prepare --input fifo.txt --output-prefix a", "fifo.txt is a FIFO");
  refused("data prepare --input /dev/zero --format text --output-prefix a", "/dev/zero is a device");
  refused("data train-tokenizer --input fifo.txt --output-dir a", "fifo.txt is a FIFO");
  refused("data encode --input fifo.txt", "fifo.txt is a FIFO");
  refused("data encode --vocab-file fifo.txt --merge-file fifo.txt x", "fifo.txt is a FIFO");
  refused("data prepare --input-list fifo.txt --output-prefix a", "fifo.txt is a FIFO");
  refused("data download --list fifo.txt --output-dir a", "fifo.txt is a FIFO");
  refused("data info set", "set.idx is a FIFO");
  refused("train trainer.accelerator=cpu model.data.data_impl=mmap model.data.data_prefix=[set]", "set.idx is a FIFO");
  std::filesystem::create_directory(dir_ / "folder");
  expect(2, "data prepare --input folder --output-prefix a", {"folder is a directory", "folder/*.jsonl.zst"});
}

TEST_F(DataVerbs, TheFormatCanBeSaid) {
  write("corpus.dat", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  expect(2, "data tokenize --input corpus.dat --output-prefix a", {"corpus.dat", "--format", "jsonl, text or parquet"});
  expect(0, "data tokenize --input corpus.dat --format jsonl --output-prefix a", {"2 documents"});
  expect(0, "data tokenize --input corpus.dat --format text --output-prefix b", {"1 document, "});
  write("corpus.parquet", "PAR1");
  expect(2, "data tokenize --input corpus.parquet --output-prefix c", {"corpus.parquet: this", "Parquet"});
  expect(2, "data tokenize --input corpus.parquet --format jsonl --output-prefix c", {"a Parquet file"});
  write("corpus.bz2", "BZh91AY&SY");
  expect(2, "data tokenize --input corpus.bz2 --format jsonl --output-prefix c", {"corpus.bz2", "bzip2"});
}

TEST_F(DataVerbs, PrepareAndInfoSayWhatWasMade) {
  write("more.jsonl", "{\"text\": \"a\"}\n{\"no\": \"b\"}\n");
  const std::string prepare = "data prepare --input more.jsonl --output-prefix out/set --on-error skip --append-eod";
  expect(0, prepare, {"out/set_00_text_document.bin, .idx and .json", "complete: 1 of 1 shard;"});
  expect(0, prepare, {"1 of 1 shard, 1 of them before this run"});
  expect(0, "data info out/set_00_text_document",
         {"tokenizer: ByteTokenizer, 257 ids, documents end with 256", "made from 1 file", "more.jsonl",
          "skipped: 1 (missing key)"});
  std::filesystem::remove(dir_ / "out/set_00_text_document.json");
  expect(0, "data info out/set_00_text_document", {"no sidecar .json"});
}

TEST_F(DataVerbs, DownloadKeepsATokenToItself) {
  const std::string download = "data download --output-dir a ";
  expect(2, download + "--list nope", {"nope", "does not exist"});
  write("token", "hf_secret\n");
  const std::string in_the_clear = expect(2, download + "--token-file token http://example.org/x", {"https only"});
  EXPECT_EQ(in_the_clear.find("hf_secret"), std::string::npos);
  expect(2, download + "--token-env NO_SUCH_VARIABLE https://example.org/x", {"NO_SUCH_VARIABLE is not set"});
  expect(2, download + "--header nonsense https://example.org/x", {"Name: value"});
  // Nobody listens there.
  const std::string failed = expect(kExitIo, download + "--attempts 1 --token-file token http://127.0.0.1:1/x",
                                    {"1 file could not be fetched"});
  EXPECT_EQ(failed.find("hf_secret"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "a/x.part"));
}

}  // namespace
}  // namespace megalith::cli::testing
