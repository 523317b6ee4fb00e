#pragma once

#include <cstdint>
#include <string_view>

namespace megalith::comm {

enum class Operation : uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, all_to_all, exchange, barrier };
constexpr int kOperations = 7;

constexpr std::string_view name_of(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_gather:
      return "all_gather";
    case Operation::broadcast:
      return "broadcast";
    case Operation::all_to_all:
      return "all_to_all";
    case Operation::exchange:
      return "exchange";
    case Operation::barrier:
      return "barrier";
  }
  return "?";
}

// Calls and the bytes that this rank put into them (Call::bytes).
struct Traffic {
  int64_t calls = 0;
  int64_t bytes = 0;
};

// Bytes that each member must send at least for a call into which it puts `bytes`: what links carry (the "bus" bytes of
// nccl-tests). Of a broadcast, what one link carries.
constexpr double wire_bytes(Operation operation, int64_t bytes, int members) {
  const auto total = static_cast<double>(bytes);
  const double others = members - 1;
  switch (operation) {
    case Operation::all_reduce:
      return 2.0 * total * others / members;
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return total * others / members;
    case Operation::all_gather:
      return total * others;
    case Operation::broadcast:
    case Operation::exchange:
      return members > 1 ? total : 0.0;
    case Operation::barrier:
      return 0.0;
  }
  return 0.0;
}

}  // namespace megalith::comm
