#include <nlohmann/json.hpp>
#include <string_view>

#include "checkpoint/format/manifest.h"
#include "core/error.h"

namespace {
using megalith::checkpoint::Manifest;

void try_text(std::string_view text) {
  try {
    const Manifest manifest = megalith::checkpoint::decode_manifest(text, "fuzz");
    if (megalith::checkpoint::encode(manifest) != text) __builtin_trap();
    megalith::checkpoint::describe(manifest);
  } catch (const megalith::Error& error) {
    if (error.kind() != megalith::ErrorKind::data) throw;
  }
}
}  // namespace

// Text of any kind is refused with a data error or is exactly what encode() writes. The input is also taken as a body
// and signed, so that the fuzzer gets behind the digest.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_text(text);
  const auto body = nlohmann::json::parse(text, nullptr, false);
  if (!body.is_discarded()) {
    const std::string canonical = body.dump();
    try_text("{\"body\":" + canonical + ",\"digest\":\"" + megalith::digest_of(canonical) + "\"}\n");
  }
  return 0;
}
