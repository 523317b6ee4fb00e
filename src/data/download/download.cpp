#include "data/download/download.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "data/download/fetch.h"
#include "data/download/http_answer.h"

namespace megalith::data {

namespace {
bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

std::string file_name(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const size_t host = url.find("://");
  const size_t slash = url.rfind('/');
  if (host == std::string_view::npos || slash == std::string_view::npos || slash < host + 3) return {};
  return std::string(url.substr(slash + 1));
}

}  // namespace

std::vector<DownloadItem> parse_download_list(std::string_view text, const std::string& origin) {
  std::vector<DownloadItem> items;
  std::map<std::string, std::string> names;
  int64_t number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty() || line.front() == '#') continue;
    DownloadItem item;
    const size_t space = line.find_first_of(" \t");
    if (space != std::string_view::npos) item.sha256 = lower(line.substr(0, space));
    item.url = trimmed(space == std::string_view::npos ? line : line.substr(space));
    item.name = file_name(item.url);
    const bool has_scheme = item.url.starts_with("http://") || item.url.starts_with("https://");
    if (!has_scheme || (space != std::string_view::npos && !is_sha256(item.sha256)) ||
        item.url.find_first_of(" \t") != std::string::npos) {
      user_error("{}, line {}: expected an http or https URL, or a SHA-256 and a URL, not: {}", origin, number, line);
    }
    if (item.name.empty() || item.name == "." || item.name == "..") {
      user_error("{}, line {}: {} does not end in the name of a file", origin, number, item.url);
    }
    const auto [other, fresh] = names.emplace(item.name, item.url);
    if (!fresh) user_error("{} and {} would both become the file {}", other->second, item.url, item.name);
    items.push_back(std::move(item));
  }
  return items;
}

DownloadReport download(const std::vector<DownloadItem>& items, const DownloadOptions& options) {
  require_curl();
  make_directory(options.directory);
  DownloadReport report;
  std::vector<std::string> reasons(items.size());
  DownloadProgress progress{.files_total = std::ssize(items)};
  std::mutex mutex;
  const double begin = monotonic_seconds();
  const auto tell = [&] {  // under the mutex
    progress.seconds = monotonic_seconds() - begin;
    if (options.progress) options.progress(progress);
  };
  const auto received = [&](int64_t bytes) {
    const std::lock_guard lock(mutex);
    progress.bytes += bytes;
    tell();
  };
  const auto retry = [&](const std::string& text) {
    const std::lock_guard lock(mutex);
    if (options.log) options.log(text);
  };
  const FetchListener listener{.received = received, .retry = retry};
  const auto take = [&](size_t i) {
    bool fetched = false;
    try {
      fetched = fetch(items[i], options, listener);
    } catch (const std::exception& error) {
      reasons[i] = error.what();
    }
    const std::lock_guard lock(mutex);
    if (reasons[i].empty()) ++(fetched ? report.fetched : report.skipped);
    ++progress.files;
    tell();
  };
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  const auto jobs = std::min<size_t>(static_cast<size_t>(std::max(options.jobs, 1)), items.size());
  for (size_t job = 0; job < jobs; ++job) {
    threads.emplace_back([&] {
      for (size_t i = next++; i < items.size(); i = next++) take(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  report.bytes = progress.bytes;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!reasons[i].empty()) report.failures.push_back({items[i].url, reasons[i]});
  }
  return report;
}

}  // namespace megalith::data
