#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/order/dataset.h"
#include "data/order/index_cache.h"
#include "data/order/splits.h"

namespace megalith::data {

// Samples that a run asks of a split, as Megatron counts them: train takes max_steps x global batch; valid takes
// limit_val_batches x global batch for each of its max_steps / val_check_interval + 1 validations; test takes one.
// The train count is the run's horizon when it starts; a resumed run passes the one in its checkpoint instead.
int64_t samples_wanted(const config::Run& run, Split split);

// The dataset of one split of `model.data`: what data_prefix names (blend.h), or mock data (split 1,1,1). Indices
// are built on all cores that the run may use, and kept in index_mapping_dir where one is set. User errors: no file, a
// split without sequences, weights that are none.
std::unique_ptr<Dataset> make_dataset(const config::Run& run, Split split, Vocabulary vocabulary, int64_t horizon);
// The same, with a cache whose counts the caller wants to see.
std::unique_ptr<Dataset> make_dataset(const config::Run& run, Split split, Vocabulary vocabulary, int64_t horizon,
                                      std::shared_ptr<const IndexCache> cache);

// All prefixes in `model.data.data_prefix`, patterns expanded; those of the training split where each split has its
// own.
std::vector<std::string> data_prefixes(const config::Data& data);

// Those of all splits, each once.
std::vector<std::string> prefixes_of_all_splits(const config::Data& data);

// The one prefix in `model.data.data_prefix`: [prefix] or [weight, prefix]. User error if there are more.
std::string single_prefix(const config::Data& data);

// What is blended: a source of sequences, the part of it that a split uses, and what identifies it in a cache.
struct BlendSource {
  std::shared_ptr<const SequenceSource> source;
  SequenceRange range;
  IndexKey content;
};

struct BlendOptions {
  std::vector<double> weights;  // as given; empty: each source is passed once a round
  Vocabulary vocabulary;
  int64_t sequence_length = 0;
  int64_t horizon = 0;
  uint32_t seed = 0;
  int threads = 1;
  std::shared_ptr<const IndexCache> cache;
};

// Builds the orders of all sources in parallel, and their blend.
std::unique_ptr<Dataset> make_blend(const std::vector<BlendSource>& sources, const BlendOptions& options);

}  // namespace megalith::data
