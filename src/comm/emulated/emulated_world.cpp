#include "comm/emulated/emulated_world.h"

namespace megalith::comm {

class EmulatedCommunicator final : public Communicator {
 public:
  using Steering = std::shared_ptr<const EmulatedWorld::Steering>;
  EmulatedCommunicator(Group group, Device device, EmulatedOptions options, Steering steering,
                       std::unique_ptr<Lane> lane)
      : Communicator(std::move(group), device),
        options_(std::move(options)),
        steering_(std::move(steering)),
        lane_(std::move(lane)) {}

 private:
  Pending start(Stream& stream, Call call) override {
    CallCost cost = known_cost(call);
    if (steering_->instant.contains(name())) cost = {.blocks = cost.blocks};
    std::vector<double> scales;
    for (const Message& message : call.receives)
      scales.push_back(options_.message_scale ? options_.message_scale(group(), message.peer) : 1.0);
    return lane_->run(
        stream,
        {.group = group(), .call = call, .cost = cost, .scales = std::move(scales), .arrival = next_arrival(call)});
  }

  std::optional<double> next_arrival(const Call& call) {
    if (call.operation != Operation::exchange) return std::nullopt;
    if (marks_ != steering_->marks) exchanges_ = 0;
    marks_ = steering_->marks;
    const auto number = exchanges_++;
    return number < steering_->arrivals.size() ? std::optional(steering_->arrivals[number]) : std::nullopt;
  }

  // The same few collectives come again and again.
  CallCost known_cost(const Call& call) {
    if (call.operation == Operation::exchange) return cost_of(options_.wire, group(), call);
    const auto known = costs_.find({call.operation, call.bytes()});
    if (known != costs_.end()) return known->second;
    const CallCost cost = cost_of(options_.wire, group(), call);
    costs_.emplace(std::pair{call.operation, call.bytes()}, cost);
    return cost;
  }

  EmulatedOptions options_;
  Steering steering_;
  int64_t marks_ = 0;
  size_t exchanges_ = 0;  // since the last mark
  std::map<std::pair<Operation, int64_t>, CallCost> costs_;
  std::unique_ptr<Lane> lane_;
};

EmulatedWorld::EmulatedWorld(int rank, int size, Device device, EmulatedOptions options)
    : World(rank, std::make_shared<RankPlaces>(static_cast<size_t>(std::max(0, size))), std::make_shared<LocalBoard>(),
            device),
      options_(std::move(options)) {
  if (rank < 0 || rank >= size) user_error("there is no rank {} among {} ranks: the last is {}", rank, size, size - 1);
  check_wire(options_.wire);
}

EmulatedWorld::EmulatedWorld(int rank, int size, EmulatedOptions options, WireClock& clock)
    : EmulatedWorld(rank, size, Device::cpu, std::move(options)) {
  medium_ = make_host_medium(options_.wire, clock);
}

EmulatedWorld::EmulatedWorld(int rank, int size, EmulatedOptions options)
    : EmulatedWorld(rank, size, Device::cuda, std::move(options)) {
  medium_ = make_cuda_medium(options_.wire);
}

EmulatedWorld::~EmulatedWorld() = default;

void EmulatedWorld::set_arrivals(Stream& stream, std::vector<double> seconds) {
  steering_->arrivals = std::move(seconds);
  ++steering_->marks;
  medium_->mark(stream);
}

std::unique_ptr<Communicator> EmulatedWorld::connect(Group group) {
  check_group(options_.wire, group);
  return std::make_unique<EmulatedCommunicator>(std::move(group), device(), options_, steering_, medium_->make_lane());
}

}  // namespace megalith::comm
