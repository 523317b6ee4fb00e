#include "checkpoint/new_directory.h"

#include <sys/stat.h>

#include <cstdio>
#include <random>

#include "checkpoint/file_names.h"
#include "core/error.h"
#include "core/file.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

fs::path without_trailing_slash(fs::path path) {
  path = fs::absolute(path).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

void check_free(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(fs::symlink_status(path, status))) return;
  if (!is_plain_directory(path)) user_error("{} exists and is not a directory", path.string());
  if (!fs::is_empty(path)) user_error("{} is not empty: nothing is overwritten, name a new directory", path.string());
}

}  // namespace

NewDirectory::NewDirectory(fs::path path) : path_(without_trailing_slash(std::move(path))) {
  check_free(path_);
  std::error_code ignored;
  fs::create_directories(path_.parent_path(), ignored);
  std::random_device random;
  const std::string beside = fmt::format("{}.part-{:08x}", path_.string(), random());
  if (::mkdir(beside.c_str(), 0777) != 0) io_error_errno(fmt::format("cannot create directory {}", beside));
  unfinished_ = beside;
}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!unfinished_.empty()) fs::remove_all(unfinished_, ignored);
}

void NewDirectory::commit() {
  sync_directory(unfinished_);
  check_free(path_);
  // Takes the place of an empty directory, and of nothing else.
  publish(unfinished_, path_);
  unfinished_.clear();
}

}  // namespace megalith::checkpoint
