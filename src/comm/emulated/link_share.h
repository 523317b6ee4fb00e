#pragma once

#include <map>
#include <vector>

#include "comm/emulated/wire.h"

namespace megalith::comm {

// The calls of one rank on a clock. What several of them move over a link at the same time, each gets an equal share
// of; their latencies pass beside each other.
class LinkShare {
 public:
  explicit LinkShare(const Wire& wire);

  // A call that begins at `now`, or where `after` is given and ends later, when that call does. Calls come in the order
  // of their times. The number by which it is known.
  static constexpr int64_t kNone = -1;
  int64_t add(const CallCost& cost, double now, int64_t after = kNone);
  // When it ends, if no other is added before.
  double end_of(int64_t call) const;

 private:
  struct Moving {
    int64_t call = 0;
    int64_t after = kNone;
    CallCost left;
  };
  // What happens up to `until`, or until `call` has ended.
  struct State {
    double now = 0.0;
    std::vector<Moving> moving;
    std::map<int64_t, double> ends;

    bool has_begun(const Moving& one) const { return one.after == kNone || ends.contains(one.after); }
    void advance(const std::array<double, kLinkKinds>& rates, double until, int64_t call);
    // Of each call's share of the link.
    std::array<double, kLinkKinds> shares(const std::array<double, kLinkKinds>& rates) const;
    double next_event(const std::array<double, kLinkKinds>& shares) const;
    void pass(double seconds, const std::array<double, kLinkKinds>& shares);
    void retire();
  };

  std::array<double, kLinkKinds> rates_{};
  State state_;
  int64_t calls_ = 0;
};

}  // namespace megalith::comm
