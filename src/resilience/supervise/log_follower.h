#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>

namespace megalith::resilience {

// Passes on whole lines that are added to a file, which may not be there yet.
class LogFollower {
 public:
  LogFollower(std::filesystem::path path, std::string prefix) : path_(std::move(path)), prefix_(std::move(prefix)) {}

  const std::filesystem::path& path() const { return path_; }
  // What there is before now is passed over.
  void skip();
  void pump(std::FILE* to);

 private:
  std::filesystem::path path_;
  std::string prefix_;
  int64_t read_ = 0;
  std::string begun_;  // a line without its end
};

}  // namespace megalith::resilience
