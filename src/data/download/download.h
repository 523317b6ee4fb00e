#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith::data {

struct DownloadItem {
  std::string url;
  std::string name;    // of the file: what stands behind the last slash of the path
  std::string sha256;  // empty: not known
};

// Lines of `url` or `sha256  url`; empty lines and lines that begin with # are skipped. User errors: neither of these,
// two URLs with the same file name.
std::vector<DownloadItem> parse_download_list(std::string_view text, const std::string& origin);

struct DownloadProgress {
  int64_t files = 0;  // finished, in whatever way
  int64_t files_total = 0;
  int64_t bytes = 0;  // received in this run
  double seconds = 0.0;
};

struct DownloadOptions {
  std::filesystem::path directory;
  int jobs = 4;
  int attempts = 8;            // in a row that bring no byte
  double first_wait = 1.0;     // seconds; doubles with every attempt
  double longest_wait = 60.0;  // and up to ten times that where the server asks for it
  double stall_seconds = 60.0;
  std::vector<std::string> headers;                       // "Name: value", sent with every request; never shown
  std::function<void(const DownloadProgress&)> progress;  // from several threads, one at a time
  std::function<void(const std::string&)> log;            // why something is tried again; likewise
};

struct DownloadFailure {
  std::string url;
  std::string reason;
};

struct DownloadReport {
  int64_t fetched = 0;
  int64_t skipped = 0;  // there already
  int64_t bytes = 0;
  std::vector<DownloadFailure> failures;
};

// Fetches to `<directory>/<name>.part`, goes on from what lies there, and renames when the file has the size that the
// server gave and the SHA-256 that the list gives. Tries again after 408, 429, 5xx and broken connections, with growing
// pauses or as long as Retry-After says; other answers are final, and so is the same wrong SHA-256 twice. A file that
// is there under its name is skipped if it has the SHA-256 of the list or, where that is not known, the size that the
// server names; it is believed if the server names none.
DownloadReport download(const std::vector<DownloadItem>& items, const DownloadOptions& options);

}  // namespace megalith::data
