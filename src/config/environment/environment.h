#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"

namespace megalith::config {

// One of several processes that share work.
struct Worker {
  int64_t index = 0;
  int64_t count = 1;

  bool operator==(const Worker&) const = default;
};

// The share that Slurm gives to this process: tasks of a job array (SLURM_ARRAY_TASK_ID, _COUNT, _MIN, _STEP) times
// tasks of a step (SLURM_PROCID, SLURM_NTASKS). Nothing outside of Slurm. In a batch script without srun there is one
// process whatever SLURM_NTASKS says: no step has begun. User error for values that make no sense.
std::optional<Worker> worker_from_environment();

// The file of tuned GPU algorithms that the runs of this user share: trainer.plan_cache, or plans.json in the user's
// cache folder (XDG_CACHE_HOME, HOME). Empty where none is to be kept.
std::filesystem::path tuning_cache_file(const Trainer& trainer);

// The value of an environment variable; nothing where it is not set.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
// That of this process.
std::optional<std::string> process_environment(const std::string& name);

// What a launcher tells one rank of a run.
struct RankEnvironment {
  int rank = 0;
  int local_rank = 0;  // among the ranks of this machine: which GPU to take
  int size = 1;
  std::string master_address = "127.0.0.1";  // of rank 0
  int master_port = 29500;
  std::string launcher;  // which of those below spoke, for people

  bool operator==(const RankEnvironment&) const = default;
};

// The first of these that speaks; nothing where none does, which means one rank alone.
//   torchrun    RANK and WORLD_SIZE, LOCAL_RANK (0 where missing), MASTER_ADDR, MASTER_PORT (the port after it where
//               TORCHELASTIC_USE_AGENT_STORE says that torchrun itself listens there)
//   Kubernetes  an indexed job: JOB_COMPLETION_INDEX is the machine, NNODES says how many there are, NPROC how many
//               ranks each has (1 where missing) and LOCAL_RANK which one this is; MASTER_ADDR where there are several
//   Slurm       SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID; rank 0 is at MASTER_ADDR, or SLURM_LAUNCH_NODE_IPADDR, or
//               the first of SLURM_JOB_NODELIST. A batch script without srun is one rank, as worker_from_environment
//               says.
// torchrun stands first because whoever starts torchrun inside of Slurm or Kubernetes means torchrun's ranks;
// Kubernetes before Slurm because a Slurm cluster may itself run in indexed jobs, but then starts its tasks without the
// index. User error, with the variable's name, for values that make no sense.
std::optional<RankEnvironment> rank_environment(const Lookup& lookup = process_environment);

// The hosts of a Slurm node list: "node[001-003,7],login" is node001, node002, node003, node7, login. User error for
// what is none.
std::vector<std::string> expand_node_list(const std::string& text);

}  // namespace megalith::config
