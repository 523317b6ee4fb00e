// Killed at any moment and run again, `prepare` makes the bytes of a run that was never killed.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/clock.h"
#include "data/prepare/prepare.h"
#include "data/prepare/prepare_testing.h"

namespace megalith::data {
namespace {

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() {
    std::mt19937 random(7);
    for (int file = 0; file < 12; ++file) {
      std::string text;
      for (int i = 0; i < 400; ++i) {
        std::string document;
        for (unsigned k = random() % 400; k > 0; --k) document += static_cast<char>('a' + random() % 26);
        text += line_of(document);
      }
      write_bytes(directory_ / ("in" + std::to_string(file) + ".jsonl.zst"), zstd_of(text));
    }
    options_.inputs = {directory_ / "in*.jsonl.zst"};
    options_.output_prefix = directory_ / "out";
    options_.shards = 5;
    options_.batch_bytes = 20'000;
    options_.encode.append_eod = true;
  }

  std::map<std::string, std::string> outputs() { return files_of(directory_.path(), "out"); }

  void clear() {
    for (const auto& file : outputs()) std::filesystem::remove(directory_ / file.first);
  }

  // Starts all workers, each in a process of its own.
  std::vector<pid_t> start(int threads, int64_t workers) {
    std::vector<pid_t> children;
    for (int64_t i = 0; i < workers; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        PrepareOptions options = options_;
        options.threads = threads;
        options.worker = {i, workers};
        try {
          prepare(tokenizer_, options);
        } catch (const std::exception& error) {
          std::fprintf(stderr, "worker %ld: %s\n", static_cast<long>(i), error.what());
          std::_Exit(3);
        }
        std::_Exit(0);
      }
      children.push_back(child);
    }
    return children;
  }

  // True if all of them ended well.
  static bool wait(const std::vector<pid_t>& children) {
    bool good = true;
    for (const pid_t child : children) {
      int status = 0;
      ::waitpid(child, &status, 0);
      EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 3);
      good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
  }

  // The outputs are those of a run that was not killed, for all numbers of threads and workers.
  void survive(int moments);

  TempDir directory_;
  ByteTokenizer tokenizer_;
  PrepareOptions options_;
};

TEST_F(CrashTest, AnyMomentAnyThreadsAnyWorkers) {
  MEGALITH_JSON_OR_SKIP();
  survive(std::getenv("MEGALITH_LONG_TESTS") != nullptr ? 50 : 4);
}

TEST_F(CrashTest, LongDocumentsThatAreWrittenInParts) {
  MEGALITH_JSON_OR_SKIP();
  ASSERT_TRUE(wait(start(1, 1)));
  const auto whole = outputs();
  clear();
  options_.long_document_bytes = 100;
  options_.batch_bytes = 150;
  ASSERT_TRUE(wait(start(1, 1)));
  ASSERT_EQ(outputs(), whole);
  clear();
  survive(std::getenv("MEGALITH_LONG_TESTS") != nullptr ? 10 : 1);
}

void CrashTest::survive(int moments) {
  ASSERT_TRUE(wait(start(1, 1)));
  const auto expected = outputs();
  ASSERT_EQ(expected.size(), 5u * 3 + 1);
  std::mt19937 random(11);
  int kills = 0;
  for (const int threads : {1, 2, 5}) {
    for (const int64_t workers : {1, 3}) {
      clear();
      const double begin = monotonic_seconds();
      ASSERT_TRUE(wait(start(threads, workers)));
      const double whole_run = monotonic_seconds() - begin;
      ASSERT_EQ(outputs(), expected);
      for (int i = 0; i < moments; ++i) {
        clear();
        // Killed again and again until a run comes through, each time at another moment.
        for (int attempt = 0;; ++attempt) {
          const auto children = start(threads, workers);
          const double share = attempt < 3 ? static_cast<double>(random() % 1000) / 1000.0 : 100.0;
          if (share < 2.0) {
            std::this_thread::sleep_for(std::chrono::duration<double>(share * whole_run));
            for (const pid_t child : children) ::kill(child, SIGKILL);
          }
          if (wait(children)) break;
          ++kills;
          ASSERT_LT(attempt, 10);
        }
        ASSERT_EQ(names_of(outputs()), names_of(expected)) << threads << " threads, " << workers << " workers";
        ASSERT_EQ(outputs(), expected) << threads << " threads, " << workers << " workers";
      }
    }
  }
  EXPECT_GT(kills, moments);
}

}  // namespace
}  // namespace megalith::data
