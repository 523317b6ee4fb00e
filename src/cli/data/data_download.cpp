#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/accepts.h"
#include "cli/data/data_options.h"
#include "cli/data/data_verbs.h"
#include "config/environment/environment.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/words.h"
#include "data/download/download.h"

namespace megalith::cli {

namespace {

struct Options {
  std::vector<std::string> urls;
  std::vector<std::string> lists;
  std::vector<std::string> headers;
  std::string token_file;
  std::string token_variable;
  data::DownloadOptions download;
};

std::string trimmed_token(std::string text, const std::string& origin) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  const bool plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c < 0x7f; });
  if (text.empty() || !plain) user_error("{} does not hold a token: one word is expected", origin);
  return text;
}

// What proves to the server who asks. It is never shown.
std::optional<std::string> read_token(const Options& options) {
  if (!options.token_file.empty()) {
    if (!std::filesystem::exists(options.token_file)) user_error("the file {} does not exist", options.token_file);
    return trimmed_token(read_text(options.token_file), options.token_file);
  }
  if (options.token_variable.empty()) return std::nullopt;
  const auto value = config::process_environment(options.token_variable);
  if (!value) user_error("--token-env: the environment variable {} is not set", options.token_variable);
  return trimmed_token(*value, "the environment variable " + options.token_variable);
}

// A token that travels in the clear is lost.
void require_https(const std::vector<data::DownloadItem>& items) {
  for (const data::DownloadItem& item : items) {
    const bool to_this_machine = item.url.starts_with("http://127.0.0.1:") && item.url.find('@') == std::string::npos;
    if (item.url.starts_with("https://") || to_this_machine) continue;
    user_error("a token is sent over https only, not to {}", item.url);
  }
}

void check_header(const std::string& header) {
  const size_t colon = header.find(':');
  const bool one_line = header.find_first_of("\r\n") == std::string::npos;
  if (colon == std::string::npos || colon == 0 || !one_line) user_error("--header: \"Name: value\" is expected");
}

int run_download(Options options) {
  std::string all;
  for (const std::string& list : options.lists) {
    if (!std::filesystem::exists(list)) user_error("the list of URLs {} does not exist", list);
    data::parse_download_list(read_text(list), list);  // for messages with the file's own line numbers
    all += read_text(list) + "\n";
  }
  for (const std::string& url : options.urls) all += url + "\n";
  const std::vector<data::DownloadItem> items = data::parse_download_list(all, "the list of URLs");
  if (items.empty()) user_error("nothing to download: give URLs, or a file of them with --list");

  for (const std::string& header : options.headers) check_header(header);
  options.download.headers = options.headers;
  if (const auto token = read_token(options)) {
    require_https(items);
    options.download.headers.push_back("Authorization: Bearer " + *token);
  }

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
  std::cout << fmt::format("{} fetched, {} were there, {} failed; {:.1f} MB in {}\n", counted(report.fetched, "file"),
                           report.skipped, report.failures.size(), static_cast<double>(report.bytes) / 1e6,
                           format_duration(monotonic_seconds() - begin));
  for (const data::DownloadFailure& failure : report.failures) {
    std::cerr << fmt::format("failed: {}: {}\n", failure.url, failure.reason);
  }
  if (!report.failures.empty())
    fail(ErrorKind::io, "{} could not be fetched", counted(std::ssize(report.failures), "file"));
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
  download->add_option("--header", options->headers, "a header for every request, \"Name: value\"; may be repeated")
      ->allow_extra_args(false);
  auto* file = download->add_option("--token-file", options->token_file,
                                    "a file with the token of a gated dataset: sent as Authorization: Bearer");
  download->add_option("--token-env", options->token_variable, "the environment variable that holds it, as HF_TOKEN")
      ->excludes(file);
  download->add_option("--jobs", options->download.jobs, "files at a time")
      ->check(between(1, kMostThreads))
      ->capture_default_str();
  download->add_option("--attempts", options->download.attempts, "how often to try in a row without getting anything")
      ->check(at_least(1))
      ->capture_default_str();
  download
      ->add_option("--stall-seconds", options->download.stall_seconds, "give up a connection that is silent so long")
      ->check(above(0))
      ->capture_default_str();
  download->callback([options, &run] { run = [options] { return run_download(*options); }; });
}

}  // namespace megalith::cli
