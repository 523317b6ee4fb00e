#pragma once

#include "config/load.h"
#include "config/validate.h"
#include "data/tokenizer/tokenizer.h"
#include "plan/search/search.h"
#include "repository.h"

namespace megalith::testing {

inline plan::SearchRequest planned_recipe(const std::string& name, int64_t gpus, const std::string& gpu,
                                          std::vector<std::string> overrides = {}) {
  overrides.push_back("trainer.accelerator=gpu");
  overrides.push_back("trainer.precision=bf16");
  config::Run run = config::load(std::vector{in_repository("recipes") / (name + ".yaml")}, overrides);
  config::validate(run);
  const cost::Hardware hardware;
  const cost::Accelerator& accelerator = hardware.accelerator(gpu);
  const int64_t vocabulary = data::vocabulary_of(run.model.tokenizer).size;
  return {.run = std::move(run),
          .vocabulary = vocabulary,
          .cluster = {.gpu = accelerator, .network = hardware.network(accelerator.network), .gpus = gpus}};
}

}  // namespace megalith::testing
