#include "data/prepare/read/input_list.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "core/error.h"

namespace megalith::data {

namespace {
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_number(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_digit);
  return text.substr(0, static_cast<size_t>(end - text.begin()));
}

std::string_view without_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

InputFile describe(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) user_error("input {}: {}", path.string(), std::strerror(errno));
  if (S_ISDIR(info.st_mode)) {
    user_error("input {} is a directory: give the files in it, for example '{}'", path.string(),
               (path / "*.jsonl.zst").string());
  }
  if (!S_ISREG(info.st_mode)) {
    user_error("input {} is a {}, where a file is expected", path.string(), S_ISFIFO(info.st_mode) ? "FIFO" : "device");
  }
  return {path.lexically_normal(), info.st_size, int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

std::vector<std::string> matches_of(const std::string& pattern) {
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  // A file may have such a character in its name.
  if (std::error_code status; std::filesystem::is_regular_file(pattern, status)) return {pattern};
  glob_t found{};
  errno = 0;
  const int status = ::glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  const bool no_folder = status == GLOB_ABORTED && errno == ENOENT;
  std::vector<std::string> paths;
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) paths.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (status == GLOB_NOMATCH || no_folder) user_error("no file matches {}", pattern);
  if (status != 0) fail(ErrorKind::io, "cannot list the files of {}", pattern);
  std::sort(paths.begin(), paths.end(), natural_less);
  return paths;
}
}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a[0]) && is_digit(b[0])) {
      const auto digits_a = take_number(a);
      const auto digits_b = take_number(b);
      const auto number_a = without_zeros(digits_a);
      const auto number_b = without_zeros(digits_b);
      if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
      if (number_a != number_b) return number_a < number_b;
      a.remove_prefix(digits_a.size());
      b.remove_prefix(digits_b.size());
    } else {
      if (a[0] != b[0]) return static_cast<unsigned char>(a[0]) < static_cast<unsigned char>(b[0]);
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  if (a.empty() && b.empty()) return whole_a < whole_b;  // they differ in leading zeros at most
  return a.empty();
}

std::vector<InputFile> list_inputs(const std::vector<std::string>& patterns, bool sort_all) {
  std::vector<std::string> paths;
  for (const std::string& pattern : patterns) {
    for (std::string& path : matches_of(pattern)) paths.push_back(std::move(path));
  }
  if (paths.empty()) user_error("no input file given: name files or patterns with --input");
  if (sort_all) std::sort(paths.begin(), paths.end(), natural_less);
  std::vector<InputFile> files;
  std::map<std::filesystem::path, std::string> seen;
  for (const std::string& path : paths) {
    files.push_back(describe(path));
    const auto [first, fresh] = seen.emplace(std::filesystem::canonical(path), path);
    if (!fresh && first->second == path) user_error("input {} is given twice", path);
    if (!fresh) user_error("inputs {} and {} are the same file", first->second, path);
  }
  return files;
}

void check_unchanged(const InputFile& file) {
  if (describe(file.path) != file) {
    data_error("{} was changed after the list of inputs was made", file.path.string());
  }
}

std::filesystem::path uncompressed_name(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".gz" || extension == ".zst" ? std::filesystem::path(path).replace_extension() : path;
}

bool is_parquet(const std::filesystem::path& path, InputFormat format) {
  return format == InputFormat::parquet || (format == InputFormat::by_name && path.extension() == ".parquet");
}

Cut cut_of(const std::filesystem::path& path, InputFormat format, TextDocuments text) {
  if (format == InputFormat::json_lines || is_parquet(path, format)) return Cut::lines;
  if (format == InputFormat::by_name) {
    const std::string extension = uncompressed_name(path).extension().string();
    if (extension == ".jsonl" || extension == ".json") return Cut::lines;
    if (extension != ".txt") {
      user_error(
          "{}: the name does not end in .jsonl, .json or .txt (with .gz or .zst) or .parquet; say with --format what "
          "it "
          "is: jsonl, text or parquet",
          path.string());
    }
  }
  return text == TextDocuments::blank_lines ? Cut::blank_lines : Cut::whole_file;
}

}  // namespace megalith::data
