#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/telemetry.h"
#include "resilience/facts.h"
#include "resilience/record/control_directory.h"

namespace megalith::resilience {

// A supervisor's journal, control/term-000003.jsonl in the run directory: the facts that changed its mind, in the order
// in which the controller took them, as lines of events.jsonl (observe/sinks/events.h). Creating the file is the claim
// of the term: one writer per file, ever. Taking the facts of all journals in their order gives the controller's state.

// What stands before the kind of a fact in the failpoint that its line passes, once it is written and before anything
// follows from it: "journal.claimed".
inline constexpr const char* kJournalFailpoints = "journal.";

std::string journal_file_name(int64_t term);  // term-000003.jsonl
// 0: there is none. By the names alone.
int64_t newest_term(const ControlDirectory& directory);

struct JournalOrigin {
  std::string run;
  std::string boot_id;
};

class Journal {
 public:
  // Takes the next term. Nothing where another supervisor was quicker.
  static std::optional<Journal> claim(ControlDirectory& directory, int64_t term, const JournalOrigin& origin);

  int64_t term() const { return term_; }
  // Not yet synced.
  void append(const Fact& fact, const Moment& when);
  // Nothing that follows from the facts may leave before this has returned.
  void sync();

 private:
  Journal(std::unique_ptr<AppendedFile> file, int64_t term, JournalOrigin origin);

  std::unique_ptr<AppendedFile> file_;
  int64_t term_;
  JournalOrigin origin_;
  int64_t sequence_ = 0;
  bool is_synced_ = true;
};

struct JournalEntry {
  Fact fact;
  std::string boot_id;  // of the machine that wrote it
  Moment when;
};

// What one leader wrote, up to a last line that a kill has torn. Data error by name for a line that is damaged
// elsewhere, belongs to another run, is missing, or was written by a newer version.
std::vector<JournalEntry> read_journal(const ControlDirectory& directory, int64_t term, const std::string& run);
// The same for a text, as `where` names it.
std::vector<JournalEntry> parse_journal(std::string_view text, const std::string& run, const std::string& where);

}  // namespace megalith::resilience
