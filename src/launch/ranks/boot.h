#pragma once

#include <memory>

#include "comm/world.h"
#include "config/environment/environment.h"
#include "core/error.h"
#include "core/process/status_page.h"
#include "core/tensor.h"

namespace megalith::launch {

struct BootOptions {
  Device device = Device::cpu;           // where the ranks compute: over NCCL on GPUs, over Gloo on CPUs
  double start_timeout = 600.0;          // seconds for all ranks to appear
  double communication_timeout = 600.0;  // seconds for the ranks of a call to arrive, unless a group has its own
  StatusPage* page = nullptr;  // of this rank (monitored.h), must outlive the boot; null: one that nobody reads
  config::Lookup environment = config::process_environment;
};

// How many ranks a launcher has started; 1 where none has.
int started_ranks(const config::Lookup& environment = config::process_environment);

// How this process takes stop signals (core/process/stop_signals.h), until it ends: from its launcher where it has one
// of ours, and not at all under a monitor. Of several ranks without one, rank 0 speaks.
void take_stop_signals(const config::Lookup& environment = config::process_environment);

// Where rank 0 listens, of which MASTER_ADDR is what others call it.
std::string listening_address(const std::string& master_address);

// A user's mistake that another rank has found, and explains.
class FoundByAnotherRank : public Error {
 public:
  FoundByAnotherRank() : Error(ErrorKind::user, "another rank has found a mistake") {}
};

// Takes this process into its run. The launcher's environment (config::rank_environment) says which rank it is; without
// one, or with one rank, it is alone. Otherwise rank 0 serves the store at MASTER_ADDR and
// MASTER_PORT, unless it is under a monitor, whose store is there already, and all ranks meet there, those of
// MEGALITH_GENERATION (0 where missing) alone. Whoever does not know the run's secret stays outside: that of a rank's
// launcher, or secret_of_run(), which must be given where there is no launcher of ours and MASTER_ADDR is no loopback
// address. On GPUs a rank drives the one of its local rank, counted again from 0 where there are fewer.
//
// Comm error that names the ranks that did not appear; user error for a port that is taken.
class Boot {
 public:
  explicit Boot(const BootOptions& options);
  ~Boot();
  Boot(const Boot&) = delete;
  Boot& operator=(const Boot&) = delete;

  // It must outlive its groups, and dies with the boot.
  comm::World& world() const { return *world_; }
  int rank() const { return place_.rank; }

  // Every rank calls it when its work is complete; returns when all have. Comm error that names those that did not
  // within the communication timeout.
  void finish();

  // Called in place of finish(), while the error of this rank is in flight. Leaves a user's mistake for the others to
  // find; FoundByAnotherRank where the error is what comes of such a mistake of another.
  void give_up(const Error& error);

 private:
  class Meeting;

  config::RankEnvironment place_;
  double timeout_;
  std::unique_ptr<StatusPage> own_page_;
  StatusPage& page_;
  StatusPage::Group meetings_;        // of all ranks, outside of any other group
  std::unique_ptr<Meeting> meeting_;  // outlives the world
  std::unique_ptr<comm::World> world_;
};

}  // namespace megalith::launch
