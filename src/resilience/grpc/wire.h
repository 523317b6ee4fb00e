#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "resilience/messages.h"

// The messages in protobuf's words. Whoever includes this needs no header of protobuf.
namespace megalith::control {
class Report;
class Order;
}  // namespace megalith::control

namespace megalith::resilience {

constexpr int kMostMessageBytes = 256 << 10;
// The name in a call's metadata of that connection's TlsChannel::binding().
inline constexpr const char* kBindingKey = "megalith-binding";

void write_to(const Report& report, control::Report& wire);
std::string bytes_of(const Order& order);

// Nothing where a word of an enum is not one of ours: an order that is not understood is not carried out. Of another
// major version of the protocol the header alone, for who receives it to refuse by name.
std::optional<Order> order_of(const control::Order& wire);
// The same for bytes that are no such message.
std::optional<Report> report_of(std::string_view bytes);
std::optional<Order> order_of(std::string_view bytes);

}  // namespace megalith::resilience
