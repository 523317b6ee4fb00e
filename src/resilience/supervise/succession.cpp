#include "resilience/supervise/succession.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace megalith::resilience {

namespace {
struct Known {
  int64_t term = 0;
  int64_t entries = 0;
};

// "2:57".
std::optional<Known> parse_known(std::string_view text) {
  Known known;
  const char* const end = text.data() + text.size();
  const auto term = std::from_chars(text.data(), end, known.term);
  if (term.ec != std::errc() || term.ptr == end || *term.ptr != ':') return std::nullopt;
  const auto entries = std::from_chars(term.ptr + 1, end, known.entries);
  if (entries.ec != std::errc() || entries.ptr != end || known.term < 0 || known.entries < 0) return std::nullopt;
  return known;
}

struct Chapter {
  int64_t term;
  std::vector<JournalEntry> entries;
};

// The terms that count, the newest first.
std::vector<Chapter> read_chapters(const ControlDirectory& directory, const std::string& run) {
  std::vector<Chapter> chapters;
  std::vector<int64_t> terms = numbered_files(directory, "term-", ".jsonl");
  Known known{.term = 0, .entries = INT64_MAX};
  while (!terms.empty()) {
    const int64_t term = chapters.empty() ? terms.back() : known.term;
    if (term == 0) break;
    const std::string where = directory.path_of(journal_file_name(term));
    std::vector<JournalEntry> entries = read_journal(directory, term, run);
    if (entries.empty() && chapters.empty()) {  // claimed, and nothing written
      terms.pop_back();
      continue;
    }
    if (static_cast<int64_t>(entries.size()) < known.entries && known.entries != INT64_MAX) {
      data_error("{}: has {} entries, of which its successor knew {}", where, entries.size(), known.entries);
    }
    if (known.entries != INT64_MAX) entries.resize(static_cast<size_t>(known.entries));
    const std::optional<Known> before =
        entries.empty() || entries.front().fact.kind != FactKind::lead || entries.front().fact.number != term
            ? std::nullopt
            : parse_known(entries.front().fact.order);
    if (!before || before->term >= term) data_error("{}: does not begin with its leader's first entry", where);
    chapters.push_back({.term = term, .entries = std::move(entries)});
    known = *before;
  }
  return chapters;
}
}  // namespace

Inheritance inherit(const ControlDirectory& directory, const std::string& run, const ControllerGuards& guards) {
  const std::vector<Chapter> chapters = read_chapters(directory, run);
  Inheritance inheritance;
  for (auto chapter = chapters.rbegin(); chapter != chapters.rend(); ++chapter) {
    for (const JournalEntry& entry : chapter->entries) decide(inheritance.state, entry.fact, guards);
  }
  if (!chapters.empty()) {
    inheritance.last_term = chapters.front().term;
    inheritance.entries = static_cast<int64_t>(chapters.front().entries.size());
    inheritance.last = chapters.front().entries.back();
  }
  return inheritance;
}

Fact lead_fact(const Inheritance& inheritance, const ControlDirectory& directory, const Settings& settings,
               int64_t term, const std::string& boot_id, const Moment& now) {
  double time = 0.0;
  if (inheritance.last) {
    // Another machine, or the same started anew, has only the wall clock in common, which may have been set back.
    const JournalEntry& last = *inheritance.last;
    const double passed = last.boot_id == boot_id ? now.monotonic - last.when.monotonic : now.wall - last.when.wall;
    time = last.fact.time + std::max(0.0, passed);
  }
  const std::optional<Roster> newest = read_newest_roster(directory, settings.run);
  return {.kind = FactKind::lead,
          .time = time,
          .generation = newest ? newest->generation : 0,
          .number = term,
          .text = to_text(settings),
          .digest = newest ? digest_of(*newest) : "",
          .order = fmt::format("{}:{}", inheritance.last_term, inheritance.entries)};
}

}  // namespace megalith::resilience
