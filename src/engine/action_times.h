#pragma once

#include <vector>

#include "core/stream.h"

namespace megalith::engine {

// When each action of a step began and ended on the stream, by its index in the schedule; what an action waits for
// comes before its beginning.
class ActionTimes {
 public:
  void begin(Stream& stream, size_t action) { marks(action).first.record(stream); }
  void end(Stream& stream, size_t action) { marks(action).second.record(stream); }

  // Once the stream has passed the action.
  double seconds(size_t action) const { return StreamMark::seconds_between(of(action).first, of(action).second); }
  double seconds_before(const StreamMark& begin, size_t action) const {
    return StreamMark::seconds_between(begin, of(action).first);
  }
  double seconds_after(size_t action, const StreamMark& end) const {
    return StreamMark::seconds_between(of(action).second, end);
  }

 private:
  using Marks = std::pair<StreamMark, StreamMark>;

  Marks& marks(size_t action) {
    if (marks_.size() <= action) marks_.resize(action + 1);
    return marks_[action];
  }
  const Marks& of(size_t action) const { return marks_.at(action); }

  std::vector<Marks> marks_;  // kept, since they cost something to make
};

}  // namespace megalith::engine
