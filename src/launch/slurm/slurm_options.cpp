#include "launch/slurm/slurm_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "launch/bash_quote.h"

namespace megalith::launch {

namespace {

constexpr size_t kLongestOption = 1000;

void add_gpus(const Launch& launch, std::vector<std::string>& options) {
  const int64_t gpus = launch.profile.number("gpus_per_node");
  const std::string how = launch.profile.text("slurm.gpus");
  if (gpus == 0 || launch.work == Work::workers || how == "none") return;
  options.push_back(fmt::format("{}{}", how == "gres" ? "--gres=gpu:" : "--gpus-per-node=", gpus));
}

void add_container(const Launch& launch, std::vector<std::string>& words) {
  const Profile& profile = launch.profile;
  words.push_back("--container-image=" + profile.text("image"));
  std::vector<std::string> mounts;
  for (const Mount& mount : profile.mounts())
    mounts.push_back(fmt::format("{}:{}{}", mount.source, mount.target, mount.read_only ? ":ro" : ""));
  if (!mounts.empty()) words.push_back(fmt::format("--container-mounts={}", fmt::join(mounts, ",")));
  if (profile.flag("slurm.container_writable")) words.emplace_back("--container-writable");
  words.emplace_back(profile.flag("slurm.container_mount_home") ? "--container-mount-home"
                                                                : "--no-container-mount-home");
  // Those that must win over the image's own.
  std::vector<std::string> names;
  if (launch.work == Work::ranks) names = {"MASTER_ADDR", "MASTER_PORT", "MEGALITH_GENERATION"};
  for (const auto& [name, value] : environment_of(launch, secret_in_folder(launch))) names.push_back(name);
  if (!names.empty()) words.push_back(fmt::format("--container-env={}", fmt::join(names, ",")));
}

}  // namespace

bool one_task_per_rank(const Launch& launch) {
  return launch.work == Work::workers || launch.profile.text("slurm.tasks") == "gpu";
}

int64_t save_margin(const Profile& profile) {
  return static_cast<int64_t>(profile.seconds("save_margin"));
}

std::vector<std::string> sbatch_options(const Launch& launch) {
  const Profile& profile = launch.profile;
  const bool has_stages = !launch.stages.empty();
  std::vector<std::string> options = {fmt::format("--job-name={}", launch.name)};
  options.push_back(fmt::format("--nodes={}", has_stages ? 1 : launch.nodes));
  if (!has_stages)
    options.push_back(fmt::format("--ntasks-per-node={}", one_task_per_rank(launch) ? launch.ranks_per_node : 1));
  const auto add = [&](const char* option, const char* key) {
    if (const std::string value = profile.text(key); !value.empty()) options.push_back(option + value);
  };
  add("--partition=", "slurm.partition");
  add("--account=", "slurm.account");
  add("--qos=", "slurm.qos");
  add("--reservation=", "slurm.reservation");
  add("--constraint=", "slurm.constraint");
  add_gpus(launch, options);
  if (profile.flag("slurm.exclusive")) options.emplace_back("--exclusive");
  add("--mem=", "slurm.memory");
  if (const int64_t cpus = profile.number("slurm.cpus_per_task"); cpus > 0)
    options.push_back(fmt::format("--cpus-per-task={}", cpus));
  if (!has_stages) add("--switches=", "slurm.switches");
  if (const int64_t nodes = profile.number("slurm.segment"); nodes > 0 && !has_stages)
    options.push_back(fmt::format("--segment={}", nodes));
  add("--time=", "slurm.time");
  if (launch.saves) options.push_back(fmt::format("--signal=USR1@{}", save_margin(profile)));
  // The tasks of an array have one name and would wait for each other.
  if (!has_stages && (launch.chain > 1 || profile.flag("slurm.singleton")))
    options.emplace_back("--dependency=singleton");
  options.emplace_back(launch.chain == 1 && profile.flag("slurm.requeue") ? "--requeue" : "--no-requeue");
  // The script opens its log itself: where a node does not see it, Slurm would not even start the script.
  options.emplace_back("--output=/dev/null");
  for (const std::string& more : profile.texts("slurm.sbatch")) options.push_back(more);
  return options;
}

std::vector<std::string> srun_words(const Launch& launch, int64_t tasks_per_node) {
  const Profile& profile = launch.profile;
  // The first task that ends must not end the others: srun would answer with their signal instead of 75.
  std::vector<std::string> words = {
      "srun", "--kill-on-bad-exit=0",
      fmt::format("--wait={}", launch.work == Work::ranks ? profile.number("slurm.wait") : 0)};
  if (tasks_per_node > 1) words.emplace_back("--label");
  if (const int64_t cpus = profile.number("slurm.cpus_per_task"); cpus > 0)
    words.push_back(fmt::format("--cpus-per-task={}", cpus));
  if (const std::string mpi = profile.text("slurm.mpi"); !mpi.empty()) words.push_back("--mpi=" + mpi);
  if (!profile.text("image").empty()) add_container(launch, words);
  for (const std::string& more : profile.texts("slurm.srun")) words.push_back(more);
  return words;
}

std::vector<std::string> task_command(const Profile& profile, std::vector<std::string> command) {
  const std::vector<std::string> files = profile.texts("source");
  // Wherever it stands, srun takes this word for the begin of another job component.
  const bool has_colon = std::find(command.begin(), command.end(), ":") != command.end();
  if (files.empty() && !has_colon) return command;
  std::string shell;
  for (const std::string& file : files) shell += fmt::format("source {} && ", bash_quoted(file));
  shell += "exec";
  if (has_colon) {
    for (const std::string& word : command) shell += fmt::format(" {}", bash_quoted(word));
    command.clear();
  }
  command.insert(command.begin(), {"bash", "-c", fmt::format("{} \"$@\"", shell), "bash"});
  return command;
}

std::string sbatch_quoted(const std::string& option) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (option.size() > kLongestOption || std::any_of(option.begin(), option.end(), is_control)) {
    user_error("a #SBATCH line cannot carry '{}': it has {}", option.substr(0, 60),
               option.size() > kLongestOption ? fmt::format("more than {} bytes", kLongestOption)
                                              : "a line end or another control character");
  }
  constexpr std::string_view kSpecial = " \"'\\#$`!&|;<>()*?[]{}~";
  if (option.find_first_of(kSpecial) == std::string::npos) return option;
  std::string quoted = "\"";
  for (const char c : option) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace megalith::launch
