#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "resilience/facts.h"

namespace megalith::resilience {

// What a recovery does, from the cheapest to the last.
enum class Rung : uint8_t {
  in_job_restart,    // same nodes, ranks anew, state from the memory of nodes
  workload_restart,  // the same after checks on every node
  hot_swap,          // spares take the places of the nodes that are named
  give_up,
};
constexpr int kRungs = 4;
const char* name_of(Rung rung);

// What must be the same for a fault to count as one that was there before, within kRemembered.
enum class Sameness : uint8_t { node, ranks, words, step, anything };
constexpr double kRemembered = 24 * 3600.0;  // seconds

struct LadderRow {
  Symptom symptom;
  Sameness same;
  std::vector<Rung> rungs;           // the first time, the second, ...; the last one from then on
  bool node_is_lost = false;         // the nodes named cannot go on, whether there is a spare or not
  int64_t give_up_code = 70;         // exit code
  bool fatal_before_a_step = false;  // gives up at once while the run has not done a step

  bool operator==(const LadderRow&) const = default;
};

// Symptom -> rungs: docs/resilience.md explains the rows.
class Ladder {
 public:
  Ladder();  // the house's own

  const LadderRow& row(Symptom symptom) const;
  // Replaces rows by those of a policy, a YAML mapping such as "rank_stuck: [in_job_restart, workload_restart,
  // give_up]". User error that begins with `where` for unknown symptoms and rungs, for a way that goes down, and for
  // one that leads nowhere.
  void replace_rows(const std::string& policy, const std::string& where);
  // That mapping, of all rows.
  std::string to_text() const;
  // The lines of those that the other one has otherwise.
  std::vector<std::string> differences(const Ladder& other) const;

  bool operator==(const Ladder&) const = default;

 private:
  std::vector<LadderRow> rows_;
};

}  // namespace megalith::resilience
