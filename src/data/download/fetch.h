#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "data/download/download.h"

namespace megalith::data {

// To be called before any thread fetches; io error where libcurl cannot be used.
void require_curl();

struct FetchListener {
  std::function<void(int64_t)> received;          // bytes
  std::function<void(const std::string&)> retry;  // why the file is tried again
};

// One file of a download, from the first attempt to the last, as download() says. False where it was there already;
// throws an error that says why it cannot be had.
bool fetch(const DownloadItem& item, const DownloadOptions& options, const FetchListener& listener);

}  // namespace megalith::data
