#include "data/order/make_dataset.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/thread_pool.h"
#include "data/files/indexed_dataset.h"
#include "data/order/blend.h"
#include "data/order/blended_dataset.h"
#include "data/order/mock_sequences.h"

namespace megalith::data {

int64_t samples_wanted(const config::Run& run, Split split) {
  const int64_t batch = run.model.global_batch_size;
  const int64_t per_validation = run.trainer.limit_val_batches * batch;
  switch (split) {
    case Split::train:
      return run.trainer.max_steps * batch;
    case Split::valid:
      if (run.trainer.val_check_interval <= 0) return per_validation;
      return (run.trainer.max_steps / run.trainer.val_check_interval + 1) * per_validation;
    case Split::test:
      return per_validation;
  }
  return 0;
}

std::vector<std::string> data_prefixes(const config::Data& data) {
  return parse_data_prefix(data.data_prefix).prefixes;
}

std::vector<std::string> prefixes_of_all_splits(const config::Data& data) {
  std::vector<std::string> all = data_prefixes(data);
  for (const auto* list : {&data.validation_prefix, &data.test_prefix}) {
    if (list->empty()) continue;
    for (std::string& prefix : parse_data_prefix(*list).prefixes) {
      if (std::find(all.begin(), all.end(), prefix) == all.end()) all.push_back(std::move(prefix));
    }
  }
  return all;
}

namespace {
bool has_lists_by_split(const config::Data& data) {
  return !data.validation_prefix.empty() || !data.test_prefix.empty();
}

bool holds_out_files(const config::Data& data) {
  return data.validation_files != 0 || data.test_files != 0;
}

// What a split reads: whole datasets, or its part of each.
DataSources sources_of(const config::Data& data, Split split) {
  if (!has_lists_by_split(data)) {
    const DataSources all = parse_data_prefix(data.data_prefix);
    return holds_out_files(data) ? files_of_split(all, split, data.validation_files, data.test_files) : all;
  }
  if (holds_out_files(data)) {
    user_error(
        "model.data.validation_files and test_files hold out datasets of one list; with model.data.validation_prefix "
        "and test_prefix each split has a list of its own");
  }
  switch (split) {
    case Split::train:
      return parse_data_prefix(data.data_prefix);
    case Split::valid:
      return parse_data_prefix(data.validation_prefix, "model.data.validation_prefix");
    case Split::test:
      return parse_data_prefix(data.test_prefix, "model.data.test_prefix");
  }
  return {};
}
}  // namespace

std::string single_prefix(const config::Data& data) {
  if (has_lists_by_split(data)) user_error("each split has datasets of its own where one for all is expected");
  std::vector<std::string> prefixes = data_prefixes(data);
  if (prefixes.size() > 1) {
    user_error("model.data.data_prefix names {} datasets where one is expected", prefixes.size());
  }
  return std::move(prefixes.front());
}

namespace {
// Every dataset keeps its `.bin` open, and shells allow 1024 files by default.
void allow_open_files(size_t datasets) {
  constexpr rlim_t kOthers = 256;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= datasets + kOthers) return;
  const rlim_t wanted = datasets + kOthers;
  if (limit.rlim_max < wanted) {
    user_error("{} datasets need {} open files and the limit is {}: raise it (ulimit -Hn), or merge datasets", datasets,
               wanted, limit.rlim_max);
  }
  limit.rlim_cur = wanted;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) io_error_errno("cannot raise the limit of open files");
}

BlendSource open_source(const std::string& prefix, const IndexCache* cache) {
  if (!cache) return {.source = std::make_shared<IndexedDataset>(prefix)};
  const std::filesystem::path index_path = prefix + ".idx";
  if (const auto stamp = cache->find_stamp(index_path)) {
    const IndexedDatasetOptions options{.known_tokens = stamp->tokens};
    return {.source = std::make_shared<IndexedDataset>(prefix, options), .content = stamp->content};
  }
  const auto dataset = std::make_shared<IndexedDataset>(prefix);
  const IndexKey content = dataset->content_hash();
  cache->put_stamp(index_path, {.content = content, .tokens = dataset->tokens()});
  return {.source = dataset, .content = content};
}

void check_sequences(const SequenceSource& source) {
  if (source.sequences() <= std::numeric_limits<int32_t>::max()) return;
  data_error("{} has {} sequences; at most 2^31 - 1 are supported, as in Megatron", source.name(), source.sequences());
}

SequenceRange range_of(const SequenceSource& source, const std::string& shares, Split split) {
  const SequenceRange range = Splits(shares).range(split, source.sequences());
  if (range.size() == 0) {
    user_error("model.data.splits_string \"{}\" leaves the {} split of {} without one of its {} sequences", shares,
               name_of(split), source.name(), source.sequences());
  }
  return range;
}

std::vector<BlendSource> open_sources(const config::Data& data, const DataSources& names, bool whole, Split split,
                                      ThreadPool& pool, const IndexCache* cache) {
  allow_open_files(names.prefixes.size());
  std::vector<BlendSource> sources(names.prefixes.size());
  pool.run(std::ssize(sources), [&](int64_t i) {
    BlendSource& source = sources[static_cast<size_t>(i)];
    source = open_source(names.prefixes[static_cast<size_t>(i)], cache);
    check_sequences(*source.source);
    source.range =
        whole ? SequenceRange{0, source.source->sequences()} : range_of(*source.source, data.splits_string, split);
  });
  return sources;
}
}  // namespace

std::unique_ptr<Dataset> make_blend(const std::vector<BlendSource>& sources, const BlendOptions& options) {
  MEGALITH_CHECK(!sources.empty() && (options.weights.empty() || options.weights.size() == sources.size()),
                 "{} sources, {} weights", sources.size(), options.weights.size());
  // A lone dataset without a weight is no blend. With a weight it is one to Megatron, with 0.5 % to spare, unless its
  // split has a list of its own (make_dataset drops the weight there).
  const bool alone = sources.size() == 1 && options.weights.empty();
  BlendShares blend;
  if (alone) {
    blend.requests = {options.horizon};
  } else if (options.weights.empty()) {
    blend.requests.assign(sources.size(), 0);  // one epoch
  } else {
    blend = shares_of_blend(options.weights, options.horizon);
  }

  std::vector<std::unique_ptr<Dataset>> datasets(sources.size());
  ThreadPool pool(static_cast<int>(std::min<int64_t>(options.threads, std::ssize(sources))));
  pool.run(std::ssize(sources), [&](int64_t i) {
    const BlendSource& source = sources[static_cast<size_t>(i)];
    datasets[static_cast<size_t>(i)] = std::make_unique<GptDataset>(
        source.source, GptDataset::Options{.range = source.range,
                                           .vocabulary = options.vocabulary,
                                           .sequence_length = options.sequence_length,
                                           .horizon = blend.requests[static_cast<size_t>(i)],
                                           .seed = options.seed,
                                           .cache = options.cache,
                                           .content = source.content});
  });
  if (alone) return std::move(datasets.front());

  std::vector<int64_t> limits;
  if (options.weights.empty()) {
    std::vector<double> sizes;
    int64_t total = 0;
    for (const auto& dataset : datasets) {
      limits.push_back(dataset->size());
      sizes.push_back(static_cast<double>(dataset->size()));
      total += dataset->size();
    }
    for (const double size : sizes) blend.weights.push_back(size / static_cast<double>(total));
    blend.samples = std::max(options.horizon, total);
  }
  return std::make_unique<BlendedDataset>(
      std::move(datasets),
      BlendedDataset::Options{
          .weights = blend.weights, .limits = std::move(limits), .samples = blend.samples, .cache = options.cache});
}

std::unique_ptr<Dataset> make_dataset(const config::Run& run, Split split, Vocabulary vocabulary, int64_t horizon) {
  std::shared_ptr<const IndexCache> cache;
  const std::string& directory = run.model.data.index_mapping_dir;
  if (!directory.empty() && run.model.data.data_impl == config::DataImpl::mmap)
    cache = std::make_shared<const IndexCache>(directory);
  return make_dataset(run, split, vocabulary, horizon, std::move(cache));
}

std::unique_ptr<Dataset> make_dataset(const config::Run& run, Split split, Vocabulary vocabulary, int64_t horizon,
                                      std::shared_ptr<const IndexCache> cache) {
  const config::Data& data = run.model.data;
  const int64_t seed = run.model.seed;
  if (seed < 0 || seed > std::numeric_limits<uint32_t>::max()) {
    user_error("model.seed is {}: the sample order needs one from 0 to {}", seed, std::numeric_limits<uint32_t>::max());
  }
  BlendOptions options{
      .vocabulary = vocabulary,
      .sequence_length = data.seq_length > 0 ? data.seq_length : run.model.encoder_seq_length,
      .horizon = horizon,
      .seed = static_cast<uint32_t>(seed),
      .threads = run.trainer.cpu_threads > 0 ? static_cast<int>(run.trainer.cpu_threads) : available_cores(),
      .cache = std::move(cache)};
  if (data.data_impl == config::DataImpl::mock) {
    const auto mock = std::make_shared<MockSequences>(vocabulary);
    options.cache = nullptr;
    return make_blend({{.source = mock, .range = range_of(*mock, "1,1,1", split)}}, options);
  }
  if (data.data_impl != config::DataImpl::mmap)
    user_error("model.data.data_impl is \"{}\": expected mmap or mock", word_of(data.data_impl));

  const DataSources names = sources_of(data, split);
  const bool whole = has_lists_by_split(data) || holds_out_files(data);
  // As in Megatron: the only dataset of a split's own list is not blended, whatever its weight.
  if (!whole || names.prefixes.size() > 1) options.weights = names.weights;
  ThreadPool pool(options.threads);
  return make_blend(open_sources(data, names, whole, split, pool, options.cache.get()), options);
}

}  // namespace megalith::data
