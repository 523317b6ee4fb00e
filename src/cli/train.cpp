#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/config_options.h"
#include "cli/verbs.h"
#include "config/print.h"
#include "data/tokenizer.h"
#include "train/describe.h"
#include "train/plan_files.h"
#include "train/session.h"

namespace megalith::cli {

namespace {

struct TrainOptions {
  ConfigOptions config;
  bool dry_run = false;
  bool compile_only = false;
  bool help_config = false;
};

int run_train(const TrainOptions& options) {
  if (options.help_config) {
    std::cout << config::describe_keys();
    return kExitComplete;
  }
  config::LoadReport report;
  const config::Run run = options.config.load(&report);
  if (options.dry_run) {
    std::cout << config::to_yaml(run) << config::describe(report)
              << train::describe_model(run, data::vocabulary_of(run.model.tokenizer).size);
    return kExitComplete;
  }
  if (options.compile_only) {
    const ops::PlanCounts plans = train::compile(run);
    const int64_t successful = plans.made + plans.loaded;
    std::cout << fmt::format("Total graphs: {}\nTotal successful compilations: {}\nTotal failed compilations: {}\n",
                             successful + plans.failed, successful, plans.failed);
    return kExitComplete;
  }
  const train::Summary summary = train::train(run, report);
  return summary.ending == train::Ending::complete ? kExitComplete : kExitRunAgain;
}

}  // namespace

void add_train(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "train",
      "Train a model, or continue training it.\n\n"
      "  megalith train -c recipes/demo.yaml\n"
      "  megalith train -c recipes/gpt3-125m.yaml trainer.max_steps=100 exp_manager.explicit_log_dir=runs/mine\n"
      "  megalith train -c recipes/gpt3-175b.yaml --dry-run\n\n"
      "SIGTERM, SIGINT and trainer.max_time end the step, save, and exit with 75: run the same command again with\n"
      "exp_manager.resume_if_exists=true to continue.");
  const auto options = std::make_shared<TrainOptions>();
  options->config.add_to(*verb);
  verb->add_flag("--dry-run", options->dry_run, "print config, parameter count, FLOPs and memory, then stop");
  verb->add_flag("--compile-only", options->compile_only,
                 "choose and keep the GPU plans that this training needs, then stop");
  verb->add_flag("--help-config", options->help_config, "list every config key");
  verb->callback([options, &run] { run = [options] { return run_train(*options); }; });
}

}  // namespace megalith::cli
