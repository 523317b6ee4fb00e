#include "train/run/rosters.h"

#include <algorithm>
#include <string_view>

#include "checkpoint/file_names.h"
#include "core/error.h"
#include "core/run_folders.h"

namespace megalith::train {

namespace {

constexpr std::string_view kPrefix = "roster-";
constexpr std::string_view kSuffix = ".json";

int64_t generation_in(std::string_view name) {
  if (name.size() <= kPrefix.size() + kSuffix.size() || !name.starts_with(kPrefix) || !name.ends_with(kSuffix))
    return 0;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(kSuffix.size());
  return checkpoint::parse_number(name).value_or(0);
}

}  // namespace

int64_t newest_roster(const std::filesystem::path& run_directory) {
  const std::filesystem::path control = run_directory / kControlFolder;
  int64_t newest = 0;
  std::error_code status;
  for (std::filesystem::directory_iterator entry(control, status), end; !status && entry != end;
       entry.increment(status))
    newest = std::max(newest, generation_in(entry->path().filename().string()));
  if (status && status != std::errc::no_such_file_or_directory && status != std::errc::not_a_directory)
    fail(ErrorKind::io, "cannot list {}: {}", control.string(), status.message());
  return newest;
}

void refuse_superseded(const std::filesystem::path& run_directory, int64_t generation) {
  const int64_t newest = newest_roster(run_directory);
  if (newest <= generation) return;
  fail(ErrorKind::io, "generation {} has taken over this run, this process belongs to generation {}", newest,
       generation);
}

}  // namespace megalith::train
