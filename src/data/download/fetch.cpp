#include "data/download/fetch.h"

#include <curl/curl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <thread>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash/crypto.h"
#include "core/process/file_lock.h"
#include "data/download/http_answer.h"

namespace megalith::data {

namespace {

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
  Fetch(const DownloadItem& item, const DownloadOptions& options, const FetchListener& listener)
      : item_(item),
        options_(options),
        listener_(listener),
        target_(options.directory / item.name),
        part_(target_.string() + ".part") {}

  bool run() {
    if (std::filesystem::exists(target_)) {
      const std::string difference = what_differs();
      if (difference.empty()) return false;
      listener_.retry(fmt::format("{} is there with {}: fetching it again", target_.string(), difference));
    }
    file_.emplace(File::open_for_appending(part_));
    if (try_lock(*file_) != LockResult::taken) fail(ErrorKind::io, "another process is fetching {}", part_.string());
    try {
      fetch_part();
    } catch (const Error&) {
      if (file_->size() == 0) ::unlink(part_.c_str());
      throw;
    }
    file_->sync();
    publish(part_, target_);
    return true;
  }

 private:
  // Of the file that is there, to the one that is wanted; empty: nothing, as far as is known.
  std::string what_differs() {
    if (!item_.sha256.empty()) return sha256_of(target_) == item_.sha256 ? "" : "another SHA-256";
    const auto size = static_cast<int64_t>(std::filesystem::file_size(target_));
    const std::optional<int64_t> wanted = size_on_server();
    return !wanted || *wanted == size ? "" : fmt::format("{} bytes, and the server has {}", size, *wanted);
  }

  std::optional<int64_t> size_on_server() {
    answer_ = {};
    offset_ = 0;
    const CURLcode status = transfer(/*only_headers=*/true);
    return status == CURLE_OK && answer_.status == 200 ? answer_.length : std::nullopt;
  }

  void fetch_part() {
    int64_t farthest = file_->size();  // what is thrown away and fetched again is no progress
    for (int failed = 0;;) {
      const Outcome outcome = attempt();
      if (outcome == Outcome::done) break;
      failed = file_->size() > farthest ? 1 : failed + 1;
      farthest = std::max(farthest, file_->size());
      if (outcome == Outcome::never || failed >= options_.attempts) fail(ErrorKind::io, "{}", reason_);
      const double wait = pause(failed);
      listener_.retry(fmt::format("{}: {}; again in {:.0f} s", item_.url, reason_, wait));
      std::this_thread::sleep_for(std::chrono::duration<double>(wait));
    }
  }

  double pause(int failed) const {
    if (answer_.retry_after >= 0.0) return std::min(answer_.retry_after, 10.0 * options_.longest_wait);
    const double wait = std::min(options_.longest_wait, options_.first_wait * std::exp2(failed - 1));
    // Not all at once: those that failed together should not come back together.
    thread_local std::minstd_rand random{std::random_device{}()};
    return wait * std::uniform_real_distribution<double>(0.75, 1.25)(random);
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
      file_->truncate(0);
      return again("the server sent another part of the file than it was asked for");
    }
    if (answer_.status == 416) {
      if (answer_.total == offset_) return check(offset_);
      file_->truncate(0);
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
      file_->truncate(0);
      return again(fmt::format("{} bytes came where {} were announced", size, *total));
    }
    if (item_.sha256.empty()) return Outcome::done;
    const std::string found = sha256_of(part_);
    if (found == item_.sha256) return Outcome::done;
    file_->truncate(0);
    reason_ = fmt::format("its SHA-256 is {}, not {}", found, item_.sha256);
    if (found == wrong_digest_) {
      reason_ += ", twice the same: the file is another one than the list says";
      return Outcome::never;
    }
    wrong_digest_ = found;
    return Outcome::again;
  }

  CURLcode transfer(bool only_headers = false) {
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
    if (only_headers) ::curl_easy_setopt(handle, CURLOPT_NOBODY, 1L);
    // libcurl keeps Authorization from other hosts that a redirection leads to.
    for (const std::string& header : options_.headers) headers = ::curl_slist_append(headers, header.c_str());
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
    if (answer_.status == 200 && offset_ > 0) file_->truncate(0);
  }

  // False ends the transfer.
  bool take(std::string_view data) {
    if (answer_.status != 200 && answer_.status != 206) return true;  // the text of an error
    try {
      begin_body();
      if (taking_ == Taking::wrong_range) return false;
      file_->write(data);
      listener_.received(std::ssize(data));
      return true;
    } catch (const Error& error) {
      write_error_ = error.what();
      return false;
    }
  }

  enum class Taking { unknown, body, wrong_range };

  const DownloadItem& item_;
  const DownloadOptions& options_;
  const FetchListener& listener_;
  std::filesystem::path target_;
  std::filesystem::path part_;
  std::optional<File> file_;
  Curl curl_;
  int64_t offset_ = 0;
  std::string etag_;
  std::string wrong_digest_;  // of what came the last time
  HttpAnswer answer_;
  Taking taking_ = Taking::unknown;
  curl_off_t last_received_ = 0;
  double last_sign_ = 0.0;
  std::string write_error_;
  std::string reason_;
};

}  // namespace

void require_curl() {
  static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
  if (ready != CURLE_OK) fail(ErrorKind::io, "libcurl cannot be used: {}", ::curl_easy_strerror(ready));
}

bool fetch(const DownloadItem& item, const DownloadOptions& options, const FetchListener& listener) {
  return Fetch(item, options, listener).run();
}

}  // namespace megalith::data
