#pragma once

#include <filesystem>

namespace megalith::checkpoint {

// A directory that is there when everything in it is: what is made lies beside it until commit(), and is gone where
// nobody came that far.
class NewDirectory {
 public:
  // User error where `path` is already something else than an empty directory.
  explicit NewDirectory(std::filesystem::path path);
  ~NewDirectory();
  NewDirectory(const NewDirectory&) = delete;
  NewDirectory& operator=(const NewDirectory&) = delete;

  // Where to put things before they are published.
  const std::filesystem::path& unfinished() const { return unfinished_; }
  // The files in it must have been synced.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path unfinished_;  // empty: committed
};

}  // namespace megalith::checkpoint
