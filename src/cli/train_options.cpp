#include "cli/train_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/accepts.h"
#include "core/error.h"

namespace megalith::cli {

namespace {

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

}  // namespace

void add_train_options(CLI::App& verb, const std::shared_ptr<TrainOptions>& options) {
  options->config.add_to(verb);
  options->ranks.add_to(verb);
  CLI::Option* dry_run =
      verb.add_flag("--dry-run", options->dry_run,
                    "print a summary of the config, parameter count, FLOPs, layout, schedule and memory, "
                    "and what files are missing here, then stop");
  verb.add_flag("--require-files", options->require_files,
                "with --dry-run: exit with 2 where a tokenizer or data file is missing or cannot be used")
      ->needs(dry_run);
  verb.add_option("--rank", options->rank, "with --dry-run: print what this rank holds and whom it works with")
      ->check(at_least(0))
      ->needs(dry_run);
  verb.add_option(
          "--draw", options->pictures,
          "with --dry-run: write pictures of the ranks, the schedule and the division of samples to this folder")
      ->needs(dry_run);
  verb.add_flag("--resume-with-other-data", options->start.resume_with_other_data,
                "continue a run although its data are not those of its checkpoint");
  verb.add_flag("--compile-only", options->compile_only,
                "choose and keep the GPU algorithms that this training needs, then stop");
  add_checkpoint_flags(verb, options);
  verb.add_flag("--print-config", options->print_config, "print the whole config as YAML, then stop");
  verb.add_flag("--help-config", options->help_config, "list every config key");
}

std::vector<std::string> overrides_of_ranks(int64_t ranks_per_machine, int64_t machines) {
  return {fmt::format("trainer.devices={}", ranks_per_machine), fmt::format("trainer.num_nodes={}", machines)};
}

void require_recipe_or_data(const TrainOptions& options, const config::Run& run) {
  if (!options.config.files.empty() || run.model.data.data_impl != config::DataImpl::mmap ||
      !run.model.data.data_prefix.empty())
    return;
  user_error(
      "no recipe and no data: give a recipe with -c, for example megalith train -c recipes/demo.yaml, or "
      "model.data.data_prefix=[PREFIX]");
}

}  // namespace megalith::cli
