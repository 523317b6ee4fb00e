#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace megalith::train {

// A run as its directory knows it; all ranks are told.
struct RunIdentity {
  std::string id;
  int64_t generation = 0;  // starts before this one
  bool resumes = false;    // there was a run here before

  std::string to_text() const;
  static RunIdentity from_text(const std::string& text);

  bool operator==(const RunIdentity&) const = default;
};

// Of the run whose starts the file counts, or of a new run where there is no such file; counts this start.
RunIdentity count_start(const std::filesystem::path& file, bool resumes);

}  // namespace megalith::train
