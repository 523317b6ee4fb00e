#include "cli/launch/launch_draft.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "checkpoint/file_names.h"
#include "cli/launch/launch_stages.h"
#include "cli/launch/launch_words.h"
#include "config/derived.h"
#include "core/error.h"
#include "core/file.h"
#include "core/run_folders.h"
#include "launch/folder.h"
#include "launch/kubernetes/kubernetes_values.h"
#include "launch/profiles/profile_reader.h"
#include "launch/ranks/self.h"
#include "launch/slurm/slurm_time.h"
#include "launch/storage.h"
#include "observe/logs/run_history.h"
#include "train/run/run_directory.h"
#include "train/run/tiers.h"

namespace megalith::cli {

namespace fs = std::filesystem;

namespace {

constexpr double kLongestPatience = 86400.0;
constexpr int64_t kMinute = 60;  // from the end of a call that nobody joins to that of the process

// In the name of a file that every cluster can carry.
bool is_plain(char c) {
  const std::string_view marks = "._-";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || marks.find(c) != marks.npos;
}

// Names of their own in the folder, also where two recipes are called the same.
std::vector<launch::LaunchFile> copies_of(const std::vector<std::string>& recipes) {
  std::vector<launch::LaunchFile> copies;
  std::set<std::string> names;
  for (const std::string& recipe : recipes) {
    std::string name = fs::path(recipe).filename().string();
    std::replace_if(name.begin(), name.end(), std::not_fn(is_plain), '-');
    while (!names.insert(name).second) name = "more-" + name;
    copies.push_back({.name = name, .text = read_text(recipe)});
  }
  return copies;
}

std::vector<LaunchedVerb> understand_verbs(const std::vector<std::string>& command) {
  std::vector<LaunchedVerb> verbs;
  for (const std::vector<std::string>& words : split_verbs(command)) verbs.push_back(understand_verb(words));
  return verbs;
}

class Drafter {
 public:
  explicit Drafter(const LaunchOptions& options)
      : options_(options),
        verbs_(understand_verbs(options.command)),
        verb_(verbs_.front()),
        profile_(profile_of(options)),
        storage_(profile_, fs::current_path()) {}

  LaunchDraft draft() && {
    launch::Launch& launch = draft_.launch;
    launch.verb = verb_.verb;
    launch.profile = profile_;
    launch.work = verb_.work;
    launch.work_directory = fs::current_path();
    launch.chain = options_.chain;
    launch.saves = verb_.train && !verb_.train->compile_only;
    launch.time_limit = launch::parse_slurm_time(options_.time).value_or(0);
    if (options_.kind == "local" && !options_.time.empty() && launch.time_limit == 0)
      draft_.problems.push_back(
          fmt::format("the time limit '{}' is none: write 90 (minutes), 90:00 or 1:30:00", options_.time));
    for (const std::string& name : options_.after) add_after(name);
    const bool has_stages = are_stages(verbs_, options_.kind);
    if (!has_stages && (options_.array > 0 || !options_.stages.empty()))
      draft_.problems.emplace_back("--array and --stage are for verbs of data that divide their work");
    if (verb_.train) {
      draft_training();
    } else if (has_stages) {
      set_run_folder(verbs_.size() > 1 ? "data" : fmt::format("{}", fmt::join(verb_.verb, "-")));
      draft_stages(verbs_, options_, storage_, draft_);
    } else {
      draft_other_verb();
    }
    launch::check_name(launch.name);
    launch.number = launch::launches_in(launch.folder) + 1;
    if (on_kubernetes()) settle_pod_folder();
    return std::move(draft_);
  }

 private:
  bool on_kubernetes() const { return options_.kind == "kubernetes"; }

  // Storage that only the pods see remembers earlier launches of the name, which this machine cannot put away.
  void settle_pod_folder() {
    launch::Launch& launch = draft_.launch;
    launch.job_sees_folder = storage_.seen_here(run_in_job_).has_value();
    if (!storage_.is_mounted(run_in_job_)) {
      launch.folder_in_job.clear();
    } else if (!launch.job_sees_folder) {
      launch.folder_in_job += fmt::format("-{}", launch.number);
    }
  }

  void set_folder(const std::string& name, const fs::path& run_directory) {
    launch::Launch& launch = draft_.launch;
    launch.name = options_.name.empty() ? name : options_.name;
    launch.run_directory = run_directory;
    launch.folder = run_directory / kLaunchFolder / launch.name;
  }

  void draft_other_verb() {
    launch::Launch& launch = draft_.launch;
    const std::string name = fmt::format("{}", fmt::join(verb_.verb, "-"));
    launch.nodes = std::max<int64_t>(1, options_.nodes);
    launch.ranks_per_node = options_.ranks > 0 ? options_.ranks : std::max<int64_t>(1, verb_.nproc);
    if (on_kubernetes() && launch.work == launch::Work::workers) {
      // Each is a pod of its own.
      launch.nodes *= std::exchange(launch.ranks_per_node, 1);
    }
    launch.arguments = launch::without_nproc(verb_.arguments);
    set_run_folder(name);
    if (launch.work == launch::Work::single && (launch.nodes > 1 || launch.ranks_per_node > 1))
      draft_.problems.push_back(fmt::format("`{}` is one process: leave --nodes and --ranks-per-node out", name));
  }

  void set_run_folder(const std::string& name) {
    set_folder(name, fs::current_path() / "runs" / (options_.name.empty() ? name : options_.name));
    see_folder(draft_.launch.run_directory);
  }

  // Where the program sees the folder. Without an image that is where this machine does.
  void see_folder(const fs::path& run_in_job) {
    run_in_job_ = run_in_job;
    draft_.launch.folder_in_job = (run_in_job / kLaunchFolder / draft_.launch.name).string();
  }

  config::Run load_run(int64_t nodes, int64_t ranks) const {
    ConfigOptions config = verb_.train->config;
    const std::vector<std::string> of_ranks = overrides_of_ranks(ranks, nodes);
    config.overrides.insert(config.overrides.begin(), of_ranks.begin(), of_ranks.end());
    return config.load();
  }

  void draft_training() {
    launch::Launch& launch = draft_.launch;
    const config::Run recipe = verb_.train->config.load();
    launch.nodes = options_.nodes > 0 ? options_.nodes : recipe.trainer.num_nodes;
    launch.ranks_per_node = options_.ranks > 0 ? options_.ranks
                            : verb_.nproc > 0  ? verb_.nproc
                                               : recipe.trainer.devices;
    config::Run run = load_run(launch.nodes, launch.ranks_per_node);
    require_recipe_or_data(*verb_.train, run);
    launch.patience = static_cast<int64_t>(std::min(run.trainer.communication_timeout, kLongestPatience)) + kMinute;
    launch.max_time = run.trainer.max_time.empty() ? 0 : config::parse_max_time(run.trainer.max_time);

    const fs::path run_in_job = (fs::current_path() / train::run_path(run)).lexically_normal();
    run.exp_manager.explicit_log_dir = run_in_job.string();
    const auto run_here = storage_.seen_here(run_in_job);
    if (!run_here && !is_left_to_pods(run_in_job)) draft_.problems.push_back(why_hidden(run_in_job));
    set_folder(run.name + (verb_.train->compile_only ? "-compile" : ""), run_here.value_or(run_in_job));
    if (!run_here && on_kubernetes()) {
      // What this machine remembers of the launch.
      draft_.launch.run_directory = fs::current_path() / "runs" / draft_.launch.name;
      draft_.launch.folder = draft_.launch.run_directory / kLaunchFolder / draft_.launch.name;
    }
    see_folder(run_in_job);
    find_tracker(run);
    set_arguments(run);
    check_run(run);
  }

  std::string why_hidden(const fs::path& run) const {
    if (storage_.is_mounted(run)) {
      return fmt::format(
          "the run directory {} is on a mount whose source this machine does not have: launch from one that has it, or "
          "say where this one sees it with --set mounts[0].seen_at=PATH",
          run.string());
    }
    return fmt::format(
        "the run directory {} is not on storage that {}: mount it, for example with --set mounts[0].{} --set "
        "mounts[0].target={}, and set exp_manager.explicit_log_dir inside of it",
        run.string(), on_kubernetes() ? "the pods see" : "this machine sees",
        on_kubernetes() ? "claim=NAME" : "source=PATH", run.parent_path().string());
  }

  // Pods see claims and buckets that this machine need not see.
  bool is_left_to_pods(const fs::path& path) const { return on_kubernetes() && storage_.is_mounted(path); }

  void set_arguments(const config::Run& run) {
    launch::Launch& launch = draft_.launch;
    const std::string folder = on_kubernetes() ? launch::kFilesInPod : launch.folder_in_job;
    launch.files = copies_of(verb_.train->config.files);
    std::vector<std::string> names;
    for (const launch::LaunchFile& file : launch.files) names.push_back(folder + "/" + file.name);
    launch.arguments = with_files(verb_.arguments, names);
    launch.arguments.push_back("exp_manager.explicit_log_dir=" + run.exp_manager.explicit_log_dir);
    // Its own restarts; whether it may continue what is there now has been checked.
    launch.arguments.emplace_back("exp_manager.resume_if_exists=true");
  }

  void find_tracker(const config::Run& run) {
    if (!draft_.launch.saves || !run.exp_manager.create_checkpoint_callback) return;
    const fs::path checkpoints = train::tiers_of(run, 0).persistent;
    if (is_left_to_pods(checkpoints)) return;
    if (const auto here = storage_.seen_here(checkpoints)) {
      draft_.launch.tracker = *here / checkpoint::kTrackerName;
      return;
    }
    draft_.problems.push_back(
        fmt::format("the checkpoints of {} are not on storage that this machine sees: mount it, so that the job can "
                    "tell whether it made progress",
                    checkpoints.string()));
  }

  void check_run(const config::Run& run) {
    const launch::Launch& launch = draft_.launch;
    const launch::TrainingCheck check = launch::check_training(run, launch.nodes * launch.ranks_per_node, storage_,
                                                               /*files_come_later=*/!launch.after.empty());
    draft_.problems.insert(draft_.problems.end(), check.problems.begin(), check.problems.end());
    draft_.unchecked = check.unchecked;
    const int64_t gpus = launch.profile.number("gpus_per_node");
    if (run.trainer.accelerator != config::Accelerator::cpu && gpus > 0 && launch.ranks_per_node > gpus) {
      draft_.problems.push_back(fmt::format("{} ranks per node do not fit the {} GPUs of a node of {} (gpus_per_node)",
                                            launch.ranks_per_node, gpus, launch.profile.name()));
    }
    if (verb_.train->compile_only || !fs::exists(launch.run_directory / "hparams.yaml")) return;
    const observe::RunHistory history = observe::read_run_history(launch.run_directory);
    draft_.is_complete = history.complete() && history.last_step.value_or(-1) + 1 >= run.trainer.max_steps;
    if (!run.exp_manager.resume_if_exists && !draft_.is_complete) {
      draft_.problems.push_back(
          fmt::format("{} already holds a run; continue it with exp_manager.resume_if_exists=true or choose another "
                      "exp_manager.explicit_log_dir",
                      launch.run_directory.string()));
    }
  }

  void add_after(const std::string& name) {
    const launch::LaunchRecord before = launch::find_launch(name);
    if (before.kind != options_.kind || options_.kind != "slurm")
      user_error("--after {}: both launches must be on Slurm", name);
    const auto ending = before.ending();
    if (ending && ending->code == 0) return;
    if (ending) user_error("--after {}: it has ended with exit code {}: {}", name, ending->code, ending->reason);
    draft_.launch.after.insert(draft_.launch.after.end(), before.ids.begin(), before.ids.end());
  }

  const LaunchOptions& options_;
  std::vector<LaunchedVerb> verbs_;
  const LaunchedVerb& verb_;
  launch::Profile profile_;
  launch::Storage storage_;
  fs::path run_in_job_;
  LaunchDraft draft_;
};

}  // namespace

launch::Profile profile_of(const LaunchOptions& options) {
  std::vector<std::string> set = options.set;
  if (!options.time.empty() && options.kind == "slurm") set.push_back("slurm.time=" + options.time);
  if (options.cluster.empty() && options.kind == "local") set.insert(set.begin(), "kind=local");
  launch::Profile profile =
      options.cluster.empty() && options.kind == "local"
          ? launch::default_profile("local", set)
          : launch::load_profile(options.cluster.empty() ? "generic-" + options.kind : options.cluster, set);
  if (profile.text("kind") != options.kind) {
    user_error("the profile {} is for {}: use `megalith launch {} --cluster {}`", profile.name(), profile.text("kind"),
               profile.text("kind"), options.cluster);
  }
  return profile;
}

LaunchDraft draft_launch(const LaunchOptions& options) {
  return Drafter(options).draft();
}

}  // namespace megalith::cli
