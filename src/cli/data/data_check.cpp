#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <mutex>
#include <set>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "core/words.h"
#include "data/files/dataset_check.h"
#include "data/files/dataset_info.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::cli {

namespace {

struct Options {
  std::vector<std::string> paths;
  config::Tokenizer tokenizer;
  bool with_tokenizer = false;
  int64_t vocab_size = 0;
  int32_t eod = -1;
  bool eod_only_at_end = false;
  bool quick = false;
  bool from_source = false;
  int64_t samples = 0;
  int workers = 0;
  int64_t expect_files = -1;
  int64_t min_megabytes = -1;
};

data::CheckOptions check_options(const Options& options, const data::Tokenizer* tokenizer) {
  data::CheckOptions check{.vocab_size = options.vocab_size,
                           .eod = options.eod,
                           .eod_only_at_end = options.eod_only_at_end,
                           .quick = options.quick,
                           .tokenizer = tokenizer,
                           .threads = options.workers > 0 ? options.workers : available_cores()};
  // Compared with its source, a dataset must be what its sidecar says.
  if (options.with_tokenizer && !options.from_source) {
    const data::Vocabulary vocabulary = data::vocabulary_of(options.tokenizer);
    if (check.vocab_size == 0) check.vocab_size = vocabulary.size;
    if (check.eod < 0) check.eod = vocabulary.eod;
  }
  return check;
}

// What the recipe's own check looks at: how many files there are, and how large they are together.
void check_expectations(const Options& options, const std::vector<data::CheckReport>& reports,
                        std::vector<std::string>& problems) {
  int64_t files = 0;
  int64_t bytes = 0;
  for (const data::CheckReport& report : reports) {
    for (const char* ending : {".bin", ".idx"}) files += std::filesystem::exists(report.prefix + ending) ? 1 : 0;
    bytes += report.bytes;
  }
  if (options.expect_files >= 0 && files != options.expect_files) {
    problems.push_back(fmt::format("{} .bin and .idx files where {} are expected", files, options.expect_files));
  }
  if (options.min_megabytes >= 0 && bytes < options.min_megabytes << 20) {
    problems.push_back(fmt::format("{} megabytes where at least {} are expected", bytes >> 20, options.min_megabytes));
  }
}

std::string describe(const data::CheckReport& report) {
  std::string text = fmt::format("{}: {}, {} of {}", report.prefix, counted(report.documents, "document"),
                                 counted(report.tokens, "token"), report.token_type);
  if (report.largest_id >= 0) text += fmt::format(", largest id {}", report.largest_id);
  if (report.encoded_again > 0) text += fmt::format(", {} encoded again", counted(report.encoded_again, "document"));
  if (!report.has_sidecar) text += ", no sidecar to compare with";
  return text;
}

int run_check(const Options& options) {
  std::unique_ptr<data::Tokenizer> tokenizer;
  const bool files_are_needed = options.from_source || options.samples > 0;
  if (options.with_tokenizer && (files_are_needed || data::names_files(options.tokenizer))) {
    tokenizer = data::make_tokenizer(options.tokenizer);
  }
  data::CheckOptions check = check_options(options, tokenizer.get());
  if (options.from_source) {
    if (!tokenizer) user_error("--from-source needs the tokenizer: give --tokenizer-type and its files");
    check.source_tokenizer = tokenizer.get();
  }
  const std::vector<std::string> prefixes = data::list_datasets(options.paths);
  ProgressLine line;
  std::mutex mutex;
  int64_t done = 0;
  const double begin = monotonic_seconds();
  check.progress = [&](int64_t bytes) {
    const std::lock_guard lock(mutex);
    done += bytes;
    line.show(fmt::format("{:.1f} GB read, {:.2f} GB/s", static_cast<double>(done) / 1e9,
                          static_cast<double>(done) / 1e9 / (monotonic_seconds() - begin)));
  };
  const std::vector<data::CheckReport> reports = data::check_datasets(prefixes, check);
  line.end();

  std::vector<std::string> problems;
  std::set<std::string> directories;
  int64_t documents = 0;
  int64_t tokens = 0;
  for (const data::CheckReport& report : reports) {
    problems.insert(problems.end(), report.problems.begin(), report.problems.end());
    documents += report.documents;
    tokens += report.tokens;
    if (report.token_type.empty()) continue;
    std::cout << describe(report) << "\n";
    if (options.samples > 0) {
      constexpr int64_t kWidth = 200;
      std::cout << data::show_samples(data::IndexedDataset(report.prefix), tokenizer.get(), options.samples, kWidth);
    }
  }
  for (const std::string& path : options.paths) {
    const std::filesystem::path parent = std::filesystem::path(path).parent_path();
    directories.insert(std::filesystem::is_directory(path) ? path : parent.empty() ? "." : parent.string());
  }
  check_expectations(options, reports, problems);
  std::cout << fmt::format("{}, {}, {} in {:.1f} s\n", counted(std::ssize(reports), "dataset"),
                           counted(documents, "document"), counted(tokens, "token"), monotonic_seconds() - begin);
  if (!problems.empty()) {
    for (const std::string& problem : problems) std::cerr << "problem: " << problem << "\n";
    data_error("{} found", counted(std::ssize(problems), "problem"));
  }
  for (const std::string& directory : directories) {
    std::cout << fmt::format("Dataset generation completed successfully at: {}\n", directory);
  }
  return kExitComplete;
}

}  // namespace

void add_data_check(CLI::App& data, Action& run) {
  CLI::App* check =
      data.add_subcommand("check",
                          "Verify everything that can be wrong with datasets.\n\n"
                          "Header, counts, pointers, sizes, ids, ends of documents and, where `data prepare` left "
                          "them, checksums. Lists all\n"
                          "problems and exits with 2 if there are any.\n\n"
                          "  megalith data check data/\n"
                          "  megalith data check data/ --from-source --tokenizer-type GPT2BPETokenizer --vocab-file "
                          "vocab.json \\\n"
                          "    --merge-file merges.txt\n"
                          "  megalith data check /data/pile --vocab-size 50257 --eod 50256 --expect-files 8 "
                          "--min-megabytes 75000 --quick");
  const auto options = std::make_shared<Options>();
  check->add_option("paths", options->paths, "prefixes of .bin and .idx files, or directories")->required();
  check
      ->add_option("--vocab-size", options->vocab_size,
                   "ids must be below this; else as --tokenizer-type or the sidecar says")
      ->check(at_least(1));
  check
      ->add_option("--eod", options->eod,
                   "the token that must end every document; else as --tokenizer-type or the sidecar says")
      ->check(at_least(0));
  check->add_flag("--eod-only-at-end", options->eod_only_at_end, "and that may stand nowhere else");
  check->add_flag("--quick", options->quick, "do not read all tokens");
  check->add_flag("--from-source", options->from_source,
                  "encode one of a thousand documents again from the inputs that the sidecar names, and compare");
  check
      ->add_option("--samples", options->samples,
                   "how many sequences to show of each, decoded if --tokenizer-type is given")
      ->check(at_least(0))
      ->capture_default_str();
  check->add_option("--workers", options->workers, "threads; 0: all cores")
      ->check(between(0, kMostThreads))
      ->capture_default_str();
  check->add_option("--expect-files", options->expect_files, "how many .bin and .idx files there must be");
  check->add_option("--min-megabytes", options->min_megabytes, "what they must have together, in 2^20 bytes as du -m");
  add_tokenizer_options(*check, options->tokenizer);
  check->callback([check, options, &run] {
    settle_tokenizer(*check, options->tokenizer);
    options->with_tokenizer = names_tokenizer(*check);
    run = [options] { return run_check(*options); };
  });
}

}  // namespace megalith::cli
