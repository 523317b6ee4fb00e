#include "cli/plan/nearest_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/words.h"
#include "plan/search/layout_facts.h"

namespace megalith::cli {

namespace {

using plan::SearchRequest;
using plan::SearchResult;

// Keys that the search would choose.
const std::set<std::string> kLayoutKeys{"model.tensor_model_parallel_size",
                                        "model.pipeline_model_parallel_size",
                                        "model.virtual_pipeline_model_parallel_size",
                                        "model.context_parallel_size",
                                        "model.num_layers_in_first_pipeline_stage",
                                        "model.num_layers_in_last_pipeline_stage",
                                        "model.account_for_embedding_in_pipeline_split",
                                        "model.account_for_loss_in_pipeline_split",
                                        "model.sequence_parallel",
                                        "model.pipeline_schedule",
                                        "model.wrap_with_zero",
                                        "model.fsdp",
                                        "model.micro_batch_size",
                                        "model.activations_checkpoint_granularity"};

bool works(SearchRequest request) {
  request.shown = 1;
  request.finds_front = false;
  return !plan::search_layouts(request).best.empty();
}

// By how many times they are off.
std::vector<int64_t> nearest_first(const std::set<int64_t>& numbers, int64_t asked) {
  std::vector<int64_t> sorted(numbers.begin(), numbers.end());
  const auto off = [&](int64_t number) {
    return std::abs(std::log(static_cast<double>(number) / static_cast<double>(asked)));
  };
  std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) { return off(a) < off(b); });
  return sorted;
}

// Whole nodes: the next ones, powers of two and doubles. Where memory lacks, more.
std::vector<int64_t> other_numbers(const SearchRequest& request, bool needs_memory) {
  constexpr int64_t kMostTimes = 64;
  const int64_t asked = request.cluster.gpus;
  const int64_t node = request.cluster.gpus_per_node();
  std::set<int64_t> numbers{asked - node, asked + node, asked * 3 / 2 / node * node};
  for (int64_t gpus = node; gpus <= kMostTimes * asked; gpus *= 2) numbers.insert(gpus);
  for (int64_t times = 2; times <= kMostTimes; times *= 2) numbers.insert(asked * times);
  for (int64_t sixteenths = 1; sixteenths < 16; ++sixteenths) numbers.insert(asked * sixteenths / 16 / node * node);
  std::erase_if(numbers, [&](int64_t gpus) {
    const bool is_whole_nodes = gpus <= request.cluster.gpu.per_node || gpus % request.cluster.gpu.per_node == 0;
    return gpus < 1 || gpus == asked || !is_whole_nodes || (needs_memory && gpus < asked);
  });
  return nearest_first(numbers, asked);
}

// Multiples of what data-parallel sizes may be, and doubles.
std::vector<int64_t> other_batches(const SearchRequest& request) {
  constexpr int64_t kMostTimes = 64;
  const int64_t asked = request.run.model.global_batch_size;
  std::set<int64_t> batches;
  for (int64_t times = 2; times <= kMostTimes; times *= 2) batches.insert(asked * times);
  for (int64_t copy = 1; copy <= request.cluster.gpus; copy *= 2) {
    if (request.cluster.gpus % copy != 0) break;
    const int64_t replicas = request.cluster.gpus / copy;
    batches.insert(asked / replicas * replicas);
    batches.insert((asked / replicas + 1) * replicas);
  }
  std::erase_if(batches, [&](int64_t batch) { return batch < 1 || batch == asked; });
  return nearest_first(batches, asked);
}

std::string pinned_layout(const SearchRequest& request) {
  std::vector<std::string> keys;
  for (const std::string& key : request.pinned) {
    if (kLayoutKeys.contains(key)) keys.push_back(key);
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

// What works instead; empty where nothing was found.
std::string what_works(const SearchRequest& request, bool needs_memory) {
  std::vector<std::string> found;
  SearchRequest tried = request;
  if (!pinned_layout(request).empty()) {
    for (const std::string& key : kLayoutKeys) tried.pinned.erase(key);
    if (works(tried)) found.push_back("it works if " + pinned_layout(request) + " may change");
    tried = request;
  }
  for (const int64_t gpus : other_numbers(request, needs_memory)) {
    tried.cluster.gpus = gpus;
    if (!works(tried)) continue;
    found.push_back(fmt::format("{} GPUs work", gpus));
    break;
  }
  tried.cluster.gpus = request.cluster.gpus;
  for (const int64_t batch : needs_memory ? std::vector<int64_t>{} : other_batches(request)) {
    tried.run.model.global_batch_size = batch;
    if (!works(tried)) continue;
    found.push_back(fmt::format("model.global_batch_size={} works", batch));
    break;
  }
  return fmt::format("{}", fmt::join(found, "; "));
}

}  // namespace

void refuse(const SearchRequest& request, const SearchResult& result) {
  const std::string found = what_works(request, result.possible > 0);
  const std::string advice =
      found.empty() ? "no other number of GPUs and no other batch helps: use a smaller model" : found;
  const std::string kept =
      pinned_layout(request).empty() ? "" : fmt::format(" with {} as given", pinned_layout(request));
  const std::vector<int64_t>& ramp = request.run.model.rampup_batch_size;
  const std::string growing = ramp.empty() ? "" : fmt::format(" (growing from {} by {})", ramp[0], ramp[1]);
  if (result.possible == 0)
    user_error("no layout{} divides a batch of {}{} and {} layers over {} GPUs: {}", kept,
               request.run.model.global_batch_size, growing, request.run.model.num_layers, request.cluster.gpus,
               advice);
  const int64_t usable = plan::usable_bytes(request.cluster.gpu, request.headroom);
  user_error("none of {} layouts{} on {} {} fits its {}{}: {}", result.possible, kept, request.cluster.gpus,
             request.cluster.gpu.name, bytes_in_words(static_cast<double>(usable)),
             result.smallest.empty()
                 ? std::string()
                 : fmt::format(" (the least of those rehearsed needs {})",
                               bytes_in_words(static_cast<double>(result.smallest[0].memory.total()))),
             advice);
}

void refuse_own_layout(const SearchRequest& request, const plan::PlannedLayout& own) {
  SearchRequest tried = request;
  tried.shown = 1;
  tried.pinned = kLayoutKeys;
  tried.pinned.erase("model.micro_batch_size");
  tried.pinned.erase("model.activations_checkpoint_granularity");
  const SearchResult found = plan::search_layouts(tried);
  std::string advice = "plan without --as-is to find one that fits";
  if (!found.best.empty()) {
    // The fastest, whichever tie leaves more memory free: it is nearer to what was asked for.
    const plan::PlannedLayout& fits = found.fastest ? *found.fastest : found.best[0];
    advice = fmt::format("model.micro_batch_size={} model.activations_checkpoint_granularity={} fits, with {}",
                         fits.candidate.micro_batch, plan::word_of(fits.candidate.recompute),
                         bytes_in_words(static_cast<double>(fits.memory.total())));
  }
  user_error("this layout needs {}, and {} has {} ({:g} % of it kept free): {}",
             bytes_in_words(static_cast<double>(own.memory.total())), request.cluster.gpu.name,
             bytes_in_words(static_cast<double>(plan::usable_bytes(request.cluster.gpu, 0))), 100 * request.headroom,
             advice);
}

}  // namespace megalith::cli
