#include "train/run/run_identity.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <sstream>

#include "checkpoint/file_names.h"
#include "checkpoint/lineage.h"
#include "checkpoint/nodes/part_store.h"
#include "core/error.h"

namespace megalith::train {

namespace {

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

constexpr int64_t kMostStarts = 1'000'000'000;

bool is_run_id(const std::string& text) {
  constexpr size_t kLength = 16;
  return text.size() == kLength && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// "<id> <starts>"; nothing for anything else.
std::optional<RunIdentity> read_starts(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return std::nullopt;
  RunIdentity identity;
  std::string starts;
  std::string more;
  std::istringstream words(read_text(file));
  words >> identity.id >> starts;
  const std::optional<int64_t> count = checkpoint::parse_number(starts);
  if (!is_run_id(identity.id) || !count || *count > kMostStarts || words >> more) return std::nullopt;
  identity.generation = *count;
  return identity;
}

// Of each run that left something in these tiers, the number of the start that saved it.
std::map<std::string, int64_t> runs_in(const Tiers& tiers) {
  std::map<std::string, int64_t> runs;
  const auto add = [&](const checkpoint::RunState& state) {
    int64_t& last = runs[state.run_id];
    last = std::clamp<int64_t>(checkpoint::generation_of(state), last, kMostStarts);
  };
  if (!tiers.persistent.empty()) {
    for (const checkpoint::StepInfo& step : checkpoint::Store(tiers.persistent).list()) {
      if (step.status == checkpoint::StepStatus::committed) add(step.state);
    }
  }
  for (const checkpoint::HeldPart& part : checkpoint::parts_on(tiers.on_node())) add(part.manifest.state);
  return runs;
}

CountedStart find_again(const std::filesystem::path& file, const Tiers& own) {
  const std::map<std::string, int64_t> runs = runs_in(own);
  if (runs.size() > 1) {
    std::vector<std::string> lines;
    for (const auto& [run, start] : runs) lines.push_back(fmt::format("'{} {}'", run, start));
    user_error("{} is lost or damaged, and there are checkpoints of {} runs here: write the line of this run to it: {}",
               file.string(), runs.size(), fmt::join(lines, " or "));
  }
  if (runs.empty()) {
    return {.identity = {.id = new_run_id(), .is_guess = true},
            .note = fmt::format("{} is lost or damaged: which run this was is not known", file.string())};
  }
  const auto& [run, start] = *runs.begin();
  return {.identity = {.id = run, .generation = start},
          .note = fmt::format("{} is lost or damaged: its checkpoints say that this is run {}", file.string(), run)};
}

}  // namespace

std::string RunIdentity::to_text() const {
  return fmt::format("{} {} {} {} {}", id, generation, resumes, is_guess, has_roster);
}

RunIdentity RunIdentity::from_text(const std::string& text) {
  RunIdentity identity;
  std::istringstream(text) >> identity.id >> identity.generation >> std::boolalpha >> identity.resumes >>
      identity.is_guess >> identity.has_roster;
  return identity;
}

CountedStart count_start(const std::filesystem::path& file, bool resumes, const Tiers& own) {
  CountedStart start;
  if (!resumes) {
    start.identity.id = new_run_id();
  } else if (const std::optional<RunIdentity> known = read_starts(file)) {
    start.identity = *known;
  } else {
    start = find_again(file, own);
  }
  start.identity.resumes = resumes;
  if (!start.identity.is_guess) write_starts(file, start.identity);
  return start;
}

void write_starts(const std::filesystem::path& file, const RunIdentity& identity) {
  replace_file(file, fmt::format("{} {}\n", identity.id, identity.start()));
}

}  // namespace megalith::train
