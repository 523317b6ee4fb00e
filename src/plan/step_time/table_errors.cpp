#include "plan/step_time/table_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "observe/draw/text_table.h"

namespace megalith::plan {

namespace {

constexpr size_t kLeastOfSweep = 3;

struct Compared {
  const TableRun* run = nullptr;
  double predicted = 0.0;  // seconds of a step
  double measured = 0.0;

  double error() const { return predicted / measured - 1.0; }
  double per_sample(double seconds) const { return seconds / static_cast<double>(run->features.global_batch); }
};
using Group = std::vector<Compared>;

TableError error_of(const std::string& name, const Group& group) {
  TableError result{.name = name, .runs = group.size(), .worst_id = {}};
  const auto count = static_cast<double>(group.size());
  std::vector<double> absolute;
  for (const Compared& c : group) {
    absolute.push_back(std::abs(c.error()));
    result.mape += absolute.back() / count;
    result.bias += c.error() / count;
    if (absolute.back() >= std::abs(result.worst)) {
      result.worst = c.error();
      result.worst_id = c.run->id;
    }
  }
  std::sort(absolute.begin(), absolute.end());
  const size_t half = absolute.size() / 2;
  result.median = absolute.size() % 2 == 1 ? absolute[half] : (absolute[half - 1] + absolute[half]) / 2;
  return result;
}

double kendall_tau(const Group& group) {
  double agreeing = 0.0;
  double pairs = 0.0;
  for (size_t i = 0; i < group.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double predicted = group[i].per_sample(group[i].predicted) - group[j].per_sample(group[j].predicted);
      const double measured = group[i].per_sample(group[i].measured) - group[j].per_sample(group[j].measured);
      const double product = predicted * measured;
      agreeing += product > 0 ? 1 : product < 0 ? -1 : 0;
      pairs += 1;
    }
  }
  return agreeing / pairs;
}

SweepError sweep_error(const std::string& name, Group group) {
  const double tau = kendall_tau(group);
  std::stable_sort(group.begin(), group.end(), [](const Compared& a, const Compared& b) {
    return a.per_sample(a.predicted) < b.per_sample(b.predicted);
  });
  const auto measured_best = [](const Group& some) {
    double best = INFINITY;
    for (const Compared& c : some) best = std::min(best, c.per_sample(c.measured));
    return best;
  };
  const double best = measured_best(group);
  const Group top3(group.begin(), group.begin() + 3);
  return {.name = name,
          .runs = group.size(),
          .regret = group.front().per_sample(group.front().measured) / best - 1.0,
          .top3_regret = measured_best(top3) / best - 1.0,
          .tau = tau};
}

std::string percent(double share) {
  return fmt::format("{:.2f}", 100 * share);
}

}  // namespace

const TableError* TableErrors::find(const std::string& name) const {
  const auto group = std::find_if(groups.begin(), groups.end(), [&](const TableError& g) { return g.name == name; });
  return group == groups.end() ? nullptr : &*group;
}

TableErrors compare(const std::vector<TableRun>& runs, const std::vector<Prediction>& predictions) {
  std::map<std::string, Group> groups;
  std::map<std::string, Group> sweeps;
  for (size_t i = 0; i < runs.size(); ++i) {
    const TableRun& run = runs[i];
    if (!run.measured_step_s || !predictions[i].problem.empty()) continue;
    const Compared compared{.run = &run, .predicted = predictions[i].parts.total(), .measured = *run.measured_step_s};
    groups["all"].push_back(compared);
    for (const auto& [kind, word] :
         {std::pair{"tier", &run.tier}, {"set", &run.set}, {"gpu", &run.gpu}, {"precision", &run.precision}}) {
      if (!word->empty()) groups[fmt::format("{} {}", kind, *word)].push_back(compared);
    }
    const bool counts = run.tier.empty() || run.tier == "A" || run.tier == "B";
    if (!run.sweep.empty() && counts) sweeps[run.sweep].push_back(compared);
  }
  TableErrors errors;
  for (const auto& [name, group] : groups) errors.groups.push_back(error_of(name, group));
  double weight = 0.0;
  for (const auto& [name, group] : sweeps) {
    if (group.size() < kLeastOfSweep) continue;
    errors.sweeps.push_back(sweep_error(name, group));
    errors.mean_regret += errors.sweeps.back().regret;
    errors.mean_tau += errors.sweeps.back().tau * static_cast<double>(group.size());
    weight += static_cast<double>(group.size());
  }
  if (!errors.sweeps.empty()) {
    errors.mean_regret /= static_cast<double>(errors.sweeps.size());
    errors.mean_tau /= weight;
  }
  return errors;
}

std::string describe(const TableErrors& errors) {
  if (errors.groups.empty()) return "no run of the table has a measured time to compare with\n";
  std::vector<observe::TextRow> rows;
  for (const TableError& e : errors.groups) {
    rows.push_back({e.name, std::to_string(e.runs), percent(e.mape), percent(e.median),
                    fmt::format("{:+.2f}", 100 * e.bias), fmt::format("{:+.2f}", 100 * e.worst), e.worst_id});
  }
  std::string text =
      observe::plain_table({"step time", "runs", "MAPE %", "median %", "bias %", "worst %", "its id"}, rows);
  if (errors.sweeps.empty()) return text;
  rows.clear();
  for (const SweepError& s : errors.sweeps) {
    rows.push_back(
        {s.name, std::to_string(s.runs), percent(s.regret), percent(s.top3_regret), fmt::format("{:.2f}", s.tau)});
  }
  rows.push_back({"mean (tau by runs)", "", percent(errors.mean_regret), "", fmt::format("{:.3f}", errors.mean_tau)});
  return text + "\n" + observe::plain_table({"sweep", "runs", "regret %", "best of top 3 %", "tau"}, rows);
}

}  // namespace megalith::plan
