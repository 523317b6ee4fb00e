#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "comm/emulated/wire.h"
#include "comm/emulated/wire_clock.h"

namespace megalith::comm {

struct EmulatedCall {
  const Group& group;
  const Call& call;
  CallCost cost;  // what it asks of the wire
  // What its messages bring: normal values with these standard deviations, in the order of its receives.
  std::vector<double> scales = {};
  // When it ends, in seconds after the medium's last mark, whatever it costs; absent: when the wire has carried it.
  std::optional<double> arrival = {};
};

// Where the calls of one group run, one after the other.
class Lane {
 public:
  virtual ~Lane() = default;
  virtual Pending run(Stream& stream, const EmulatedCall& emulated) = 0;
};

// What a device emulates a wire with; all lanes share its links. It must outlive them.
class Medium {
 public:
  virtual ~Medium() = default;
  virtual std::unique_ptr<Lane> make_lane() = 0;
  // The point of the stream from which arrivals count.
  virtual void mark(Stream& stream) = 0;
};

std::unique_ptr<Medium> make_host_medium(const Wire& wire, WireClock& clock);
// A user error in a build without CUDA.
std::unique_ptr<Medium> make_cuda_medium(const Wire& wire);

}  // namespace megalith::comm
