#include "resilience/record/journal.h"

#include <charconv>

#include "core/error.h"
#include "core/event_names.h"
#include "core/process/failpoint.h"
#include "observe/logs/event_line.h"
#include "observe/sinks/event_text.h"

namespace megalith::resilience {

namespace {
constexpr int64_t kVersion = 1;

std::string ranks_text(const std::vector<int64_t>& ranks) {
  return fmt::format("{}", fmt::join(ranks, ","));
}

std::optional<std::vector<int64_t>> parse_ranks(std::string_view text) {
  std::vector<int64_t> ranks;
  while (!text.empty()) {
    int64_t rank = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error != std::errc()) return std::nullopt;
    ranks.push_back(rank);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.empty()) break;
    if (text.front() != ',' || text.size() == 1) return std::nullopt;
    text.remove_prefix(1);
  }
  return ranks;
}

Fields fields_of(const Fact& fact) {
  Fields fields = {{"version", kVersion}, {"kind", std::string(name_of(fact.kind))}, {"at", fact.time}};
  const auto text = [&](const char* key, const std::string& value) {
    if (!value.empty()) fields.emplace_back(key, value);
  };
  text("node", fact.node);
  text("ranks", ranks_text(fact.ranks));
  fields.emplace_back("about", fact.generation);
  if (fact.number != 0) fields.emplace_back("number", fact.number);
  if (fact.seconds != 0.0) fields.emplace_back("seconds", fact.seconds);
  if (fact.symptom != Symptom::none) fields.emplace_back("symptom", std::string(name_of(fact.symptom)));
  text("text", fact.text);
  text("digest", fact.digest);
  text("order", fact.order);
  return fields;
}

class FieldReader {
 public:
  explicit FieldReader(const observe::EventLine& line) : line_(line) {}

  std::string text(const char* key) const {
    const observe::JsonMember* const member = line_.field(key);
    return member == nullptr ? "" : text_of(*member);
  }
  int64_t whole(const char* key) {
    const observe::JsonMember* const member = line_.field(key);
    if (member == nullptr) return 0;
    const std::optional<int64_t> number = whole_number_of(*member);
    is_sound_ = is_sound_ && number.has_value();
    return number.value_or(0);
  }
  double number(const char* key) {
    if (line_.field(key) == nullptr) return 0.0;
    const std::optional<double> number = line_.number(key);
    is_sound_ = is_sound_ && number.has_value();
    return number.value_or(0.0);
  }
  bool is_sound() const { return is_sound_; }

 private:
  const observe::EventLine& line_;
  bool is_sound_ = true;
};

std::optional<Fact> fact_of(const observe::EventLine& line) {
  FieldReader read(line);
  const std::optional<FactKind> kind = fact_kind_named(read.text("kind"));
  const std::string symptom_name = read.text("symptom");
  const std::optional<Symptom> symptom = symptom_name.empty() ? Symptom::none : symptom_named(symptom_name);
  std::optional<std::vector<int64_t>> ranks = parse_ranks(read.text("ranks"));
  if (!kind || !symptom || !ranks) return std::nullopt;
  Fact fact{.kind = *kind,
            .time = read.number("at"),
            .node = read.text("node"),
            .ranks = *std::move(ranks),
            .generation = read.whole("about"),
            .step = line.step,
            .number = read.whole("number"),
            .seconds = read.number("seconds"),
            .symptom = *symptom,
            .evidence = text_of(line.reason),
            .text = read.text("text"),
            .digest = read.text("digest"),
            .order = read.text("order")};
  if (!read.is_sound()) return std::nullopt;
  return fact;
}

// One line of the journal; nothing where its checksum does not fit.
std::optional<JournalEntry> parse_line(std::string_view line, int64_t expected_sequence, const std::string& run,
                                       const std::string& where) {
  std::vector<observe::JsonMember> members;
  const std::optional<observe::EventLine> event = observe::parse_event_line(line, members);
  if (!event) return std::nullopt;
  if (text_of(event->run) != run) data_error("{}: belongs to run '{}', not to '{}'", where, text_of(event->run), run);
  if (event->sequence != expected_sequence) {
    data_error("{}: entry {} follows where {} is expected: lines are missing", where, event->sequence,
               expected_sequence);
  }
  const std::optional<double> version = event->number("version");
  if (event->event != event::kFact || !version) data_error("{}: entry {} is not a fact", where, event->sequence);
  if (*version != static_cast<double>(kVersion)) {
    data_error("{}: entry {} is of version {} of journals; this program knows {}: use a newer megalith", where,
               event->sequence, *version, kVersion);
  }
  std::optional<Fact> fact = fact_of(*event);
  if (!fact) data_error("{}: entry {} has a fact that this program does not know", where, event->sequence);
  return JournalEntry{.fact = *std::move(fact),
                      .boot_id = std::string(event->boot),
                      .when = {.wall = static_cast<double>(event->wall) / 1e6, .monotonic = event->monotonic}};
}
}  // namespace

std::string journal_file_name(int64_t term) {
  return fmt::format("term-{:06}.jsonl", term);
}

int64_t newest_term(const ControlDirectory& directory) {
  const std::vector<int64_t> terms = numbered_files(directory, "term-", ".jsonl");
  return terms.empty() ? 0 : terms.back();
}

Journal::Journal(std::unique_ptr<AppendedFile> file, int64_t term, JournalOrigin origin)
    : file_(std::move(file)), term_(term), origin_(std::move(origin)) {}

std::optional<Journal> Journal::claim(ControlDirectory& directory, int64_t term, const JournalOrigin& origin) {
  std::unique_ptr<AppendedFile> file = directory.create_appended(journal_file_name(term));
  if (file == nullptr) return std::nullopt;
  return Journal(std::move(file), term, origin);
}

void Journal::append(const Fact& fact, const Moment& when) {
  const Event event{
      .name = event::kFact, .step = fact.step, .reason = fact.evidence, .fields = fields_of(fact), .when = when};
  const observe::EventOrigin origin{.run_id = origin_.run, .generation = fact.generation, .node = "supervisor"};
  is_synced_ = false;
  file_->append(observe::event_text(event, origin, origin_.boot_id, ++sequence_));
  pass_failpoint((std::string(kJournalFailpoints) + name_of(fact.kind)).c_str());
}

void Journal::sync() {
  if (is_synced_) return;
  file_->sync();
  is_synced_ = true;
}

std::vector<JournalEntry> parse_journal(std::string_view text, const std::string& run, const std::string& where) {
  std::vector<JournalEntry> entries;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto number = static_cast<int64_t>(entries.size()) + 1;
    std::optional<JournalEntry> entry = parse_line(line, number, run, where);
    if (entry) {
      entries.push_back(*std::move(entry));
    } else if (!text.empty()) {
      data_error("{}: line {} is damaged, and it is not the last one, which a kill may tear", where, number);
    }
  }
  return entries;
}

std::vector<JournalEntry> read_journal(const ControlDirectory& directory, int64_t term, const std::string& run) {
  const std::string name = journal_file_name(term);
  const std::optional<std::string> text = directory.read(name);
  if (!text) data_error("{} is missing: the terms of a run are all kept", directory.path_of(name));
  return parse_journal(*text, run, directory.path_of(name));
}

}  // namespace megalith::resilience
