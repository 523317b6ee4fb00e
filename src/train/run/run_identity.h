#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/run/tiers.h"

namespace megalith::train {

// A run as its directory knows it; all ranks are told.
struct RunIdentity {
  std::string id;
  int64_t generation = 0;   // starts before this one
  bool resumes = false;     // there was a run here before
  bool is_guess = false;    // nothing was left that says which run that was: the id is a new one
  bool has_roster = false;  // whose generation this is: a supervisor counts from 1

  // The number of this start, from 1, in the names of what it saves.
  int64_t start() const { return has_roster ? generation : generation + 1; }

  std::string to_text() const;
  static RunIdentity from_text(const std::string& text);

  bool operator==(const RunIdentity&) const = default;
};

struct CountedStart {
  RunIdentity identity;
  std::string note;  // what people should know of it; empty: nothing
};

// Of the run whose starts the file counts, or of a new run unless it `resumes`; counts this start. Where the file is
// lost or nonsense, what `own` tiers hold says which run it is: user error where that is more than one. A guess is not
// written down: it must first be seen that nothing is lost with it.
CountedStart count_start(const std::filesystem::path& file, bool resumes, const Tiers& own);
void write_starts(const std::filesystem::path& file, const RunIdentity& identity);

}  // namespace megalith::train
