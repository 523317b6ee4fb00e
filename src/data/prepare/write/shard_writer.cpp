#include "data/prepare/write/shard_writer.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "core/process/failpoint.h"

namespace megalith::data {

namespace {
// A kill loses nothing that was written; a power failure loses what was not synced. That is worth a few seconds' work.
constexpr double kSyncSeconds = 10.0;

// Adds bytes [from, to) of the file to the digest.
void add_range(Digest& digest, const File& file, int64_t from, int64_t to, std::vector<std::byte>& buffer) {
  while (from < to) {
    const auto part = std::span(buffer).first(static_cast<size_t>(std::min<int64_t>(to - from, std::ssize(buffer))));
    file.read_at(from, part);
    digest.add(part);
    from += std::ssize(part);
  }
}
}  // namespace

ShardWriter::ShardWriter(std::string prefix, TokenType type, std::string config_hash)
    : prefix_(std::move(prefix)), type_(type), journal_(prefix_ + ".journal", config_hash) {
  take_back_renamed_tokens();
}

ShardWriter::~ShardWriter() {
  if (committed_ || !journal_.entries().empty()) return;
  for (const char* suffix : {".bin.part", ".lengths.part", ".idx.part", ".journal"}) ::unlink(path(suffix).c_str());
}

// A kill between the renames of a commit leaves `.bin` without its sidecar; with `.lengths.part` still there, it can
// only be ours.
void ShardWriter::take_back_renamed_tokens() {
  const bool mid_commit = !journal_.entries().empty() && size_if_there(path(".lengths.part")) >= 0 &&
                          size_if_there(path(".bin.part")) < 0 && size_if_there(path(".bin")) >= 0 &&
                          size_if_there(path(".json")) < 0;
  if (!mid_commit) return;
  remove_if_there(path(".idx"));
  publish(path(".bin"), path(".bin.part"));
}

ShardWriter::Mark ShardWriter::verify(int64_t at_most, int64_t& units) const {
  Mark good;
  units = 0;
  if (size_if_there(path(".bin.part")) < 0 || size_if_there(path(".lengths.part")) < 0) return good;
  const File bin = File::open_for_reading(path(".bin.part"));
  const File lengths = File::open_for_reading(path(".lengths.part"));
  std::vector<std::byte> buffer(size_t{1} << 20);
  Mark mark;
  for (const JournalEntry& entry : std::span(journal_.entries()).first(static_cast<size_t>(at_most))) {
    const int64_t lengths_bytes = entry.documents * int64_t{sizeof(int32_t)};
    if (bin.size() < entry.bin_bytes || lengths.size() < lengths_bytes) break;
    add_range(mark.bin, bin, mark.bin_bytes, entry.bin_bytes, buffer);
    add_range(mark.lengths, lengths, mark.documents * int64_t{sizeof(int32_t)}, lengths_bytes, buffer);
    mark.bin_bytes = entry.bin_bytes;
    mark.documents = entry.documents;
    if (mark.bin.hex() != entry.bin_digest || mark.lengths.hex() != entry.lengths_digest) break;
    good = mark;
    ++units;
  }
  return good;
}

int64_t ShardWriter::verified_units() {
  int64_t units = 0;
  verify(std::ssize(journal_.entries()), units);
  return units;
}

void ShardWriter::resume(int64_t units) {
  int64_t verified = 0;
  now_ = verify(units, verified);
  MEGALITH_CHECK(verified == units, "{}: {} units were verified, not {}", prefix_, verified, units);
  journal_.cut(units);
  if (units > 0) counts_ = journal_.entries().back().counts;
  bin_.emplace(File::open_for_appending(path(".bin.part")));
  lengths_.emplace(File::open_for_appending(path(".lengths.part")));
  bin_->truncate(now_.bin_bytes);
  lengths_->truncate(now_.documents * int64_t{sizeof(int32_t)});
  unit_begin_ = now_;
  synced_at_ = monotonic_seconds();
}

void ShardWriter::add(std::span<const std::byte> tokens, std::span<const int32_t> lengths) {
  bin_->write(tokens);
  lengths_->write(std::as_bytes(lengths));
  now_.bin.add(tokens);
  now_.lengths.add(std::as_bytes(lengths));
  now_.bin_bytes += std::ssize(tokens);
  now_.documents += std::ssize(lengths);
}

void ShardWriter::drop_document() {
  bin_->truncate(document_begin_.bin_bytes);
  now_ = document_begin_;
}

void ShardWriter::end_unit(const OutputCounts& counts) {
  pass_failpoint("prepare.unit");
  counts_.append(counts);
  if (monotonic_seconds() - synced_at_ > kSyncSeconds) {
    bin_->sync();
    lengths_->sync();
    journal_.sync();
    synced_at_ = monotonic_seconds();
  }
  journal_.add({now_.bin_bytes, now_.documents, now_.bin.hex(), now_.lengths.hex(), counts_});
  unit_begin_ = now_;
}

void ShardWriter::abandon_unit() {
  bin_->truncate(unit_begin_.bin_bytes);
  lengths_->truncate(unit_begin_.documents * int64_t{sizeof(int32_t)});
  now_ = unit_begin_;
}

void ShardWriter::commit(const std::function<std::string(const Written&)>& describe) {
  pass_failpoint("prepare.commit");
  bin_->sync();
  Written written{counts_, {now_.bin_bytes, now_.bin.hex()}, {}};
  written.idx = write_index(path(".idx.part"), path(".lengths.part"), type_);
  // Old files must not be taken for these: the sidecar goes first and comes last.
  remove_if_there(path(".json"));
  remove_if_there(path(".idx"));
  rename_over(path(".bin.part"), path(".bin"));
  publish(path(".idx.part"), path(".idx"));  // makes both durable before the sidecar speaks of them
  replace_file(path(".json"), describe(written));
  committed_ = true;
  remove_if_there(path(".lengths.part"));
  remove_if_there(path(".journal"));
}

}  // namespace megalith::data
