#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/config_options.h"
#include "cli/data/data_verbs.h"
#include "core/clock.h"
#include "core/error.h"
#include "data/order/make_dataset.h"
#include "data/tokenizer/data_tokenizer.h"
#include "data/tokenizer/tokenizer.h"

namespace megalith::cli {

namespace {

void build(const config::Run& run, data::Split split, int64_t horizon, const std::shared_ptr<data::IndexCache>& cache) {
  const data::IndexCache::Counts before = cache->counts();
  const double begin = monotonic_seconds();
  const auto dataset = data::make_dataset(run, split, data::vocabulary_of(run.model.tokenizer), horizon, cache);
  const data::IndexCache::Counts after = cache->counts();
  std::cout << fmt::format(
      "{:<6} {} samples asked for, {} in order; {} indices built, {} found, {:.1f} MB written in {:.1f} s\n",
      data::name_of(split), horizon, dataset->size(), after.built - before.built, after.reused - before.reused,
      static_cast<double>(after.bytes_written - before.bytes_written) / 1e6, monotonic_seconds() - begin);
}

int run_index(const ConfigOptions& options) {
  const config::Run run = options.load();
  const config::Data& data = run.model.data;
  if (data.index_mapping_dir.empty()) {
    user_error("model.data.index_mapping_dir is not set: give the directory where training will look for the indices");
  }
  if (data.data_impl != config::DataImpl::mmap)
    user_error("model.data.data_impl={} has no indices to keep", word_of(data.data_impl));
  data::check_tokenizer_of_data(data, run.model.tokenizer);
  const auto cache = std::make_shared<data::IndexCache>(data.index_mapping_dir);
  build(run, data::Split::train, data::samples_wanted(run, data::Split::train), cache);
  if (run.trainer.val_check_interval > 0 && run.trainer.limit_val_batches > 0) {
    build(run, data::Split::valid, data::samples_wanted(run, data::Split::valid), cache);
  }
  std::cout << fmt::format("indices are in {}\n", cache->directory().string());
  return kExitComplete;
}

}  // namespace

void add_data_index(CLI::App& data, Action& run) {
  CLI::App* index = data.add_subcommand(
      "index",
      "Build the indices of a training run before it starts.\n\n"
      "  megalith data index -c recipes/gpt3-175b.yaml model.data.data_prefix=[data/*_text_document] \\\n"
      "    model.data.index_mapping_dir=/shared/indices");
  const auto options = std::make_shared<ConfigOptions>();
  options->add_to(*index);
  index->callback([options, &run] { run = [options] { return run_index(*options); }; });
}

}  // namespace megalith::cli
