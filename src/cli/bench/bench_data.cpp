#include <CLI/CLI.hpp>
#include <ctime>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "data/order/index_bench.h"
#include "data/prepare/bench_prepare.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::cli {

namespace {

struct Options {
  config::Tokenizer tokenizer;
  std::string text;
  data::BenchPrepareOptions prepare;
  data::IndexBenchOptions index;
  std::string directory = "/tmp";
};

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// MB of text per second of one core, over documents of 4 kB, after one pass that fills the caches.
double encode_rate(const data::Tokenizer& tokenizer, const std::string& text) {
  constexpr size_t kDocument = 4096;
  std::vector<int32_t> ids;
  double seconds = 0.0;
  for (int pass = 0; pass < 2; ++pass) {
    const double begin = thread_cpu_seconds();
    for (size_t at = 0; at < text.size(); at += kDocument) {
      ids.clear();
      tokenizer.encode(std::string_view(text).substr(at, kDocument), ids);
    }
    seconds = thread_cpu_seconds() - begin;
  }
  return static_cast<double>(text.size()) / 1e6 / seconds;
}

int run_bench_data(Options options) {
  check_input_file("--text", options.text);
  const auto tokenizer = data::make_tokenizer(options.tokenizer);
  if (!options.text.empty()) {
    std::cout << fmt::format("encode           {:.0f} MB/s per core ({}, {})\n",
                             encode_rate(*tokenizer, read_text(options.text)), tokenizer->name(), options.text)
              << std::flush;
  }
  options.prepare.directory = options.directory;
  options.prepare.text = options.text;
  const data::BenchPrepareResult prepared = data::bench_prepare(*tokenizer, options.prepare);
  std::cout << fmt::format("decompress       {:.0f} MB/s of text per core\n", prepared.decompress)
            << fmt::format("extract          {:.0f} MB/s of text per core (decompressed, documents taken out)\n",
                           prepared.extract)
            << fmt::format(
                   "prepare          {:.0f} MB/s of text per thread (.jsonl.zst to .bin), {:.0f} per CPU second\n",
                   prepared.prepare, prepared.prepare_cpu)
            << std::flush;
  options.index.directory = options.directory;
  const data::IndexBenchResult index = data::bench_index(options.index);
  std::cout << fmt::format("index            {} datasets, {} documents, {} samples: {:.1f} s, {:.1f} core-seconds\n",
                           options.index.datasets, index.documents, index.samples, index.build_seconds,
                           index.build_core_seconds)
            << fmt::format("blend            {:.1f} million samples/s\n", index.blend_samples_per_second() / 1e6)
            << fmt::format("reopen           {:.3f} s\n", index.reopen_seconds);
  return kExitComplete;
}

}  // namespace

void add_bench_data(CLI::App& bench, Action& run) {
  CLI::App* verb = bench.add_subcommand(
      "data",
      "Time the road from text to samples, per core.\n\n"
      "  megalith bench data --text book.txt --tokenizer-type GPT2BPETokenizer --vocab-file vocab.json --merge-file "
      "merges.txt");
  const auto options = std::make_shared<Options>();
  add_tokenizer_options(*verb, options->tokenizer);
  verb->add_option("--text", options->text, "a text file to encode; none: made-up English, and no encode rate");
  verb->add_option("--directory", options->directory, "where files may be written for a while")->capture_default_str();
  verb->add_option("--threads", options->prepare.threads, "of prepare")
      ->check(between(1, kMostThreads))
      ->capture_default_str();
  verb->add_option("--datasets", options->index.datasets, "of the index")->check(at_least(1))->capture_default_str();
  verb->add_option("--tokens", options->index.tokens, "in all datasets")->check(at_least(1))->capture_default_str();
  verb->callback([verb, options, &run] {
    settle_tokenizer(*verb, options->tokenizer);
    run = [options] { return run_bench_data(*options); };
  });
}

}  // namespace megalith::cli
