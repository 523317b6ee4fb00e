#include <CLI/CLI.hpp>
#include <memory>

#include "cli/accepts.h"
#include "cli/plan/plan_layouts.h"
#include "cli/plan/plan_table.h"
#include "cli/verbs.h"
#include "core/error.h"

namespace megalith::cli {

namespace {

struct PlanOptions {
  PlanLayoutsOptions layouts;
  PlanTableOptions table;
};

// Options that this way to ask does not heed would be left out silently.
void refuse_options(const char* why, const std::vector<std::pair<const char*, bool>>& given) {
  for (const auto& [name, is_given] : given) {
    if (is_given) user_error("{} {}: leave it out", name, why);
  }
}

void check_combination(const PlanOptions& options) {
  const PlanLayoutsOptions& l = options.layouts;
  const bool of_table = !options.table.table.empty();
  if (!of_table)
    refuse_options("is for --table",
                   {{"--out", !options.table.predictions.empty()}, {"--constants", !options.table.constants.empty()}});
  const std::vector<std::pair<const char*, bool>> answers{{"--write", !l.write.empty()},
                                                          {"--html", !l.html.empty()},
                                                          {"--as-is", l.as_is},
                                                          {"--explain", l.explain},
                                                          {"--deadline", l.deadline_days > 0}};
  if (of_table) {
    refuse_options("is of a recipe, and --table predicts its own runs", answers);
    refuse_options("says nothing of --table's runs", {{"--gpus", !l.gpus.empty()},
                                                      {"--check", !l.check.empty()},
                                                      {"--rates", !l.rates.empty()},
                                                      {"--wire", !l.wire.empty()},
                                                      {"--network", !l.network.empty()}});
  }
  if (!l.check.empty()) {
    refuse_options("is of a recipe, and --check takes the run as it trained", answers);
    refuse_options("is known of the run that --check reads", {{"--gpus", !l.gpus.empty()}});
  }
  if (l.deadline_days > 0)
    refuse_options("cannot be beside --deadline, which only looks for a number of GPUs", {{"--gpus", !l.gpus.empty()},
                                                                                          {"--write", !l.write.empty()},
                                                                                          {"--html", !l.html.empty()},
                                                                                          {"--as-is", l.as_is},
                                                                                          {"--explain", l.explain}});
}

int run_plan(const PlanOptions& options) {
  check_combination(options);
  if (!options.table.table.empty()) {
    if (!options.layouts.config.files.empty())
      user_error("--table predicts its own runs: give it or a recipe, not both");
    return plan_table(options.table);
  }
  if (!options.layouts.check.empty()) {
    if (!options.layouts.config.files.empty()) user_error("--check takes the config of the run: leave -c out");
    return plan_check(options.layouts);
  }
  if (options.layouts.config.files.empty())
    user_error("plan what? Give a recipe with -c, or published runs with --table");
  return plan_layouts(options.layouts);
}

void add_cluster_options(CLI::App& verb, PlanLayoutsOptions& options) {
  verb.add_option("--gpus", options.gpus, "how many GPUs (default: those of the config); 256,512 compares two clusters")
      ->type_name("N[,N...]");
  verb.add_option("--gpu", options.gpu,
                  "which: a100, h100, h200, b200, gb200, ..., or one of --hardware; h100,h200 compares")
      ->type_name("NAME[,NAME...]")
      ->capture_default_str();
  verb.add_option("--rates", options.rates,
                  "what `bench step --csv` wrote on these GPUs, of whole models or --as-rank (default: our rates of an "
                  "H200)")
      ->type_name("FILE[,FILE...]");
  verb.add_option(
          "--wire", options.wire,
          "what `bench comm --csv` wrote in a node and between nodes of this cluster, or the wire of `bench step "
          "--as-rank`, such as h100 (default: data sheets)")
      ->type_name("NAME|FILE[,FILE...]");
  verb.add_option("--network", options.network,
                  "between nodes, such as roce-8x400 (default: the usual one of the GPU)");
  verb.add_option("--headroom", options.headroom, "share of a GPU's memory that stays free")
      ->check(between_real(0, 0.9))
      ->capture_default_str();
  verb.add_option("--max-tp", options.most_tensor, "largest tensor-parallel size (default: the GPUs of a node)")
      ->check(at_least(1));
}

void add_price_options(CLI::App& verb, PlanLayoutsOptions& options) {
  plan::Circumstances& c = options.circumstances;
  verb.add_option("--tokens", c.tokens, "tokens to train on (default: those of trainer.max_steps)")->check(above(0));
  verb.add_option("--price", c.price, "of an hour of one GPU")->check(at_least_real(0));
  verb.add_option("--failures", c.failures, "per 1000 days of a node")->check(at_least_real(0))->capture_default_str();
  verb.add_option("--detection", c.detection_s, "seconds until a failure is noticed")
      ->check(at_least_real(0))
      ->capture_default_str();
  verb.add_option("--restart", c.restart_s, "seconds from there until training goes on, without loading")
      ->check(at_least_real(0))
      ->capture_default_str();
  verb.add_option("--file-system", c.file_system_gb_s, "GB/s that the storage of checkpoints writes and reads")
      ->check(above(0))
      ->capture_default_str();
  verb.add_option("--deadline", options.deadline_days, "how many GPUs train --tokens in so many days?")
      ->check(above(0));
}

void add_answer_options(CLI::App& verb, PlanOptions& options) {
  verb.add_flag("--as-is", options.layouts.as_is, "no search: the config's own layout");
  verb.add_flag("--explain", options.layouts.explain, "where each ms goes, and what the next best lose");
  verb.add_option("--check", options.layouts.check, "a run that trained: what is predicted of it beside its logs")
      ->type_name("RUN");
  verb.add_option("--write", options.layouts.write, "write the best layout as a recipe of overrides")
      ->type_name("FILE");
  verb.add_option("--html", options.layouts.html, "write what was found as a page for a browser")->type_name("FILE");
  verb.add_option("--top", options.layouts.shown, "layouts to show")->check(between(1, 100))->capture_default_str();
  verb.add_option("--table", options.table.table, "predict the runs of this CSV file; docs/planning.md has its columns")
      ->type_name("FILE");
  verb.add_option("--out", options.table.predictions, "write the predictions of --table to this CSV file")
      ->type_name("FILE");
  verb.add_option("--constants", options.table.constants,
                  "for --table: replace fitted constants by those of this CSV file (name,value)")
      ->type_name("FILE");
}

}  // namespace

void add_plan(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "plan",
      "What a run will take, before it runs: memory, step time, days and money, and which layout is best.\n\n"
      "  megalith plan -c recipes/llama3.1-70b.yaml --gpus 512 --gpu h100\n"
      "  megalith plan -c recipes/llama3.1-70b.yaml --gpus 512 model.tensor_model_parallel_size=8 --explain\n"
      "  megalith plan -c recipes/gpt3-175b.yaml --as-is --tokens 300e9 --price 2.5\n"
      "  megalith plan -c recipes/llama3.1-8b.yaml --gpus 64 --gpu h200 --write best.yaml\n\n"
      "Keys of the command line keep their values; the rest of the layout is searched. No GPU is needed.");
  const auto options = std::make_shared<PlanOptions>();
  options->layouts.config.add_to(*verb);
  add_cluster_options(*verb, options->layouts);
  add_answer_options(*verb, *options);
  add_price_options(*verb, options->layouts);
  verb->add_option("--hardware", options->table.hardware, "add or change accelerators and networks (YAML)")
      ->type_name("FILE");
  verb->callback([options, &run] {
    options->layouts.hardware = options->table.hardware;
    run = [options] { return run_plan(*options); };
  });
}

}  // namespace megalith::cli
