#include <cstdint>
#include <string>

#include "comm/store/packet.h"
#include "comm/store/store_table.h"
#include "core/error.h"

// What a client may send: packets are taken off the bytes as the server does, and applied to one table.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace megalith::comm;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  StoreTable table;
  try {
    while (const auto packet = take_packet(bytes)) {
      std::string again = encode(*packet);
      if (take_packet(again) != packet) __builtin_trap();
      table.apply(*packet);
    }
  } catch (const megalith::Error&) {
  }
  return 0;
}
