#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "launch/launch.h"

namespace megalith::launch {

// Where a pod sees the files of its launch, and the store's secret.
constexpr const char* kFilesInPod = "/etc/megalith";
constexpr const char* kSecretInPod = "/etc/megalith-secret/secret";

// All that profile and launch say, resolved, as the values of charts/megalith: what is left to do with them is to put
// them into objects under a name (kubernetes_objects.h). Nothing in them depends on that name.
nlohmann::ordered_json kubernetes_values(const Launch& launch);

// The name of a launch's objects: that of the launch as host names have it, and how many launches of it there were.
std::string kubernetes_name(const Launch& launch);

// Why the cluster could not run it; what the user should know though it runs.
std::vector<std::string> kubernetes_problems(const Launch& launch);
std::vector<std::string> kubernetes_warnings(const Launch& launch);

}  // namespace megalith::launch
