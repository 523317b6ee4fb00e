#include "resilience/record/control_directory.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "core/error.h"
#include "core/run_folders.h"

namespace megalith::resilience {

namespace {
class DiskAppendedFile final : public AppendedFile {
 public:
  explicit DiskAppendedFile(File file) : file_(std::move(file)) {}
  void append(std::string_view text) override { file_.write(text); }
  void sync() override { file_.sync(); }

 private:
  File file_;
};

// Nothing where the file exists.
std::optional<File> create_file(const std::filesystem::path& path) {
  try {
    return File::create_new(path);
  } catch (const Error&) {
    if (size_if_there(path) >= 0) return std::nullopt;
    throw;
  }
}

// Gives `part` its name unless the name is taken. Nothing where the file system has no hard links.
std::optional<bool> link_exclusively(const std::filesystem::path& part, const std::filesystem::path& path) {
  if (::link(part.c_str(), path.c_str()) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno == EPERM || errno == ENOTSUP || errno == ENOSYS || errno == EMLINK) return std::nullopt;
  io_error_errno(fmt::format("cannot create {}", path.string()));
}
}  // namespace

DiskControlDirectory::DiskControlDirectory(const std::filesystem::path& run_directory)
    : folder_(run_directory / kControlFolder) {
  if (!std::filesystem::is_directory(run_directory)) {
    throw Error(ErrorKind::io, fmt::format("{} is not there: it is the run directory", run_directory.string()));
  }
  make_private_directory(folder_);
}

std::vector<std::string> DiskControlDirectory::list() const {
  std::vector<std::string> names;
  std::error_code status;
  std::filesystem::directory_iterator entries(folder_, status);
  if (status) throw Error(ErrorKind::io, fmt::format("cannot read {}: {}", folder_.string(), status.message()));
  for (const auto& entry : entries) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with('.')) names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::optional<std::string> DiskControlDirectory::read(const std::string& name) const {
  if (size_if_there(folder_ / name) < 0) return std::nullopt;
  return read_text(folder_ / name);
}

// Written under another name first, so that a crash leaves no half of it; where there are no hard links, a torn file is
// what a crash may leave, and its reader refuses it.
bool DiskControlDirectory::create(const std::string& name, std::string_view content) {
  const std::filesystem::path path = folder_ / name;
  const std::filesystem::path part = folder_ / fmt::format(".{}.{}.part", name, ::getpid());
  {
    File file = open_part_file(part);
    file.write(content);
    file.sync();
  }
  std::optional<bool> taken = link_exclusively(part, path);
  remove_if_there(part);
  if (!taken.has_value()) {
    std::optional<File> file = create_file(path);
    taken = file.has_value();
    if (file) {
      file->write(content);
      file->sync();
    }
  }
  sync_directory(folder_);
  return *taken;
}

std::unique_ptr<AppendedFile> DiskControlDirectory::create_appended(const std::string& name) {
  std::optional<File> file = create_file(folder_ / name);
  if (!file) return nullptr;
  sync_directory(folder_);
  return std::make_unique<DiskAppendedFile>(*std::move(file));
}

std::string DiskControlDirectory::path_of(const std::string& name) const {
  return (folder_ / name).string();
}

std::vector<int64_t> numbered_files(const ControlDirectory& directory, std::string_view prefix,
                                    std::string_view suffix) {
  std::vector<int64_t> numbers;
  for (const std::string& name : directory.list()) {
    std::string_view digits = name;
    if (!digits.starts_with(prefix) || !digits.ends_with(suffix)) continue;
    digits.remove_prefix(prefix.size());
    if (digits.size() < suffix.size() + 6) continue;
    digits.remove_suffix(suffix.size());
    int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size() && number > 0) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace megalith::resilience
