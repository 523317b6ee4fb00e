#pragma once

#include "comm/emulated/wire.h"

namespace megalith::comm {

// Machines of 8 whose numbers are easy to reckon with.
inline Wire wire_of_eights() {
  return {.name = "eights",
          .ranks_per_machine = 8,
          .links = {Link{.bytes_per_second = 300e9, .call_seconds = 10e-6},
                    Link{.bytes_per_second = 40e9, .call_seconds = 15e-6, .hop_seconds = 5e-6, .message_blocks = 2}}};
}

inline Group group_of(std::string name, std::vector<int> ranks, int member = 0) {
  return {.name = std::move(name), .ranks = std::move(ranks), .member = member};
}

// A call of this many bytes, of which nobody reads one.
inline Call call_of(Operation operation, int64_t bytes) {
  return {.operation = operation, .input = Tensor(nullptr, DType::e4m3, {bytes})};
}

inline Call exchange_of(std::vector<std::pair<int, int64_t>> sends, std::vector<std::pair<int, int64_t>> receives) {
  const auto messages = [](const std::vector<std::pair<int, int64_t>>& list) {
    std::vector<Message> all;
    for (const auto& [peer, bytes] : list) all.push_back({peer, Tensor(nullptr, DType::e4m3, {bytes})});
    return all;
  };
  return {.operation = Operation::exchange, .sends = messages(sends), .receives = messages(receives)};
}

}  // namespace megalith::comm
