#pragma once

#include <nccl.h>

#include <deque>
#include <mutex>
#include <optional>

#include "comm/arrivals.h"
#include "comm/communicator.h"
#include "comm/cuda/side_stream.h"
#include "comm/nccl/nccl_watchdog.h"
#include "core/arena.h"

namespace megalith::comm {

// A communicator of GPU memory. Its calls run on a stream of their own, beside the one that asks. The watchdog of the
// world looks after it: a call over its deadline, or an error of NCCL, makes every communicator of the world fail.
class NcclCommunicator final : public Communicator, public Watched {
 public:
  struct Connection {
    ncclUniqueId id{};
    Arrivals arrivals;
    double deadline = 0.0;  // seconds for all members to connect
  };
  // Returns when all members are connected; comm error that names who is not.
  NcclCommunicator(Group group, Connection connection, std::shared_ptr<NcclWatchdog> watchdog);
  ~NcclCommunicator() override;

  // Of the watchdog.
  std::optional<Error> find_failure() override;
  ncclComm_t give_up(const Error& reason) override;

 private:
  struct InFlight {
    Call call;
    int64_t ticket = 0;
    std::shared_ptr<CudaEvent> begin;
    std::shared_ptr<CudaEvent> end;
    double begun = 0.0;      // monotonic seconds, as the watchdog saw it; 0: not yet
    bool announced = false;  // to the other members
    bool shown = false;      // as entered, on the status page
  };
  class InFlightPending;

  void connect(const Connection& connection);
  Pending start(Stream& stream, Call call) override;
  void issue(const Call& call);
  void issue_exchange(const std::vector<Message>& sends, const std::vector<Message>& receives);
  // A communicator that does not block may still be busy with the last call when that returns.
  void settle(const Call& call, InFlight& flight);
  bool failed();
  void throw_if_failed();

  void retire_finished();
  std::optional<Error> overdue(InFlight& oldest);
  void announce(const Call& call);
  std::vector<int> absent_from(const Call& call);
  Error absence_failure(const Call& call);
  std::vector<int> ranks_of(const std::vector<int>& members) const;

  Arrivals arrivals_;
  std::shared_ptr<NcclWatchdog> watchdog_;
  SideStream side_;
  Arena barrier_memory_;  // a barrier is a sum that nobody reads

  std::mutex using_comm_;  // held while a call is given to NCCL
  ncclComm_t comm_ = nullptr;

  std::mutex mutex_;  // of what follows, which the watchdog shares
  std::deque<InFlight> in_flight_;
  std::optional<Error> complaint_;  // what the watchdog is to make of this rank's own failure
  std::optional<Error> failure_;
};

}  // namespace megalith::comm
