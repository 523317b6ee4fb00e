#pragma once

#include <optional>
#include <string>

#include "comm/host/host_collectives.h"
#include "comm/host/serial_worker.h"

namespace megalith::comm {

// A communicator of host memory over any transport. Its calls run on a thread of their own.
class HostCommunicator final : public Communicator {
 public:
  HostCommunicator(Group group, uint32_t id, std::shared_ptr<Transport> transport);

 private:
  Pending start(Stream& stream, Call call) override;
  void run(const Call& call, int64_t ticket);
  std::string explain(const Call& call, const Undelivered& error);
  std::vector<int> members_of(const std::vector<int>& ranks) const;

  std::shared_ptr<Transport> transport_;
  HostCollectives collectives_;
  std::optional<Error> failure_;  // of the first call that failed
  SerialWorker worker_;           // last: it is gone before what its jobs use
};

}  // namespace megalith::comm
