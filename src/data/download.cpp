#include "data/download.h"

#include <curl/curl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "data/http_answer.h"
#include "data/sha256.h"

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

std::string sha256_of(const std::filesystem::path& path) {
  const File file = File::open_for_reading(path);
  Sha256 hash;
  std::vector<std::byte> buffer(size_t{1} << 20);
  const int64_t size = file.size();
  for (int64_t at = 0; at < size; at += std::ssize(buffer)) {
    const auto piece = std::span(buffer).first(static_cast<size_t>(std::min(std::ssize(buffer), size - at)));
    file.read_at(at, piece);
    hash.add(piece);
  }
  return hash.hex();
}

struct Curl {
  Curl() : handle(::curl_easy_init()) {
    if (handle == nullptr) fail(ErrorKind::io, "libcurl cannot be used");
  }
  ~Curl() { ::curl_easy_cleanup(handle); }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  CURL* handle;
};

enum class Outcome { done, again, never };

// One file, from the first attempt to the last.
class Fetch {
 public:
  using Received = std::function<void(int64_t)>;
  using Retry = std::function<void(const std::string&)>;

  Fetch(const DownloadItem& item, const DownloadOptions& options, Received received, Retry retry)
      : item_(item),
        options_(options),
        received_(std::move(received)),
        retry_(std::move(retry)),
        target_(options.directory / item.name),
        part_(target_.string() + ".part") {}

  // Throws an error that says why not.
  bool run() {
    if (std::filesystem::exists(target_)) {
      if (item_.sha256.empty() || sha256_of(target_) == item_.sha256) return false;
      retry_(fmt::format("{} is there with another SHA-256: fetching it again", target_.string()));
    }
    file_.emplace(File::open_for_appending(part_));
    if (::flock(file_->descriptor(), LOCK_EX | LOCK_NB) != 0) {
      fail(ErrorKind::io, "another process is fetching {}", part_.string());
    }
    int64_t farthest = file_->size();  // what is thrown away and fetched again is no progress
    for (int failed = 0;;) {
      const Outcome outcome = attempt();
      if (outcome == Outcome::done) break;
      failed = file_->size() > farthest ? 1 : failed + 1;
      farthest = std::max(farthest, file_->size());
      if (outcome == Outcome::never || failed >= options_.attempts) fail(ErrorKind::io, "{}", reason_);
      const double wait = pause(failed);
      retry_(fmt::format("{}: {}; again in {:.0f} s", item_.url, reason_, wait));
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
    file_->sync();
    if (::rename(part_.c_str(), target_.c_str()) != 0) io_error_errno(fmt::format("cannot rename {}", part_.string()));
    sync_directory(options_.directory);
    return true;
  }

 private:
  double pause(int failed) const {
    if (answer_.retry_after >= 0.0) return std::min(answer_.retry_after, 10.0 * options_.longest_wait);
    const double wait = std::min(options_.longest_wait, options_.first_wait * std::exp2(failed - 1));
    // Not all at once: those that failed together should not come back together.
    thread_local std::minstd_rand random{std::random_device{}()};
    return wait * std::uniform_real_distribution<double>(0.75, 1.25)(random);
  }

  void empty_part() {
    if (::ftruncate(file_->descriptor(), 0) != 0) io_error_errno(fmt::format("cannot empty {}", part_.string()));
  }

  Outcome again(std::string reason) {
    reason_ = std::move(reason);
    return Outcome::again;
  }

  Outcome attempt() {
    offset_ = file_->size();
    answer_ = {};
    taking_ = Taking::unknown;
    write_error_.clear();
    const CURLcode status = transfer();
    if (!write_error_.empty()) {
      reason_ = write_error_;
      return Outcome::never;
    }
    begin_body();  // an answer without a body has one all the same
    if (taking_ == Taking::wrong_range) {
      empty_part();
      return again("the server sent another part of the file than it was asked for");
    }
    if (answer_.status == 416) {
      if (answer_.total == offset_) return check(offset_);
      empty_part();
      return again("what was fetched before is longer than the file");
    }
    if (answer_.status == 408 || answer_.status == 429 || answer_.status >= 500) {
      return again(fmt::format("the server answered {}", answer_.status));
    }
    if (answer_.status != 0 && answer_.status != 200 && answer_.status != 206) {
      reason_ = fmt::format("the server answered {}", answer_.status);
      return Outcome::never;
    }
    if (status == CURLE_UNSUPPORTED_PROTOCOL || status == CURLE_URL_MALFORMAT) {
      reason_ = ::curl_easy_strerror(status);
      return Outcome::never;
    }
    if (!answer_.etag.empty()) etag_ = answer_.etag;
    if (status == CURLE_ABORTED_BY_CALLBACK) {
      return again(fmt::format("no byte came for {:.0f} s", options_.stall_seconds));
    }
    if (status != CURLE_OK) {
      return again(fmt::format("{} after {} bytes", ::curl_easy_strerror(status), file_->size()));
    }
    return check(answer_.status == 206 ? answer_.total : answer_.length);
  }

  Outcome check(std::optional<int64_t> total) {
    const int64_t size = file_->size();
    if (total && size < *total) return again(fmt::format("only {} of {} bytes came", size, *total));
    if (total && size > *total) {
      empty_part();
      return again(fmt::format("{} bytes came where {} were announced", size, *total));
    }
    if (item_.sha256.empty()) return Outcome::done;
    const std::string found = sha256_of(part_);
    if (found == item_.sha256) return Outcome::done;
    empty_part();
    return again(fmt::format("its SHA-256 is {}, not {}", found, item_.sha256));
  }

  CURLcode transfer() {
    CURL* const handle = curl_.handle;
    ::curl_easy_reset(handle);
    const std::string range = fmt::format("{}-", offset_);
    curl_slist* headers = nullptr;
    ::curl_easy_setopt(handle, CURLOPT_URL, item_.url.c_str());
    ::curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    ::curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 10L);
    ::curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(handle, CURLOPT_CONNECTTIMEOUT, 30L);
    // libcurl's own limit looks at the average of the last seconds and takes that much longer.
    ::curl_easy_setopt(handle, CURLOPT_NOPROGRESS, 0L);
    ::curl_easy_setopt(handle, CURLOPT_XFERINFOFUNCTION, &Fetch::on_progress);
    ::curl_easy_setopt(handle, CURLOPT_XFERINFODATA, this);
    ::curl_easy_setopt(handle, CURLOPT_USERAGENT, "megalith");
    ::curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, &Fetch::on_header);
    ::curl_easy_setopt(handle, CURLOPT_HEADERDATA, this);
    ::curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, &Fetch::on_data);
    ::curl_easy_setopt(handle, CURLOPT_WRITEDATA, this);
    if (offset_ > 0) {
      ::curl_easy_setopt(handle, CURLOPT_RANGE, range.c_str());
      if (!etag_.empty()) headers = ::curl_slist_append(headers, ("If-Range: " + etag_).c_str());
    }
    ::curl_easy_setopt(handle, CURLOPT_HTTPHEADER, headers);
    last_received_ = 0;
    last_sign_ = monotonic_seconds();
    const CURLcode status = ::curl_easy_perform(handle);
    ::curl_slist_free_all(headers);
    return status;
  }

  static size_t on_header(char* data, size_t size, size_t count, void* self) {
    static_cast<Fetch*>(self)->answer_.add(trimmed({data, size * count}));
    return size * count;
  }

  // Not 0 ends the transfer.
  static int on_progress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
    auto& fetch = *static_cast<Fetch*>(self);
    const double now = monotonic_seconds();
    if (received != fetch.last_received_) {
      fetch.last_received_ = received;
      fetch.last_sign_ = now;
    }
    return now - fetch.last_sign_ > fetch.options_.stall_seconds ? 1 : 0;
  }

  static size_t on_data(char* data, size_t size, size_t count, void* self) {
    return static_cast<Fetch*>(self)->take({data, size * count}) ? size * count : 0;
  }

  void begin_body() {
    if (taking_ != Taking::unknown) return;
    taking_ = Taking::body;
    if (answer_.status == 206 && answer_.range_begin != offset_) taking_ = Taking::wrong_range;
    // The whole file in answer to a range: the server does not know ranges, or the file has changed.
    if (answer_.status == 200 && offset_ > 0) empty_part();
  }

  // False ends the transfer.
  bool take(std::string_view data) {
    if (answer_.status != 200 && answer_.status != 206) return true;  // the text of an error
    try {
      begin_body();
      if (taking_ == Taking::wrong_range) return false;
      file_->write(data);
      received_(std::ssize(data));
      return true;
    } catch (const Error& error) {
      write_error_ = error.what();
      return false;
    }
  }

  enum class Taking { unknown, body, wrong_range };

  const DownloadItem& item_;
  const DownloadOptions& options_;
  Received received_;
  Retry retry_;
  std::filesystem::path target_;
  std::filesystem::path part_;
  std::optional<File> file_;
  Curl curl_;
  int64_t offset_ = 0;
  std::string etag_;
  HttpAnswer answer_;
  Taking taking_ = Taking::unknown;
  curl_off_t last_received_ = 0;
  double last_sign_ = 0.0;
  std::string write_error_;
  std::string reason_;
};
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
  static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) fail(ErrorKind::io, "libcurl cannot be used: {}", ::curl_easy_strerror(ready));
  std::filesystem::create_directories(options.directory);
  DownloadReport report;
  std::vector<std::string> reasons(items.size());
  DownloadProgress progress{.files_total = std::ssize(items)};
  std::mutex mutex;
  const double begin = monotonic_seconds();
  const auto tell = [&] {  // under the mutex
    progress.seconds = monotonic_seconds() - begin;
    if (options.progress) options.progress(progress);
  };
  const auto fetch = [&](size_t i) {
    const auto received = [&](int64_t bytes) {
      const std::lock_guard lock(mutex);
      progress.bytes += bytes;
      tell();
    };
    const auto retry = [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      if (options.log) options.log(text);
    };
    bool fetched = false;
    try {
      fetched = Fetch(items[i], options, received, retry).run();
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
      for (size_t i = next++; i < items.size(); i = next++) fetch(i);
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
