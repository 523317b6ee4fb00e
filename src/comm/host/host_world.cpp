#include "comm/host/host_world.h"

#include "comm/host/host_communicator.h"

namespace megalith::comm {

HostWorld::HostWorld(int rank, std::shared_ptr<const RankPlaces> places, std::shared_ptr<Board> board,
                     std::shared_ptr<Transport> transport, NumberGroup number_group)
    : World(rank, std::move(places), std::move(board), Device::cpu),
      transport_(std::move(transport)),
      number_group_(std::move(number_group)) {}

std::unique_ptr<Communicator> HostWorld::connect(Group group) {
  const uint32_t id = number_group_(next_key(group));
  return std::make_unique<HostCommunicator>(std::move(group), id, transport_);
}

}  // namespace megalith::comm
