#include "comm/emulated/arrival.h"
#include "comm/emulated/link_share.h"
#include "comm/emulated/medium.h"

namespace megalith::comm {

namespace {

class HostPending final : public Pending::State {
 public:
  HostPending(const LinkShare& share, WireClock& clock, int64_t call) : share_(share), clock_(clock), call_(call) {}
  void wait(Stream&) override { clock_.advance_to(share_.end_of(call_)); }

 private:
  const LinkShare& share_;
  WireClock& clock_;
  int64_t call_;
};

// Of all lanes.
struct HostLinks {
  LinkShare share;
  WireClock& clock;
  Noise noise{Device::cpu};
  double marked = 0.0;
};

class HostLane final : public Lane {
 public:
  explicit HostLane(HostLinks& links) : links_(links) {}

  // What arrives is there at once; only the clock knows when it may be used.
  Pending run(Stream& stream, const EmulatedCall& emulated) override {
    last_ = links_.share.add(cost_of(emulated), links_.clock.now(), last_);
    carry_out(arrival_of(stream, emulated, links_.noise), emulated.call.input.dtype);
    return Pending(std::make_shared<HostPending>(links_.share, links_.clock, last_));
  }

 private:
  CallCost cost_of(const EmulatedCall& emulated) const {
    if (!emulated.arrival) return emulated.cost;
    double begin = links_.clock.now();
    if (last_ != LinkShare::kNone) begin = std::max(begin, links_.share.end_of(last_));
    return {.latency = std::max(0.0, links_.marked + *emulated.arrival - begin)};
  }

  HostLinks& links_;
  int64_t last_ = LinkShare::kNone;
};

class HostMedium final : public Medium {
 public:
  HostMedium(const Wire& wire, WireClock& clock) : links_{.share = LinkShare(wire), .clock = clock} {}
  std::unique_ptr<Lane> make_lane() override { return std::make_unique<HostLane>(links_); }
  void mark(Stream&) override { links_.marked = links_.clock.now(); }

 private:
  HostLinks links_;
};

}  // namespace

std::unique_ptr<Medium> make_host_medium(const Wire& wire, WireClock& clock) {
  return std::make_unique<HostMedium>(wire, clock);
}

}  // namespace megalith::comm
