#pragma once

#include <memory>

#include "comm/world.h"
#include "config/environment.h"
#include "core/tensor.h"

namespace megalith::launch {

struct BootOptions {
  Device device = Device::cpu;           // where the ranks compute: over NCCL on GPUs, over Gloo on CPUs
  double start_timeout = 600.0;          // seconds for all ranks to appear
  double communication_timeout = 600.0;  // seconds for the ranks of a call to arrive, unless a group has its own
  config::Lookup environment = config::process_environment;
};

// How many ranks a launcher has started; 1 where none has.
int started_ranks(const config::Lookup& environment = config::process_environment);

// Takes this process into its run. The launcher's environment (config::rank_environment) says which rank it is; without
// one, or with one rank, it is alone and has no world. Otherwise rank 0 serves the store at MASTER_ADDR and
// MASTER_PORT, and all ranks meet there, those of MEGALITH_GENERATION (0 where missing) alone. Where MASTER_ADDR is no
// loopback address, MEGALITH_STORE_SECRET must hold a secret that all ranks share. On GPUs a rank drives the one of its
// local rank, counted again from 0 where there are fewer.
//
// Comm error that names the ranks that did not appear.
class Boot {
 public:
  explicit Boot(const BootOptions& options);
  ~Boot();
  Boot(const Boot&) = delete;
  Boot& operator=(const Boot&) = delete;

  // Null: alone. It must outlive its groups, and dies with the boot.
  comm::World* world() const { return world_.get(); }
  int rank() const { return place_.rank; }

  // Every rank calls it when its work is complete; returns when all have. Comm error that names those that did not
  // within the communication timeout.
  void finish();

 private:
  class Meeting;

  config::RankEnvironment place_;
  double timeout_;
  std::unique_ptr<Meeting> meeting_;  // outlives the world
  std::unique_ptr<comm::World> world_;
};

}  // namespace megalith::launch
