#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/profiles/profile.h"

namespace megalith::launch {

// The objects of a launch but for its Secret, in the order in which they are made: of these values
// (kubernetes_values.h), under this name. charts/megalith/templates says the same in Helm's words.
std::vector<nlohmann::ordered_json> kubernetes_objects(const nlohmann::ordered_json& values, const std::string& name);

// The Secret with the text that the ranks of a run share.
nlohmann::ordered_json kubernetes_secret(const std::string& name, const std::string& secret);

// The least rights with which `launch kubernetes` and what follows it work on such a cluster.
nlohmann::ordered_json kubernetes_role(const Profile& profile);

// The label that all objects and pods of a launch have, with its name as the value.
constexpr const char* kInstanceLabel = "app.kubernetes.io/instance";

}  // namespace megalith::launch
