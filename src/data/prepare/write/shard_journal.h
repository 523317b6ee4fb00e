#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/file.h"
#include "data/prepare/write/output_counts.h"

namespace megalith::data {

// How far an output had come when a unit (an input file) was finished.
struct JournalEntry {
  int64_t bin_bytes = 0;
  int64_t documents = 0;
  std::string bin_digest;      // of all the bytes up to here
  std::string lengths_digest;  // of the spooled lengths up to here
  OutputCounts counts;
};

// The finished units of one output, one line each, on disk. A line that was cut off by a kill counts for nothing. It is
// also the lock of the output.
class ShardJournal {
 public:
  // Takes over what is there if it was made with the same configuration, and starts anew otherwise.
  ShardJournal(const std::filesystem::path& path, const std::string& config_hash);

  const std::vector<JournalEntry>& entries() const { return entries_; }
  void add(JournalEntry entry);
  // Forgets all but the first `count` entries.
  void cut(int64_t count);
  void sync() { file_.sync(); }

 private:
  void load(const std::string& config_hash);

  File file_;
  std::vector<JournalEntry> entries_;
  std::vector<int64_t> ends_;  // of the header and of each entry, in the file
};

}  // namespace megalith::data
