#include <string>
#include <string_view>

#include "core/error.h"
#include "core/hash/digest.h"
#include "resilience/record/roster.h"

namespace {
using namespace megalith;

void check(const std::string& text) {
  resilience::Roster roster;
  try {
    roster = resilience::parse_roster(text, "roster-000001.json");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) __builtin_trap();
    return;
  }
  // What was taken can be written and taken again.
  if (!(resilience::parse_roster(resilience::to_text(roster), "again") == roster)) __builtin_trap();
  for (int64_t rank = 0; rank < roster.world_size; rank += roster.ranks_per_node) roster.node_of(rank);
}
}  // namespace

// A roster is taken whole or refused as data. The input is also sealed, so that the fuzzer gets behind the digest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  check(text);
  check(text + ",\"digest\":\"" + digest_of(std::string_view(text)) + "\"}\n");
  return 0;
}
