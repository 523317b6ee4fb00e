#pragma once

#include <functional>

#include "comm/host/transport.h"
#include "comm/world.h"

namespace megalith::comm {

// Makes groups over one transport that all ranks share: a group costs a number, not connections.
class HostWorld final : public World {
 public:
  // The same number for the same key on every rank.
  using NumberGroup = std::function<uint32_t(const std::string& key)>;

  HostWorld(int rank, std::shared_ptr<const RankPlaces> places, std::shared_ptr<Board> board,
            std::shared_ptr<Transport> transport, NumberGroup number_group);

 private:
  std::unique_ptr<Communicator> connect(Group group) override;

  std::shared_ptr<Transport> transport_;
  NumberGroup number_group_;
};

}  // namespace megalith::comm
