#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "launch/cluster.h"

namespace megalith::launch {

struct KubernetesState {
  JobState job;
  std::optional<LaunchRecord::Ending> ending{};  // nothing of this launch starts again
  bool is_suspended = false;                     // a queue has not let it in
};

// From a Job or JobSet and the list of its pods, as `kubectl get --output=json` answers.
KubernetesState read_kubernetes_state(const nlohmann::ordered_json& job, const nlohmann::ordered_json& pods);

// The starts and ends that these pods tell of, oldest first, each with the name of its pod as the job: of the first
// machine, which speaks for all. Their generations are not counted.
std::vector<JournalLine> starts_of(const nlohmann::ordered_json& pods);

// The newest pod of a machine, by its index; empty: there is none.
std::string newest_pod(const nlohmann::ordered_json& pods, int64_t index);

// Why Kueue has not let a workload of this owner in; empty: it does not say.
std::string why_not_admitted(const nlohmann::ordered_json& workloads, const std::string& owner);

}  // namespace megalith::launch
