#include "checkpoint/file_names.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace megalith::checkpoint {

namespace {
// Decimal digits in front of `text`, which is cut; nothing where there are none or they overflow.
std::optional<int64_t> take_number(std::string_view& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

bool take_text(std::string_view& text, std::string_view wanted) {
  if (!text.starts_with(wanted)) return false;
  text.remove_prefix(wanted.size());
  return true;
}
}  // namespace

std::optional<int64_t> parse_number(std::string_view text) {
  const std::optional<int64_t> number = take_number(text);
  return text.empty() ? number : std::nullopt;
}

std::string step_name(int64_t step) {
  return fmt::format("step-{:08}", step);
}

std::optional<int64_t> parse_step_name(std::string_view name) {
  std::string_view rest = name;
  if (!take_text(rest, "step-")) return std::nullopt;
  const std::optional<int64_t> step = take_number(rest);
  if (!step || step_name(*step) != name) return std::nullopt;
  return step;
}

namespace {
// "<kind>-g<generation>-r<rank><ending>"
std::string name_of_rank(std::string_view kind, const ShardName& shard, std::string_view ending) {
  return fmt::format("{}-g{}-r{:05}{}", kind, shard.generation, shard.rank, ending);
}

std::optional<ShardName> parse_name_of_rank(std::string_view kind, std::string_view name, std::string_view ending) {
  std::string_view rest = name;
  if (!take_text(rest, kind) || !take_text(rest, "-g")) return std::nullopt;
  const std::optional<int64_t> generation = take_number(rest);
  if (!generation || !take_text(rest, "-r")) return std::nullopt;
  const std::optional<int64_t> rank = take_number(rest);
  if (!rank) return std::nullopt;
  const ShardName shard{.generation = *generation, .rank = *rank};
  if (name_of_rank(kind, shard, ending) != name) return std::nullopt;
  return shard;
}
}  // namespace

std::string shard_name(const ShardName& shard) {
  return name_of_rank("shard", shard, ".safetensors");
}
std::optional<ShardName> parse_shard_name(std::string_view name) {
  return parse_name_of_rank("shard", name, ".safetensors");
}
std::string part_name(const ShardName& shard) {
  return name_of_rank("part", shard, ".json");
}
std::optional<ShardName> parse_part_name(std::string_view name) {
  return parse_name_of_rank("part", name, ".json");
}

bool is_file_of_step(std::string_view name) {
  constexpr std::string_view kUnfinished = ".part";
  if (name.ends_with(kBadSuffix)) return parse_shard_name(name.substr(0, name.size() - kBadSuffix.size())).has_value();
  if (name.ends_with(kUnfinished)) name.remove_suffix(kUnfinished.size());
  return name == kManifestName || parse_shard_name(name) || parse_part_name(name);
}

std::string trash_name(int64_t step, int64_t count) {
  return fmt::format("trash-{}-g{}", step_name(step), count);
}

bool is_trash_name(std::string_view name) {
  std::string_view rest = name;
  if (!take_text(rest, "trash-step-")) return false;
  const std::optional<int64_t> step = take_number(rest);
  if (!step || !take_text(rest, "-g")) return false;
  const std::optional<int64_t> count = take_number(rest);
  return count && trash_name(*step, *count) == name;
}

File open_plain_file(const std::filesystem::path& path) {
  struct stat named {};
  if (::lstat(path.c_str(), &named) != 0) io_error_errno(fmt::format("cannot find {}", path.string()));
  if (!S_ISREG(named.st_mode)) data_error("{} is not a regular file", path.string());
  File file = File::open_for_reading(path);
  // The name may have been turned into a link between the two calls.
  struct stat opened {};
  if (::fstat(file.descriptor(), &opened) != 0) io_error_errno(fmt::format("cannot stat {}", path.string()));
  if (opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
    data_error("{} was replaced while opening", path.string());
  return file;
}

void check_plain_file(const std::filesystem::path& path, int64_t bytes) {
  struct stat named {};
  if (::lstat(path.c_str(), &named) != 0) data_error("{} is missing", path.string());
  if (!S_ISREG(named.st_mode)) data_error("{} is not a regular file", path.string());
  if (named.st_size != bytes) data_error("{} has {} bytes, its manifest says {}", path.string(), named.st_size, bytes);
}

std::string read_plain_text(const std::filesystem::path& path) {
  constexpr int64_t kMaxBytes = int64_t{256} << 20;
  const File file = open_plain_file(path);
  if (file.size() > kMaxBytes)
    data_error("{} has {} bytes, at most {} are accepted", path.string(), file.size(), kMaxBytes);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_plain_directory(const std::filesystem::path& path) {
  std::error_code status;
  return std::filesystem::symlink_status(path, status).type() == std::filesystem::file_type::directory;
}

}  // namespace megalith::checkpoint
