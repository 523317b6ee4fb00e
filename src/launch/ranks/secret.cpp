#include "launch/ranks/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "config/environment/variables.h"
#include "core/error.h"
#include "core/file.h"
#include "core/hash/crypto.h"

namespace megalith::launch {

namespace {

constexpr const char* kVariable = "MEGALITH_STORE_SECRET";
constexpr const char* kFileVariable = "MEGALITH_STORE_SECRET_FILE";
constexpr size_t kSecretBytes = 32;
constexpr int64_t kMostBytes = 4096;

bool is_own_group(gid_t group) {
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, count)));
  const int filled = ::getgroups(count, groups.data());
  groups.resize(static_cast<size_t>(std::max(0, filled)));
  return group == ::getegid() || std::find(groups.begin(), groups.end(), group) != groups.end();
}

// fsGroup: root owns the file, a group of the pod reads it, nobody writes to it.
bool is_of_kubernetes(const struct stat& info) {
  return info.st_uid == 0 && (info.st_mode & 0777) == 0440 && ::geteuid() != 0 && is_own_group(info.st_gid);
}

void check_mode(const std::filesystem::path& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) user_error("{}={} is not a file", kFileVariable, path.string());
  const mode_t mode = info.st_mode & 0777;
  if ((mode & 0077) == 0 || is_of_kubernetes(info)) return;
  user_error(
      "{}={} has mode {:04o}: others than its owner can use it; make it 0600 (chmod 600), and launch again if "
      "somebody may have read it",
      kFileVariable, path.string(), mode);
}

}  // namespace

std::string read_secret_file(const std::filesystem::path& path) {
  std::string text;
  try {
    const File file = File::open_for_reading(path);
    struct stat info {};
    if (::fstat(file.descriptor(), &info) != 0) io_error_errno(fmt::format("cannot stat {}", path.string()));
    check_mode(path, info);
    if (info.st_size > kMostBytes)
      user_error("{}={} holds {} bytes: no secret", kFileVariable, path.string(), info.st_size);
    text.resize(static_cast<size_t>(info.st_size));
    file.read_at(0, std::as_writable_bytes(std::span(text)));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::user) throw;
    user_error("{}: {}; it must be on storage that every node sees", kFileVariable, error.what());
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  if (text.empty()) user_error("{}={} is empty", kFileVariable, path.string());
  return text;
}

std::string secret_of_run(const config::Lookup& environment) {
  const config::Variables variables(environment);
  const auto file = variables.text(kFileVariable);
  const auto secret = variables.text(kVariable);
  if (file && secret) user_error("{} and {} are both set: unset one of them", kVariable, kFileVariable);
  return file ? read_secret_file(*file) : secret.value_or("");
}

std::string new_secret() {
  std::string text;
  for (const char byte : random_bytes(kSecretBytes)) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

void write_secret_file(const std::filesystem::path& path) {
  const std::string text = new_secret() + '\n';
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) io_error_errno(fmt::format("cannot create {}", path.string()));
  const bool is_private = ::fchmod(descriptor, 0600) == 0;  // whatever the folder's access list says
  const bool is_written = is_private && ::write(descriptor, text.data(), text.size()) == std::ssize(text);
  const int problem = errno;
  ::close(descriptor);
  if (is_written) return;
  errno = problem;
  io_error_errno(fmt::format("cannot write {}", path.string()));
}

}  // namespace megalith::launch
