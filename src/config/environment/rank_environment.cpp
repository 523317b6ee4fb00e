#include "config/environment/environment.h"
#include "config/environment/variables.h"
#include "core/error.h"

namespace megalith::config {

namespace {
constexpr int kMaxRanks = 1 << 24;
constexpr int kMaxPort = 65535;

int needed(const Variables& variables, const std::string& name, int least, const std::string& because_of) {
  const auto value = variables.number(name, least, kMaxRanks);
  if (!value) user_error("the environment variable {} is set, {} is not", because_of, name);
  return static_cast<int>(*value);
}

int optional_number(const Variables& variables, const std::string& name, int least, int most, int otherwise) {
  return static_cast<int>(variables.number(name, least, most).value_or(otherwise));
}

void check_below(int value, const std::string& name, int limit, const std::string& limit_name) {
  if (value >= limit) {
    user_error("the environment variable {} is {}, which is not below {} ({})", name, value, limit_name, limit);
  }
}

void take_master(RankEnvironment& environment, const Variables& variables, const std::string& otherwise) {
  environment.master_address = variables.text("MASTER_ADDR").value_or(otherwise);
  environment.master_port = optional_number(variables, "MASTER_PORT", 1, kMaxPort, environment.master_port);
}

std::optional<RankEnvironment> from_torchrun(const Variables& variables) {
  if (!variables.has("RANK") && !variables.has("WORLD_SIZE")) return std::nullopt;
  RankEnvironment environment{.launcher = "torchrun"};
  environment.size = needed(variables, "WORLD_SIZE", 1, "RANK");
  environment.rank = needed(variables, "RANK", 0, "WORLD_SIZE");
  environment.local_rank = optional_number(variables, "LOCAL_RANK", 0, kMaxRanks, 0);
  check_below(environment.rank, "RANK", environment.size, "WORLD_SIZE");
  check_below(environment.local_rank, "LOCAL_RANK", environment.size, "WORLD_SIZE");
  take_master(environment, variables, "127.0.0.1");
  // torchrun's own store listens at MASTER_PORT then.
  if (variables.text("TORCHELASTIC_USE_AGENT_STORE") == "True") ++environment.master_port;
  return environment;
}

std::optional<RankEnvironment> from_kubernetes(const Variables& variables) {
  // Any pod of an indexed job has an index; only NNODES says that they belong together.
  if (!variables.has("JOB_COMPLETION_INDEX") || !variables.has("NNODES")) return std::nullopt;
  const int machine = optional_number(variables, "JOB_COMPLETION_INDEX", 0, kMaxRanks, 0);
  const int machines = optional_number(variables, "NNODES", 1, kMaxRanks, 1);
  const int each = optional_number(variables, "NPROC", 1, kMaxRanks, 1);
  RankEnvironment environment{.launcher = "Kubernetes"};
  environment.local_rank = optional_number(variables, "LOCAL_RANK", 0, kMaxRanks, 0);
  check_below(machine, "JOB_COMPLETION_INDEX", machines, "NNODES");
  check_below(environment.local_rank, "LOCAL_RANK", each, "NPROC");
  if (each > kMaxRanks / machines) user_error("NNODES {} x NPROC {} are too many ranks", machines, each);
  environment.rank = machine * each + environment.local_rank;
  environment.size = machines * each;
  if (machines > 1 && !variables.has("MASTER_ADDR")) {
    user_error("NNODES is {}, but MASTER_ADDR does not say where the machine of index 0 is", machines);
  }
  take_master(environment, variables, "127.0.0.1");
  return environment;
}

std::string slurm_master(const Variables& variables) {
  if (const auto address = variables.text("SLURM_LAUNCH_NODE_IPADDR")) return *address;
  const auto nodes = variables.text("SLURM_JOB_NODELIST");
  return nodes ? expand_node_list(*nodes).front() : "127.0.0.1";
}

std::optional<RankEnvironment> from_slurm(const Variables& variables) {
  if (!variables.has("SLURM_PROCID")) return std::nullopt;
  if (variables.in_slurm_batch_script()) return std::nullopt;
  RankEnvironment environment{.launcher = "Slurm"};
  environment.rank = needed(variables, "SLURM_PROCID", 0, "SLURM_NTASKS");
  environment.size = needed(variables, "SLURM_NTASKS", 1, "SLURM_PROCID");
  environment.local_rank = optional_number(variables, "SLURM_LOCALID", 0, kMaxRanks, 0);
  check_below(environment.rank, "SLURM_PROCID", environment.size, "SLURM_NTASKS");
  check_below(environment.local_rank, "SLURM_LOCALID", environment.size, "SLURM_NTASKS");
  take_master(environment, variables, slurm_master(variables));
  return environment;
}
}  // namespace

std::optional<RankEnvironment> rank_environment(const Lookup& lookup) {
  const Variables variables(lookup);
  for (const auto& launcher : {from_torchrun, from_kubernetes, from_slurm}) {
    if (auto environment = launcher(variables)) return environment;
  }
  return std::nullopt;
}

}  // namespace megalith::config
