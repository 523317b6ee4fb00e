#pragma once

#include "config/run_config.h"
#include "parallel/layout_check.h"

namespace megalith::plan {

// From the user's words to parallel's. `run` is validated; only check_layout() says whether the layout can work.

parallel::Layout layout_of(const config::Run& run);
parallel::LayoutDemands demands_of(const config::Run& run, int64_t padded_vocabulary);
// Elements of a gradient bucket: model.optim.bucket_cap_mb.
int64_t bucket_elements_of(const config::Run& run);

// Before anything is allocated: a user error with every reason why the run's layout cannot work, and the nearest
// layouts that would. `vocabulary`: before padding.
void check_layout(const config::Run& run, int64_t vocabulary);

// A user error where the ranks that were started are not those that the config is for.
void check_ranks(const config::Run& run, int64_t started);

// The same model on one rank.
config::Run on_one_rank(config::Run run);

}  // namespace megalith::plan
