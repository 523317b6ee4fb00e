#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"

namespace megalith::resilience {

// A file that one writer appends to.
class AppendedFile {
 public:
  virtual ~AppendedFile() = default;
  virtual void append(std::string_view text) = 0;
  virtual void sync() = 0;
};

// The folder control/ of a run directory: rosters and terms, which are created exclusively and never changed. All of it
// throws I/O errors. The simulation has one in memory.
class ControlDirectory {
 public:
  virtual ~ControlDirectory() = default;
  virtual std::vector<std::string> list() const = 0;
  // Nothing where there is no such file.
  virtual std::optional<std::string> read(const std::string& name) const = 0;
  // Synced, with its directory. False where the file exists, and nothing is written.
  virtual bool create(const std::string& name, std::string_view content) = 0;
  // The same for a file that grows. Null where it exists.
  virtual std::unique_ptr<AppendedFile> create_appended(const std::string& name) = 0;
  // What errors call a file.
  virtual std::string path_of(const std::string& name) const = 0;
};

class DiskControlDirectory final : public ControlDirectory {
 public:
  // Makes the folder if it is missing, for its owner alone. `run_directory` must exist.
  explicit DiskControlDirectory(const std::filesystem::path& run_directory);

  std::vector<std::string> list() const override;
  std::optional<std::string> read(const std::string& name) const override;
  bool create(const std::string& name, std::string_view content) override;
  std::unique_ptr<AppendedFile> create_appended(const std::string& name) override;
  std::string path_of(const std::string& name) const override;

 private:
  std::filesystem::path folder_;
};

// The numbers in names such as roster-000012.json, rising; names of another form are left out.
std::vector<int64_t> numbered_files(const ControlDirectory& directory, std::string_view prefix,
                                    std::string_view suffix);

}  // namespace megalith::resilience
