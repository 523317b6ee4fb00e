#pragma once

#include <cstdint>
#include <optional>

#include "resilience/decide/controller.h"
#include "resilience/record/journal.h"

namespace megalith::resilience {

// What the supervisors before have left: the facts of all terms, taken in their order. Of each term count those that
// its successor knew: what a supervisor wrote after it was overtaken has changed nothing.
struct Inheritance {
  RunState state;
  int64_t last_term = 0;  // that has facts; 0: none
  int64_t entries = 0;    // of that term
  std::optional<JournalEntry> last;
};

// Data error by name where a journal is damaged, missing, newer, or of another run.
Inheritance inherit(const ControlDirectory& directory, const std::string& run, const ControllerGuards& guards = {});

// The first fact of a new term, whose state becomes that of the inheritance.
Fact lead_fact(const Inheritance& inheritance, const ControlDirectory& directory, const Settings& settings,
               int64_t term, const std::string& boot_id, const Moment& now);

}  // namespace megalith::resilience
