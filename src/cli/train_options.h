#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/config_options.h"
#include "cli/rank_options.h"
#include "train/run/session.h"

namespace megalith::cli {

struct TrainOptions {
  ConfigOptions config;
  RankOptions ranks;
  train::StartOptions start;
  bool dry_run = false;
  bool require_files = false;
  std::optional<int64_t> rank;  // that a dry run is to describe
  std::string pictures;         // the folder for those of a dry run; empty: none
  bool compile_only = false;
  bool print_config = false;
  bool help_config = false;
};

void add_train_options(CLI::App& verb, const std::shared_ptr<TrainOptions>& options);

// What so many ranks on so many machines set, before anything else that a command says.
std::vector<std::string> overrides_of_ranks(int64_t ranks_per_machine, int64_t machines);

// User error where a command says neither what to train nor on what.
void require_recipe_or_data(const TrainOptions& options, const config::Run& run);

}  // namespace megalith::cli
