#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace megalith::observe {

// The lines of a file that may still grow, each given once. A file that does not exist yet has none.
class LineTail {
 public:
  using Use = std::function<void(std::string_view line)>;

  explicit LineTail(std::filesystem::path path) : path_(std::move(path)) {}

  // Gives the complete, non-empty lines that came since the last call, without their ends. False: the file was replaced
  // or became shorter; what was given before no longer stands, and the next call begins at its start.
  bool poll(const Use& use);
  // Also the last line where its end is missing: nobody will write it any more.
  void finish(const Use& use);

 private:
  std::filesystem::path path_;
  uint64_t inode_ = 0;
  int64_t offset_ = 0;
  std::string unfinished_;
};

}  // namespace megalith::observe
