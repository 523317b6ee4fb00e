#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace megalith {

// An owned file descriptor. Every failure throws an I/O error that names the file. Files that are made are for whom the
// umask says.
class File {
 public:
  static File open_for_reading(const std::filesystem::path& path);
  // Fails if the file exists.
  static File create_new(const std::filesystem::path& path);
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
  void truncate(int64_t size);
  // The next read comes from the disk, not from memory, where the file system can do that.
  void forget_cache() const;

 private:
  File(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_ = -1;
};

std::string read_text(const std::filesystem::path& path);

// -1 if there is none.
int64_t size_if_there(const std::filesystem::path& path);
void remove_if_there(const std::filesystem::path& path);

// A file that is published when it is whole; emptied if it was there.
File open_part_file(const std::filesystem::path& path);
void rename_over(const std::filesystem::path& from, const std::filesystem::path& to);
// Renames over `to` and makes that durable. What was written to `part` is durable only if it was synced.
void publish(const std::filesystem::path& part, const std::filesystem::path& to);
// Writes to `path`.part, syncs and publishes it: readers see the old content or the new one.
void replace_file(const std::filesystem::path& path, std::string_view content);
// The same by way of a file of another name in the same directory.
void replace_file_through(const std::filesystem::path& part, const std::filesystem::path& path,
                          std::string_view content);

void sync_directory(const std::filesystem::path& directory);

// Creates the directory and its parents, for whom the umask says.
void make_directory(const std::filesystem::path& directory);
// The directory of a file that will be written; nothing for one in the current directory.
void make_parent_directory(const std::filesystem::path& file);
// The same; if it is made, the last one is for its owner alone.
void make_private_directory(const std::filesystem::path& directory);

}  // namespace megalith
