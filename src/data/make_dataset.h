#pragma once

#include <memory>

#include "config/run_config.h"
#include "data/dataset.h"
#include "data/splits.h"

namespace megalith::data {

// Samples that a run asks of a split, as Megatron counts them: train takes max_steps x global batch; valid takes
// limit_val_batches x global batch for each of its max_steps / val_check_interval + 1 validations; test takes one.
// The train count is the run's horizon when it starts; a resumed run passes the one in its checkpoint instead.
int64_t samples_wanted(const config::Run& run, Split split);

// The dataset of one split of `model.data`: the `.idx/.bin` pair of data_prefix, or mock data (split 1,1,1). User
// errors: no or several datasets, no file, a split without sequences.
std::unique_ptr<Dataset> make_dataset(const config::Run& run, Split split, Vocabulary vocabulary, int64_t horizon);

// The one prefix in `model.data.data_prefix`: [prefix] or [weight, prefix].
std::string single_prefix(const config::Data& data);

}  // namespace megalith::data
