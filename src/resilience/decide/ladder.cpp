#include "resilience/decide/ladder.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/yaml_tree.h"
#include "core/error.h"
#include "resilience/names.h"

namespace megalith::resilience {

namespace {
constexpr std::array<const char*, kRungs> kRungWords = {"in_job_restart", "workload_restart", "hot_swap", "give_up"};
constexpr auto kInJob = Rung::in_job_restart;
constexpr auto kWorkload = Rung::workload_restart;
constexpr auto kSwap = Rung::hot_swap;
constexpr auto kGiveUp = Rung::give_up;

std::vector<Rung> rungs_of(const config::YamlTree& list, const std::string& symptom) {
  using Kind = config::YamlTree::Kind;
  std::vector<Rung> rungs;
  if (list.kind != Kind::list || list.items.empty())
    user_error("{}: {} has no way out: it needs a list of rungs, such as [in_job_restart, give_up]", list.origin,
               symptom);
  for (const config::YamlTree& item : list.items) {
    const std::string word = item.kind == Kind::scalar ? item.text : "a list";
    const std::optional<Rung> rung = value_of<Rung>(kRungWords, word);
    if (!rung) {
      user_error("{}: {} has the rung '{}', which is none of {}", item.origin, symptom, word,
                 fmt::join(kRungWords, ", "));
    }
    if (!rungs.empty() && *rung < rungs.back()) {
      user_error("{}: {} goes down from {} to {}: a rung may only be as high as the one before, or higher", item.origin,
                 symptom, name_of(rungs.back()), word);
    }
    rungs.push_back(*rung);
  }
  return rungs;
}

// A way that ends nothing: a node that cannot go on is restarted, or nobody is swapped.
void require_a_way_out(const LadderRow& row, const std::vector<Rung>& rungs, const std::string& origin) {
  if (row.node_is_lost && rungs.front() < kSwap) {
    user_error("{}: {} has no way out: it begins with {}, but the node cannot go on: hot_swap or give_up", origin,
               name_of(row.symptom), name_of(rungs.front()));
  }
  const bool swaps = std::find(rungs.begin(), rungs.end(), kSwap) != rungs.end();
  if (row.same == Sameness::anything && swaps) {
    user_error("{}: {} has no way out by hot_swap: it names no node that could be swapped", origin,
               name_of(row.symptom));
  }
}

std::string line_of(const LadderRow& row) {
  std::vector<std::string> words;
  for (const Rung rung : row.rungs) words.emplace_back(name_of(rung));
  return fmt::format("{}: [{}]", name_of(row.symptom), fmt::join(words, ", "));
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
  const config::YamlTree parsed = config::read_yaml_tree(policy, where);
  if (parsed.kind != config::YamlTree::Kind::map)
    user_error("{}: not a mapping of symptoms to lists of rungs, such as rank_stuck: [hot_swap, give_up]", where);
  for (const auto& [symptom, list] : parsed.members) {
    const auto row = std::find_if(rows_.begin(), rows_.end(),
                                  [&, &name = symptom](const LadderRow& r) { return name_of(r.symptom) == name; });
    if (row == rows_.end()) {
      std::vector<std::string> known;
      for (const LadderRow& r : rows_) known.emplace_back(name_of(r.symptom));
      user_error("{}: '{}' is no symptom; there are {}", list.origin, symptom, fmt::join(known, ", "));
    }
    std::vector<Rung> rungs = rungs_of(list, symptom);
    require_a_way_out(*row, rungs, list.origin);
    row->rungs = std::move(rungs);
  }
}

std::string Ladder::to_text() const {
  std::string text;
  for (const LadderRow& row : rows_) text += line_of(row) + "\n";
  return text;
}

std::vector<std::string> Ladder::differences(const Ladder& other) const {
  std::vector<std::string> lines;
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i] != other.rows_[i]) lines.push_back(line_of(rows_[i]));
  }
  return lines;
}

}  // namespace megalith::resilience
