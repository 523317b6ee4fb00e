#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

// An owned file descriptor. Every failure throws an I/O error that names the file.
class File {
 public:
  static File open_for_reading(const std::filesystem::path& path);
  // Fails if the file exists; for its owner alone.
  static File create_new(const std::filesystem::path& path);
  // For whom the umask says: logs and datasets are shared.
  static File open_for_appending(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  int descriptor() const { return fd_; }
  const std::filesystem::path& path() const { return path_; }
  int64_t size() const;

  // Fills the whole span from `offset`, or throws a data error that says how short the file is.
  void read_at(int64_t offset, std::span<std::byte> into) const;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void sync();
  // The next read comes from the disk, not from memory, where the file system can do that.
  void forget_cache() const;

 private:
  File(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;
};

std::string read_text(const std::filesystem::path& path);

// Writes beside `path`, syncs, renames over it and syncs the directory: readers see the old content or the new one.
void replace_file(const std::filesystem::path& path, std::string_view content);

void sync_directory(const std::filesystem::path& directory);

// Creates the directory and its parents (mode 0700 for the last one).
void make_directory(const std::filesystem::path& directory);

}  // namespace megalith
