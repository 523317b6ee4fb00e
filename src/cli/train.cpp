#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/config_options.h"
#include "cli/rank_options.h"
#include "cli/verbs.h"
#include "config/print.h"
#include "core/file.h"
#include "core/thread_pool.h"
#include "data/tokenizer.h"
#include "launch/boot.h"
#include "launch/self.h"
#include "train/describe.h"
#include "train/describe_layout.h"
#include "train/layout.h"
#include "train/pictures.h"
#include "train/plan_files.h"
#include "train/session.h"

namespace megalith::cli {

namespace {

struct TrainOptions {
  ConfigOptions config;
  RankOptions ranks;
  bool dry_run = false;
  std::optional<int64_t> rank;  // that a dry run is to describe
  std::string pictures;         // the folder for those of a dry run; empty: none
  bool compile_only = false;
  bool help_config = false;
};

// Flags that name a key of the config as others do.
void add_checkpoint_flags(CLI::App& verb, const std::shared_ptr<TrainOptions>& options) {
  const auto add = [&](const char* flag, const char* key, const char* help) {
    const std::string path = fmt::format("exp_manager.checkpoint_callback_params.{}", key);
    verb.add_option_function<std::string>(
        flag, [options, path](const std::string& value) { options->config.overrides.push_back(path + "=" + value); },
        help);
  };
  add("--persistent-ckpt-interval", "every_n_train_steps", "steps between checkpoints on shared storage");
  add("--persistent-ckpt-dir", "dirpath", "where those go");
  add("--local-ckpt-interval", "local_every_n_train_steps", "steps between checkpoints on each node itself");
  add("--local-ckpt-dir", "local_dirpath", "the disk of each node that those go to");
  add("--local-ckpt-peer-copy", "local_peer_copy", "true: the next node keeps a copy of them in memory");
}

void write_pictures(const TrainOptions& options, const config::Run& run, int64_t vocabulary) {
  make_directory(options.pictures);
  for (const train::Picture& picture :
       train::draw_layout(train::stage_request(run, vocabulary), static_cast<int>(options.rank.value_or(0)))) {
    const std::filesystem::path file = std::filesystem::path(options.pictures) / picture.file;
    replace_file(file, picture.svg);
    std::cout << "wrote " << file.string() << "\n";
  }
}

int dry_run(const TrainOptions& options, const config::Run& run, const config::LoadReport& report) {
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  if (options.rank) {
    train::check_layout(run, vocabulary);
    std::cout << train::describe_rank(train::stage_request(run, vocabulary), *options.rank);
  } else {
    std::cout << config::to_yaml(run) << config::describe(report) << train::describe_model(run, vocabulary);
  }
  if (!options.pictures.empty()) write_pictures(options, run, vocabulary);
  return kExitComplete;
}

int launch_ranks(const TrainOptions& options, const launch::LaunchPlace& place, const config::Run& run,
                 std::vector<std::string> overrides) {
  train::check_ranks(run, int64_t{options.ranks.nproc} * place.machines);
  train::check_layout(run, data::vocabulary_of(run.model.tokenizer).size);
  if (run.trainer.cpu_threads == 0) {
    overrides.push_back(fmt::format("trainer.cpu_threads={}", std::max(1, available_cores() / options.ranks.nproc)));
  }
  return launch::launch_self({.ranks = options.ranks.nproc,
                              .place = place,
                              .device = train::device_of(run.trainer),
                              .more_arguments = std::move(overrides)});
}

int compile(const config::Run& run, const launch::Boot& boot) {
  const ops::PlanCounts plans = train::compile(run, boot.world());
  const int64_t successful = plans.made + plans.loaded;
  if (boot.rank() == 0) {
    std::cout << fmt::format("Total graphs: {}\nTotal successful compilations: {}\nTotal failed compilations: {}\n",
                             successful + plans.failed, successful, plans.failed);
  }
  return kExitComplete;
}

int run_training(const config::Run& run, const config::LoadReport& report, const launch::Boot& boot) {
  const train::Summary summary = train::train(run, report, boot.world());
  return summary.ending == train::Ending::complete ? kExitComplete : kExitRunAgain;
}

int run_rank(const TrainOptions& options, const config::Run& run, const config::LoadReport& report) {
  train::check_ranks(run, launch::started_ranks());
  launch::Boot boot({.device = train::device_of(run.trainer),
                     .start_timeout = run.trainer.start_timeout,
                     .communication_timeout = run.trainer.communication_timeout});
  const int code = options.compile_only ? compile(run, boot) : run_training(run, report, boot);
  boot.finish();
  return code;
}

int run_train(TrainOptions options) {
  if (options.help_config) {
    std::cout << config::describe_keys();
    return kExitComplete;
  }
  launch::LaunchPlace place;
  std::vector<std::string> of_ranks;
  if (options.ranks.launches()) {
    place = launch::launch_place();
    of_ranks = {fmt::format("trainer.devices={}", options.ranks.nproc),
                fmt::format("trainer.num_nodes={}", place.machines)};
    auto& overrides = options.config.overrides;
    overrides.insert(overrides.begin(), of_ranks.begin(), of_ranks.end());
  }
  config::LoadReport report;
  const config::Run run = options.config.load(&report);
  if (options.dry_run) return dry_run(options, run, report);
  return options.ranks.launches() ? launch_ranks(options, place, run, of_ranks) : run_rank(options, run, report);
}

}  // namespace

void add_train(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "train",
      "Train a model, or continue training it.\n\n"
      "  megalith train -c recipes/demo.yaml\n"
      "  megalith train -c recipes/gpt3-125m.yaml trainer.max_steps=100 exp_manager.explicit_log_dir=runs/mine\n"
      "  megalith train -c recipes/gpt3-1.3b.yaml --nproc 8\n"
      "  megalith train -c recipes/gpt3-175b.yaml --dry-run\n"
      "  megalith train -c recipes/gpt3-175b.yaml --dry-run --rank 37 --draw pictures\n\n"
      "SIGTERM, SIGINT, SIGUSR1 and trainer.max_time end the step, save, and exit with 75: run the same command again "
      "with\n"
      "exp_manager.resume_if_exists=true to continue.");
  const auto options = std::make_shared<TrainOptions>();
  options->config.add_to(*verb);
  options->ranks.add_to(*verb);
  CLI::Option* dry_run = verb->add_flag("--dry-run", options->dry_run,
                                        "print config, parameter count, FLOPs, layout, schedule and memory, then stop");
  verb->add_option("--rank", options->rank, "with --dry-run: print what this rank holds and whom it works with")
      ->needs(dry_run);
  verb->add_option(
          "--draw", options->pictures,
          "with --dry-run: write pictures of the ranks, the schedule and the division of samples to this folder")
      ->needs(dry_run);
  verb->add_flag("--compile-only", options->compile_only,
                 "choose and keep the GPU plans that this training needs, then stop");
  add_checkpoint_flags(*verb, options);
  verb->add_flag("--help-config", options->help_config, "list every config key");
  verb->callback([options, &run] { run = [options] { return run_train(*options); }; });
}

}  // namespace megalith::cli
