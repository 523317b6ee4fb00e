#include <string>

#include "core/error.h"
#include "resilience/decide/ladder.h"

// Any text replaces rows of the ladder, which then print and read back as themselves, or is a user error.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  const std::string text(reinterpret_cast<const char*>(data), size);
  resilience::Ladder ladder;
  try {
    ladder.replace_rows(text, "policy.yaml");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::user) __builtin_trap();
    return 0;
  }
  resilience::Ladder again;
  again.replace_rows(ladder.to_text(), "again");
  if (!(again == ladder)) __builtin_trap();
  return 0;
}
