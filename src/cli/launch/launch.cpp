#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/accepts.h"
#include "cli/launch/launch_draft.h"
#include "cli/launch/launch_verbs.h"
#include "core/error.h"
#include "core/file.h"
#include "core/words.h"
#include "launch/cluster.h"
#include "launch/describe.h"
#include "launch/kubernetes/kubernetes_cluster.h"
#include "launch/profiles/profile_reader.h"
#include "launch/tool.h"
#include "observe/sinks/log_files.h"

namespace megalith::cli {

namespace {

void refuse(const std::vector<std::string>& problems) {
  if (problems.empty()) return;
  if (problems.size() == 1) user_error("{}", problems.front());
  user_error("{} reasons why this cannot be launched:\n  {}", problems.size(), fmt::join(problems, "\n  "));
}

int print_difference(const launch::Launch& launch, const launch::Cluster& cluster) {
  const std::filesystem::path last = launch.folder / cluster.rendered_name();
  if (!std::filesystem::exists(last))
    user_error("there is no earlier launch of {} in {}", launch.name, launch.run_directory.string());
  const std::string rendered = cluster.render(launch);
  const launch::ToolAnswer answer = launch::run_tool(
      {.command = {"diff", "--unified", "--label", "last launch", "--label", "this one", last.string(), "-"},
       .input = rendered});
  std::cout << answer.output;
  if (answer.exit_code > 1) fail(ErrorKind::io, "diff: {}", answer.words());
  if (answer.exit_code == 0) std::cout << "the same as the last launch\n";
  return kExitComplete;
}

void require_not_running(const launch::Launch& launch) {
  for (const launch::LaunchRecord& other : launch::all_launches()) {
    const bool is_same = other.name == launch.name || other.folder == launch.folder;
    if (!is_same || other.kind != launch.profile.text("kind")) continue;
    const std::vector<launch::JobState> states = launch::states_of(other);
    if (!launch::is_alive(states)) continue;
    user_error("{} is {}: wait for it, stop it with `megalith launch stop {}`, or give this one another --name",
               other.name, launch::state_in_words(other, states), other.name);
  }
}

void note_doubts(const LaunchDraft& draft, const launch::Cluster& cluster) {
  for (const std::string& warning : cluster.warnings(draft.launch)) observe::log_warning(warning);
  for (const std::string& what : draft.unchecked)
    observe::log_warning(
        fmt::format("not checked, since this machine does not see it yet: {}; the job looks for it first", what));
}

int submit(const LaunchDraft& draft, const launch::Cluster& cluster) {
  const launch::Launch& launch = draft.launch;
  if (draft.is_complete) {
    std::cout << fmt::format("{}: the run in {} is complete, there is nothing to launch\n", launch.name,
                             launch.run_directory.string());
    return kExitComplete;
  }
  const File claim = launch::claim_folder(launch);
  require_not_running(launch);
  launch::LaunchRecord record = launch::begin_folder(launch, cluster.rendered_name(), cluster.render(launch));
  launch::finish_folder(record, cluster.submit(launch));
  std::cout << fmt::format("launched {} on {}: job {}\n", launch.name, launch.profile.name(),
                           fmt::join(record.ids, ", "));
  for (size_t i = 0; i < launch.stages.size(); ++i) {
    const launch::Stage& stage = launch.stages[i];
    std::cout << fmt::format("  {}  job {}, {} of {}\n", stage.name, record.ids[i], counted(stage.tasks, "task"),
                             counted(stage.workers, "worker"));
  }
  if (launch.saves && launch.profile.text("kind") == "slurm")
    std::cout << fmt::format("  it stops and saves {:.0f} s before its time limit (save_margin)\n",
                             launch.profile.seconds("save_margin"));
  std::cout << fmt::format("  folder  {}\n  status  megalith launch status {}\n  log     megalith launch logs -f {}\n",
                           launch.folder.string(), launch.name, launch.name);
  return kExitComplete;
}

int run_launch(const LaunchOptions& options) {
  LaunchDraft draft = draft_launch(options);
  const auto cluster = launch::make_cluster(options.kind);
  const std::vector<std::string> more = cluster->problems(draft.launch);
  draft.problems.insert(draft.problems.end(), more.begin(), more.end());
  if (!options.render && !options.diff && !options.values) {
    const std::vector<std::string> obstacles = cluster->obstacles();
    draft.problems.insert(draft.problems.end(), obstacles.begin(), obstacles.end());
    if (obstacles.empty()) {
      const std::vector<std::string> refusals = cluster->refusals(draft.launch);
      draft.problems.insert(draft.problems.end(), refusals.begin(), refusals.end());
    }
  }
  refuse(draft.problems);
  note_doubts(draft, *cluster);
  if (options.values) {
    std::cout << launch::chart_values(draft.launch);
    return kExitComplete;
  }
  if (options.render) {
    std::cout << cluster->render(draft.launch);
    return kExitComplete;
  }
  if (options.diff) return print_difference(draft.launch, *cluster);
  if (options.check) {
    std::cout << cluster->check(draft.launch) << "\n";
    return kExitComplete;
  }
  return submit(draft, *cluster);
}

void add_options(CLI::App& verb, const std::shared_ptr<LaunchOptions>& options) {
  verb.add_option("--cluster", options->cluster, "profile of the cluster: a name, or a file")->type_name("NAME|FILE");
  verb.add_option("--set", options->set, "a value of the profile, as in Helm: slurm.partition=gpu")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  verb.add_option("--name", options->name, "of the launch (default: that of the run)");
  verb.add_option("--ranks-per-node", options->ranks, "or workers (default: --nproc, or trainer.devices)")
      ->check(between(1, kMostProcesses));
  CLI::Option* render = verb.add_flag("--render", options->render, "print what would be submitted, and stop");
  CLI::Option* check = verb.add_flag("--check", options->check, "also ask the cluster whether it could run, and stop");
  CLI::Option* diff = verb.add_flag("--diff", options->diff, "print how it differs from the last launch, and stop");
  render->excludes(check)->excludes(diff);
  check->excludes(diff);
}

void add_nodes(CLI::App& verb, const std::shared_ptr<LaunchOptions>& options) {
  verb.add_option("--nodes", options->nodes, "machines (default: trainer.num_nodes)")
      ->check(between(1, kMostProcesses));
}

void add_time(CLI::App& verb, const std::shared_ptr<LaunchOptions>& options) {
  verb.add_option("--time", options->time, "time limit of one job: 90 (minutes), 1:30:00, 1-12:00:00")
      ->type_name("TIME");
}

CLI::Option* add_command(CLI::App& verb, const std::shared_ptr<LaunchOptions>& options) {
  return verb.add_option("command", options->command, "after --: the verb to launch, with its arguments");
}

void add_slurm(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand(
      "slurm",
      "Launch a verb on a Slurm cluster.\n\n"
      "  megalith launch slurm --nodes 2 --time 4:00:00 --render -- train -c recipes/gpt3-375m.yaml\n"
      "  megalith launch slurm --cluster dgx-cloud --set slurm.account=me --check -- train -c "
      "recipes/gpt3-175b-dgxc.yaml\n"
      "  megalith launch slurm --name pile --nodes 32 --stage tokenize=4x8 -- data extract --input 'raw/*.zst' "
      "--output-dir text \\\n"
      "    -- data tokenize --input 'text/*.jsonl' --output-dir tokens --append-eod \\\n"
      "    -- data merge --input 'tokens/*_document' --output-prefix pile\n\n"
      "Several verbs of data, each after a -- of its own, are stages: arrays that wait for each other.\n"
      "The same command again does what is missing.\n"
      "Everything that this machine can check is checked first, and every reason is listed at once (exit code 2).\n"
      "A run that was stopped early goes back to the queue by itself, until it is complete.");
  const auto options = std::make_shared<LaunchOptions>();
  options->kind = "slurm";
  add_nodes(*verb, options);
  verb->add_option("--chain", options->chain,
                   "submit this many jobs at once, each going on where the one before stopped")
      ->check(between(1, 1000))
      ->capture_default_str();
  verb->add_option("--array", options->array,
                   "tasks that divide the work of each stage of data (default: one per node)")
      ->check(between(1, kMostProcesses));
  verb->add_option("--stage", options->stages, "nodes and workers of a node for one stage of data: tokenize=4x32")
      ->type_name("NAME=NODESxWORKERS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  verb->add_option("--after", options->after, "launches that must have ended well before")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  add_options(*verb, options);
  add_time(*verb, options);
  add_command(*verb, options)->required();
  verb->callback([options, &run] { run = [options] { return run_launch(*options); }; });
}

struct KubernetesOptions : LaunchOptions {
  bool rbac = false;
  std::string secret;  // to be made
};

int run_kubernetes(const KubernetesOptions& options) {
  if (options.rbac) {
    std::cout << launch::role_manifest(profile_of(options));
    return kExitComplete;
  }
  if (options.secret.empty()) return run_launch(options);
  const std::string where = launch::make_secret(profile_of(options), options.secret);
  std::cout << fmt::format("made the Secret {}{}\n", options.secret, where.empty() ? "" : " in namespace " + where);
  return kExitComplete;
}

void add_kubernetes(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand(
      "kubernetes",
      "Launch a verb on a Kubernetes cluster, through kubectl.\n\n"
      "  megalith launch kubernetes --set image=me/megalith@sha256:1f --set mounts[0].claim=runs --set "
      "mounts[0].target=/runs --render -- train -c recipes/gpt3-13b.yaml exp_manager.explicit_log_dir=/runs/gpt3-13b\n"
      "  megalith launch kubernetes --rbac --cluster gke-a3-ultra --set kubernetes.queue=a3-ultra\n\n"
      "Everything that this machine can check is checked first, and every reason is listed at once (exit code 2).\n"
      "Pods that saved, or were evicted, start again by themselves, until the run is complete.");
  const auto options = std::make_shared<KubernetesOptions>();
  options->kind = "kubernetes";
  add_nodes(*verb, options);
  add_options(*verb, options);
  CLI::Option* values = verb->add_flag("--values", options->values, "print the values for charts/megalith, and stop");
  values->excludes("--render")->excludes("--check")->excludes("--diff");
  CLI::Option* rbac = verb->add_flag("--rbac", options->rbac, "print the least Role that suffices, and stop");
  CLI::Option* secret =
      verb->add_option("--make-secret", options->secret, "make this Secret for charts/megalith, and stop")
          ->type_name("NAME")
          ->excludes(rbac);
  CLI::Option* command = add_command(*verb, options)->excludes(rbac)->excludes(secret);
  verb->callback([options, rbac, secret, command, &run] {
    if (command->count() + rbac->count() + secret->count() == 0) throw CLI::RequiredError("command");
    run = [options] { return run_kubernetes(*options); };
  });
}

void add_local(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand(
      "local",
      "Launch a verb on this machine, in the background.\n\n"
      "  megalith launch local --render -- train -c recipes/gpt3-125m.yaml --nproc 2 trainer.max_steps=10");
  const auto options = std::make_shared<LaunchOptions>();
  options->kind = "local";
  add_options(*verb, options);
  add_time(*verb, options);
  add_command(*verb, options)->required();
  verb->callback([options, &run] { run = [options] { return run_launch(*options); }; });
}

struct ProfileOptions {
  std::string name;
  std::vector<std::string> set;
};

void add_profile(CLI::App& launch, Action& run) {
  CLI::App* verb = launch.add_subcommand("profile",
                                         "Print a cluster's profile: every value, and where it came from.\n\n"
                                         "  megalith launch profile azure-ndv5\n"
                                         "  megalith launch profile generic-slurm --set slurm.partition=gpu");
  const auto options = std::make_shared<ProfileOptions>();
  verb->add_option("profile", options->name, "name or file")->required();
  verb->add_option("--set", options->set, "a value, as in Helm: slurm.partition=gpu")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false);
  verb->callback([options, &run] {
    run = [options] {
      std::cout << launch::load_profile(options->name, options->set).to_yaml();
      return kExitComplete;
    };
  });
}

}  // namespace

void add_launch(CLI::App& program, Action& run) {
  CLI::App* launch =
      program.add_subcommand("launch", "Launch a verb on a cluster by one command, and follow it to its end.");
  launch->require_subcommand(1);
  for (const auto add : {add_slurm, add_kubernetes, add_local, add_profile, add_launch_list, add_launch_status,
                         add_launch_logs, add_launch_stop, add_launch_remove}) {
    add(*launch, run);
  }
}

}  // namespace megalith::cli
