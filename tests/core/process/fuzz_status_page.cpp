#include <cstdint>
#include <string>

#include "core/process/status_page_bytes.h"
#include "core/process/status_reader.h"

// What a monitor reads of a rank: any bytes, as the page alone and behind the right beginning, so that the fuzzer need
// not find it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith;
  std::string page(reinterpret_cast<const char*>(data), std::min(size, kStatusPageBytes));
  page.resize(kStatusPageBytes);
  const PlainStatusPage right;
  for (const size_t kept : {size_t{0}, sizeof right.magic + sizeof right.version}) {
    page.replace(0, kept, reinterpret_cast<const char*>(&right), kept);
    try {
      const RankStatus status = parse_status_page(std::as_bytes(std::span(page)), "page");
      const bool is_bounded = status.run.size() <= 64 && status.groups.size() <= kStatusGroups &&
                              status.section <= Section::end &&
                              (!status.ending || status.ending->message.size() <= 512);
      if (!is_bounded) __builtin_trap();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) __builtin_trap();
    }
  }
  return 0;
}
