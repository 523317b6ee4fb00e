#pragma once

#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

// An action of a stage.
struct ActionIndex {
  size_t stage = 0;
  size_t action = 0;
};

// Which send_receives of different stages belong together: as communicators do it, messages between two ranks match in
// the order of the lists.
class MessageMatching {
 public:
  // An internal error where a message has no counterpart or its counterpart is another one.
  explicit MessageMatching(const std::vector<Schedule>& schedules);

  // The other ends of a send_receive.
  const std::vector<ActionIndex>& partners(const ActionIndex& exchange) const {
    return partners_[exchange.stage][exchange.action];
  }

 private:
  std::vector<std::vector<std::vector<ActionIndex>>> partners_;
};

}  // namespace megalith::parallel
