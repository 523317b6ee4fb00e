#include "data/prepare/write/shard_journal.h"

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "core/process/file_lock.h"

namespace megalith::data {

namespace {
// "<digest of the JSON> <JSON>\n".
std::string line_of(const nlohmann::json& json) {
  const std::string text = json.dump();
  return digest_of(text) + " " + text + "\n";
}

// The content of the line at the start of `text`, which it leaves; nothing if the line is not whole.
std::optional<nlohmann::json> take_line(std::string_view& text) {
  constexpr size_t kDigest = Digest::kHexLength;
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || end <= kDigest) return std::nullopt;
  const std::string_view content = text.substr(kDigest + 1, end - kDigest - 1);
  if (digest_of(content) != text.substr(0, kDigest)) return std::nullopt;
  text.remove_prefix(end + 1);
  return nlohmann::json::parse(content);
}

nlohmann::json to_json(const JournalEntry& entry) {
  return {{"bin_bytes", entry.bin_bytes},
          {"documents", entry.documents},
          {"bin_xxh3", entry.bin_digest},
          {"lengths_xxh3", entry.lengths_digest},
          {"counts", entry.counts.to_json()}};
}

JournalEntry from_json(const nlohmann::json& json) {
  return {json.at("bin_bytes").get<int64_t>(), json.at("documents").get<int64_t>(),
          json.at("bin_xxh3").get<std::string>(), json.at("lengths_xxh3").get<std::string>(),
          OutputCounts::from_json(json.at("counts"))};
}
}  // namespace

ShardJournal::ShardJournal(const std::filesystem::path& path, const std::string& config_hash)
    : file_(File::open_for_appending(path)) {
  lock_or_refuse(file_);
  load(config_hash);
}

void ShardJournal::load(const std::string& config_hash) {
  const std::string text = read_text(file_.path());
  std::string_view rest = text;
  const auto header = take_line(rest);
  if (!header || header->value("config", "") != config_hash) {
    file_.truncate(0);
    const std::string line = line_of({{"config", config_hash}});
    file_.write(line);
    ends_.push_back(std::ssize(line));
    return;
  }
  ends_.push_back(std::ssize(text) - std::ssize(rest));
  while (const auto json = take_line(rest)) {
    entries_.push_back(from_json(*json));
    ends_.push_back(std::ssize(text) - std::ssize(rest));
  }
  file_.truncate(ends_.back());
}

void ShardJournal::add(JournalEntry entry) {
  const std::string line = line_of(to_json(entry));
  file_.write(line);
  entries_.push_back(std::move(entry));
  ends_.push_back(ends_.back() + std::ssize(line));
}

void ShardJournal::cut(int64_t count) {
  MEGALITH_CHECK(count <= std::ssize(entries_), "the journal has {} entries, not {}", entries_.size(), count);
  entries_.resize(static_cast<size_t>(count));
  ends_.resize(static_cast<size_t>(count) + 1);
  file_.truncate(ends_.back());
}

}  // namespace megalith::data
