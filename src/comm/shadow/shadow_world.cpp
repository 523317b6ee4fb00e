#include "comm/shadow/shadow_world.h"

namespace megalith::comm {

namespace {

class ShadowCommunicator final : public Communicator {
 public:
  ShadowCommunicator(Group group, Device device, std::shared_ptr<const ShadowListener> listener)
      : Communicator(std::move(group), device), listener_(std::move(listener)) {}

 private:
  Pending start(Stream& stream, Call call) override {
    MEGALITH_CHECK(stream.is_shadow(), "group '{}' is a shadow and was given a stream that computes", name());
    if (*listener_) {
      (*listener_)({.group = name(), .members = size(), .operation = call.operation, .bytes = call.bytes()});
    }
    return {};
  }

  std::shared_ptr<const ShadowListener> listener_;
};

class ShadowWorld final : public World {
 public:
  ShadowWorld(int rank, int size, Device device, ShadowListener listener)
      : World(rank, std::make_shared<RankPlaces>(static_cast<size_t>(size)), std::make_shared<LocalBoard>(), device),
        listener_(std::make_shared<const ShadowListener>(std::move(listener))) {}

 private:
  std::unique_ptr<Communicator> connect(Group group) override {
    return std::make_unique<ShadowCommunicator>(std::move(group), device(), listener_);
  }

  std::shared_ptr<const ShadowListener> listener_;
};

}  // namespace

std::unique_ptr<World> make_shadow_world(int rank, int size, Device device, ShadowListener listener) {
  return std::make_unique<ShadowWorld>(rank, size, device, std::move(listener));
}

}  // namespace megalith::comm
