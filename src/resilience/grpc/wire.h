#pragma once

#include <optional>

#include "resilience/messages.h"

// The messages in protobuf's words. Whoever includes this needs no header of protobuf.
namespace megalith::control {
class Report;
class Order;
}  // namespace megalith::control

namespace megalith::resilience {

constexpr int kMostMessageBytes = 256 << 10;

void write_to(const Report& report, control::Report& wire);
void write_to(const Order& order, control::Order& wire);

// Nothing where a word of an enum is not one of ours: an order that is not understood is not carried out.
std::optional<Report> report_of(const control::Report& wire);
std::optional<Order> order_of(const control::Order& wire);

}  // namespace megalith::resilience
