#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/config_options.h"
#include "plan/price.h"

namespace megalith::cli {

// `plan -c RECIPE`
struct PlanLayoutsOptions {
  ConfigOptions config;
  std::string gpus;  // "256,512"; empty: those of the config
  std::string gpu = "h100";
  std::string network;             // empty: the usual one of the GPU
  std::filesystem::path hardware;  // empty: what ships
  std::string rates;               // files of `bench step --csv` with commas; empty: what ships, of an H200
  std::string wire;                // files of `bench comm --csv` with commas; empty: data sheets
  std::filesystem::path check;     // a run's directory
  bool as_is = false;
  bool explain = false;
  std::filesystem::path write;
  std::filesystem::path html;
  double headroom = 0.03;
  int64_t most_tensor = 0;
  int64_t shown = 10;
  double deadline_days = 0.0;  // 0: none
  plan::Circumstances circumstances;
};

// `plan --check RUN`: what would have been predicted of it, beside its logs.
int plan_check(const PlanLayoutsOptions& options);
int plan_layouts(const PlanLayoutsOptions& options);

}  // namespace megalith::cli
