#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/hash/digest.h"
#include "data/prepare/write/shard_index.h"
#include "data/prepare/write/shard_journal.h"

namespace megalith::data {

// One output, `<prefix>.bin` and `<prefix>.idx`, made unit by unit so that a kill costs the unfinished units only:
//
//   <prefix>.bin.part      the tokens so far
//   <prefix>.lengths.part  int32 length of each document, from which the index is made at the end
//   <prefix>.journal       after each unit, how long both were and their digests; also the lock
//   <prefix>.json          comes last: only this says that the output is complete
//
// What the journal claims is believed after the digests have been recomputed from the files.
class ShardWriter {
 public:
  // User error if another process writes this output.
  ShardWriter(std::string prefix, TokenType type, std::string config_hash);
  // Without commit() and without a finished unit the files vanish with the writer.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Units that are whole on disk; reads all of them again.
  int64_t verified_units();
  // Goes on behind that many units, which are verified. Called once, before anything is added.
  void resume(int64_t units);

  void add(std::span<const std::byte> tokens, std::span<const int32_t> lengths);
  // The tokens that come next may be taken back: those of a document whose length is not known yet.
  void begin_document() { document_begin_ = now_; }
  // Back to where the document began.
  void drop_document();
  // `counts` are those of the unit.
  void end_unit(const OutputCounts& counts);
  // Back to where the unit began.
  void abandon_unit();

  // Durable and under the final names. `describe` gives the text of the sidecar from what was written.
  struct Written {
    OutputCounts counts;
    WrittenFile bin;
    WrittenFile idx;
  };
  void commit(const std::function<std::string(const Written&)>& describe);

  const OutputCounts& counts() const { return counts_; }

 private:
  // Digests and lengths of the files at the end of a unit.
  struct Mark {
    Digest bin;
    Digest lengths;
    int64_t bin_bytes = 0;
    int64_t documents = 0;
  };

  std::string path(const char* suffix) const { return prefix_ + suffix; }
  void take_back_renamed_tokens();
  Mark verify(int64_t at_most, int64_t& units) const;

  std::string prefix_;
  TokenType type_;
  ShardJournal journal_;
  std::optional<File> bin_;
  std::optional<File> lengths_;
  Mark now_;
  Mark unit_begin_;
  Mark document_begin_;
  OutputCounts counts_;
  double synced_at_ = 0.0;
  bool committed_ = false;
};

}  // namespace megalith::data
