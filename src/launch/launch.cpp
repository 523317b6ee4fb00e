#include "launch/launch.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace megalith::launch {

namespace {

std::vector<std::string> command_with(const Launch& launch, const std::vector<std::string>& verb,
                                      const std::vector<std::string>& arguments) {
  std::string program = launch.profile.text("program");
  if (program.empty()) {
    const bool elsewhere = !launch.profile.text("image").empty();
    program = elsewhere ? "megalith" : std::filesystem::read_symlink("/proc/self/exe").string();
  }
  std::vector<std::string> command = launch.profile.texts("wrapper");
  command.push_back(std::move(program));
  command.insert(command.end(), verb.begin(), verb.end());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

bool is_train(const Launch& launch) {
  return launch.verb.front() == "train";
}

}  // namespace

std::vector<std::string> command_per_node(const Launch& launch) {
  std::vector<std::string> command = command_with(launch, launch.verb, launch.arguments);
  if (launch.work == Work::ranks) {
    command.emplace_back("--nproc");
    command.push_back(std::to_string(launch.ranks_per_node));
  }
  return command;
}

std::vector<std::string> command_per_rank(const Launch& launch) {
  std::vector<std::string> command = command_with(launch, launch.verb, launch.arguments);
  if (is_train(launch)) {
    command.push_back(fmt::format("trainer.devices={}", launch.ranks_per_node));
    command.push_back(fmt::format("trainer.num_nodes={}", launch.nodes));
  }
  return command;
}

std::vector<std::string> command_of(const Launch& launch, const Stage& stage) {
  return command_with(launch, stage.verb, stage.arguments);
}

Profile::Map environment_of(const Launch& launch, const std::string& secret_file) {
  Profile::Map variables = launch.profile.map("environment");
  if (launch.profile.flag("numa")) variables.emplace_back("MEGALITH_NUMA", "1");
  if (launch.work == Work::ranks) variables.emplace_back("MEGALITH_STORE_SECRET_FILE", secret_file);
  return variables;
}

std::string secret_in_folder(const Launch& launch) {
  return launch.folder_in_job + "/" + kSecretName;
}

void check_name(const std::string& name) {
  constexpr size_t kLongest = 63;
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  const bool good = !name.empty() && name.size() <= kLongest && std::all_of(name.begin(), name.end(), is_plain) &&
                    name[0] != '-' && name[0] != '.';
  if (!good) {
    user_error(
        "'{}' cannot be the name of a launch: at most {} letters, digits, '-', '_' and '.', beginning with a letter or "
        "digit; give one with --name",
        name, kLongest);
  }
}

}  // namespace megalith::launch
