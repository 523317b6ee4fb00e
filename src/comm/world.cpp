#include "comm/world.h"

#include <fmt/ranges.h>

#include <numeric>

#include "core/clock.h"

namespace megalith::comm {

namespace {

// A group of one, in which nothing is sent.
class LoneCommunicator final : public Communicator {
 public:
  using Communicator::Communicator;

 private:
  Pending start(Stream&, Call) override { fail(ErrorKind::internal, "group '{}' has nobody to call", name()); }
};

class LoneWorld final : public World {
 public:
  explicit LoneWorld(Device device)
      : World(0, std::make_shared<RankPlaces>(1, place_here(device == Device::cpu ? "cpu" : "cuda:0", "127.0.0.1")),
              std::make_shared<LocalBoard>(), device) {}

 private:
  std::unique_ptr<Communicator> connect(Group group) override {
    return std::make_unique<LoneCommunicator>(std::move(group), device());
  }
};

}  // namespace

Communicator& lone_group() {
  static const std::unique_ptr<World> world = make_lone_world(Device::cpu);
  static const std::unique_ptr<Communicator> group = world->make_world_group();
  return *group;
}

std::unique_ptr<Communicator> World::make_group(const std::string& name, std::vector<int> ranks) {
  Group group = comm::make_group(name, std::move(ranks), rank_, places_);
  if (group.ranks.size() == 1) return std::make_unique<LoneCommunicator>(std::move(group), device_);
  StatusPage::Group shown = page_->add_group(group.name, group.ranks, group.member);
  std::unique_ptr<Communicator> made;
  {
    const StatusPage::Inside connecting(shown, {.operation = "connect"});
    const double begin = monotonic_seconds();
    made = connect(std::move(group));
    connecting_ += monotonic_seconds() - begin;
  }
  made->show_on(shown);
  made->set_deadline(deadline_);
  return made;
}

std::string World::next_key(const Group& group) {
  const std::string members = fmt::format("{}/{}", group.name, fmt::join(group.ranks, ","));
  return fmt::format("{}/{}", members, made_[members]++);
}

std::unique_ptr<Communicator> World::make_world_group() {
  std::vector<int> ranks(static_cast<size_t>(size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return make_group("world", std::move(ranks));
}

std::unique_ptr<World> make_lone_world(Device device) {
  return std::make_unique<LoneWorld>(device);
}

}  // namespace megalith::comm
