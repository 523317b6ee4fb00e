#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/data_options.h"
#include "cli/data_verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "data/download.h"

namespace megalith::cli {

namespace {

struct Options {
  std::vector<std::string> urls;
  std::vector<std::string> lists;
  data::DownloadOptions download;
};

int run_download(Options options) {
  std::string all;
  for (const std::string& list : options.lists) {
    data::parse_download_list(read_text(list), list);  // for messages with the file's own line numbers
    all += read_text(list) + "\n";
  }
  for (const std::string& url : options.urls) all += url + "\n";
  const std::vector<data::DownloadItem> items = data::parse_download_list(all, "the list of URLs");
  if (items.empty()) user_error("nothing to download: give URLs, or a file of them with --list");

  ProgressLine line;
  options.download.progress = [&line](const data::DownloadProgress& p) {
    line.show(fmt::format("{} of {} files, {:.1f} MB, {:.1f} MB/s", p.files, p.files_total,
                          static_cast<double>(p.bytes) / 1e6,
                          p.seconds > 0.0 ? static_cast<double>(p.bytes) / 1e6 / p.seconds : 0.0));
  };
  options.download.log = [&line](const std::string& text) {
    line.end();
    std::cerr << text << "\n";
  };
  const double begin = monotonic_seconds();
  const data::DownloadReport report = data::download(items, options.download);
  line.end();
  std::cout << fmt::format("{} files fetched, {} were there, {} failed; {:.1f} MB in {}\n", report.fetched,
                           report.skipped, report.failures.size(), static_cast<double>(report.bytes) / 1e6,
                           format_duration(monotonic_seconds() - begin));
  for (const data::DownloadFailure& failure : report.failures) {
    std::cerr << fmt::format("failed: {}: {}\n", failure.url, failure.reason);
  }
  if (!report.failures.empty()) fail(ErrorKind::io, "{} files could not be fetched", report.failures.size());
  return kExitComplete;
}

}  // namespace

void add_data_download(CLI::App& data, Action& run) {
  CLI::App* download =
      data.add_subcommand("download",
                          "Fetch a list of URLs into a directory.\n\n"
                          "What was fetched in part is continued, what is there is left alone. A line of a list is a "
                          "URL, or its SHA-256 and\n"
                          "the URL.\n\n"
                          "  megalith data download --list urls.txt --output-dir data/raw --jobs 16\n"
                          "  megalith data download https://example.org/part-00.jsonl.zst --output-dir data/raw");
  const auto options = std::make_shared<Options>();
  download->add_option("urls", options->urls, "what to fetch");
  download->add_option("--list", options->lists, "files that hold URLs, one a line")->allow_extra_args(false);
  download->add_option("--output-dir", options->download.directory, "where files go")->required();
  download->add_option("--jobs", options->download.jobs, "files at a time")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  download->add_option("--attempts", options->download.attempts, "how often to try in a row without getting anything")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  download
      ->add_option("--stall-seconds", options->download.stall_seconds, "give up a connection that is silent so long")
      ->capture_default_str();
  download->callback([options, &run] { run = [options] { return run_download(*options); }; });
}

}  // namespace megalith::cli
