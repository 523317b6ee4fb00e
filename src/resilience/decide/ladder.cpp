#include "resilience/decide/ladder.h"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "core/error.h"
#include "resilience/names.h"

namespace megalith::resilience {

namespace {
constexpr std::array<const char*, kRungs> kRungWords = {"in_job_restart", "workload_restart", "hot_swap", "give_up"};
constexpr auto kInJob = Rung::in_job_restart;
constexpr auto kWorkload = Rung::workload_restart;
constexpr auto kSwap = Rung::hot_swap;
constexpr auto kGiveUp = Rung::give_up;

std::vector<Rung> rungs_of(const YAML::Node& value, const std::string& where, const std::string& symptom) {
  std::vector<Rung> rungs;
  if (!value.IsSequence() || value.size() == 0) user_error("{}: {} needs a list of rungs", where, symptom);
  for (const YAML::Node& element : value) {
    const std::string word = element.IsScalar() ? element.as<std::string>() : "a list";
    const std::optional<Rung> rung = value_of<Rung>(kRungWords, word);
    if (!rung) {
      user_error("{}: {} has the rung '{}', which is none of {}", where, symptom, word, fmt::join(kRungWords, ", "));
    }
    if (!rungs.empty() && *rung < rungs.back()) {
      user_error("{}: {} goes down from {} to {}: a rung may only be as high as the one before, or higher", where,
                 symptom, name_of(rungs.back()), word);
    }
    rungs.push_back(*rung);
  }
  return rungs;
}
}  // namespace

const char* name_of(Rung rung) {
  return word_of(kRungWords, rung);
}

Ladder::Ladder()
    : rows_{{.symptom = Symptom::rank_ended, .same = Sameness::node, .rungs = {kInJob, kWorkload, kSwap}},
            {.symptom = Symptom::user_error,
             .same = Sameness::words,
             .rungs = {kInJob, kGiveUp},
             .give_up_code = 2,
             .fatal_before_a_step = true},
            {.symptom = Symptom::call_failed, .same = Sameness::ranks, .rungs = {kInJob, kSwap}},
            {.symptom = Symptom::not_finite, .same = Sameness::step, .rungs = {kInJob, kGiveUp}},
            {.symptom = Symptom::load_failed, .same = Sameness::step, .rungs = {kInJob, kWorkload}},
            {.symptom = Symptom::rank_stuck, .same = Sameness::ranks, .rungs = {kInJob, kSwap}},
            {.symptom = Symptom::all_wait, .same = Sameness::anything, .rungs = {kInJob, kWorkload, kGiveUp}},
            {.symptom = Symptom::livelock, .same = Sameness::anything, .rungs = {kInJob, kWorkload, kGiveUp}},
            {.symptom = Symptom::store_ended, .same = Sameness::node, .rungs = {kInJob, kWorkload, kSwap}},
            {.symptom = Symptom::node_gone, .same = Sameness::node, .rungs = {kSwap}, .node_is_lost = true},
            {.symptom = Symptom::stop_failed, .same = Sameness::node, .rungs = {kSwap}, .node_is_lost = true},
            {.symptom = Symptom::check_failed, .same = Sameness::node, .rungs = {kSwap}, .node_is_lost = true},
            {.symptom = Symptom::start_failed, .same = Sameness::node, .rungs = {kWorkload, kSwap}}} {}

const LadderRow& Ladder::row(Symptom symptom) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const LadderRow& r) { return r.symptom == symptom; });
  MEGALITH_CHECK(found != rows_.end(), "the ladder has no row '{}'", name_of(symptom));
  return *found;
}

void Ladder::replace_rows(const std::string& policy, const std::string& where) {
  YAML::Node parsed;
  try {
    parsed = YAML::Load(policy);
  } catch (const YAML::Exception& error) {
    user_error("{}: not valid YAML ({})", where, error.what());
  }
  if (!parsed.IsMap()) user_error("{}: not a mapping of symptoms to lists of rungs", where);
  for (const auto& entry : parsed) {
    const std::string symptom = entry.first.IsScalar() ? entry.first.as<std::string>() : "a list";
    const auto row =
        std::find_if(rows_.begin(), rows_.end(), [&](const LadderRow& r) { return name_of(r.symptom) == symptom; });
    if (row == rows_.end()) {
      std::vector<std::string> known;
      for (const LadderRow& r : rows_) known.emplace_back(name_of(r.symptom));
      user_error("{}: '{}' is no symptom; there are {}", where, symptom, fmt::join(known, ", "));
    }
    const std::vector<Rung> rungs = rungs_of(entry.second, where, symptom);
    if (row->node_is_lost && rungs.front() < Rung::hot_swap) {
      user_error("{}: {} begins with {}, but the node cannot go on: hot_swap or give_up", where, symptom,
                 name_of(rungs.front()));
    }
    row->rungs = rungs;
  }
}

std::string Ladder::to_text() const {
  std::string text;
  for (const LadderRow& row : rows_) {
    std::vector<std::string> words;
    for (const Rung rung : row.rungs) words.emplace_back(name_of(rung));
    text += fmt::format("{}: [{}]\n", name_of(row.symptom), fmt::join(words, ", "));
  }
  return text;
}

}  // namespace megalith::resilience
