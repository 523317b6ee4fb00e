#include <string>
#include <string_view>

#include "core/error.h"
#include "observe/logs/event_line.h"
#include "resilience/decide/controller.h"
#include "resilience/decide/holdings.h"
#include "resilience/record/journal.h"

namespace {
using namespace megalith;

// What a journal says is believed by the controller only if it leads it nowhere that the house calls a bug.
void check(const std::string& text) {
  try {
    resilience::RunState state;
    for (const resilience::JournalEntry& entry : resilience::parse_journal(text, "run-1", "term-000001.jsonl")) {
      resilience::decide(state, entry.fact);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::user) __builtin_trap();
  }
  if (const auto holdings = resilience::parse_holdings(text)) {
    if (resilience::parse_holdings(resilience::to_text(*holdings)) != holdings) __builtin_trap();
  }
}
}  // namespace

// Lines of a journal, as they are and signed.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  check(std::string(text));
  std::string with_crcs;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    with_crcs += observe::with_crc(line) + "\n";
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  check(with_crcs);
  return 0;
}
