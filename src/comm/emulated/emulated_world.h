#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "comm/emulated/medium.h"
#include "comm/world.h"

namespace megalith::comm {

struct EmulatedOptions {
  Wire wire;
  // Standard deviation of the values in messages from this member of the group; empty: 1.
  std::function<double(const Group& group, int peer)> message_scale = {};
};

// The world of one of `size` ranks without the others, for streams that compute: each call takes the time that the wire
// says, on its stream, and brings what arrival.h says. No number that is computed with it means anything.
class EmulatedWorld final : public World {
 public:
  // On the CPU: `clock` is where time passes, and must outlive the world. User errors: a rank outside of the world, a
  // wire that cannot be, a build without CUDA; of make_group(): a wire without a link that the group needs.
  EmulatedWorld(int rank, int size, EmulatedOptions options, WireClock& clock);
  // On the GPU.
  EmulatedWorld(int rank, int size, EmulatedOptions options);
  ~EmulatedWorld() override;

  const Wire& wire() const { return options_.wire; }
  // Calls of these groups last no longer, from here on, than moving their memory does.
  void set_instant(std::set<std::string> groups) { steering_->instant = std::move(groups); }
  // From this point of the stream on, the next exchanges of each group end when their messages arrive, so many seconds
  // after it; those beyond the last of the list as the wire says.
  void set_arrivals(Stream& stream, std::vector<double> seconds);

 private:
  friend class EmulatedCommunicator;
  struct Steering {
    std::set<std::string> instant;
    std::vector<double> arrivals;
    int64_t marks = 0;  // how often arrivals were set
  };

  EmulatedWorld(int rank, int size, Device device, EmulatedOptions options);
  std::unique_ptr<Communicator> connect(Group group) override;

  EmulatedOptions options_;
  std::shared_ptr<Steering> steering_ = std::make_shared<Steering>();
  std::unique_ptr<Medium> medium_;
};

}  // namespace megalith::comm
