#include "plan/search/search.h"

#include <algorithm>
#include <limits>
#include <span>

#include "config/batch_ramp.h"
#include "config/derived.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "parallel/layer_split.h"
#include "parallel/layout_check.h"
#include "plan/rehearsal.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "plan/search/layout_clock.h"
#include "plan/search/memory_bound.h"
#include "plan/search/preference.h"

namespace megalith::plan {

namespace {

using config::Granularity;
using parallel::LayerSplit;
using parallel::Layout;

constexpr int64_t kMostMicroBatch = 16;
constexpr int64_t kMostContext = 64;
constexpr int64_t kLeastTokensOfRank = 512;
constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
// Rehearsals that are tried before it is said that nothing fits.
constexpr size_t kMostRehearsals = 256;
// Layouts whose order a simulation may change.
constexpr size_t kJudged = 16;

struct Scored {
  Candidate candidate;
  double seconds = 0.0;
  double least_bytes = 0.0;  // the bound of its memory
};

// Sizes that divide `number`, none above `most`.
std::vector<int64_t> divisors(int64_t number, int64_t most) {
  std::vector<int64_t> found;
  for (int64_t size = 1; size <= std::min(number, most); ++size) {
    if (number % size == 0) found.push_back(size);
  }
  return found;
}

// Whether the layout divides every batch of a run, the smaller ones at its start included.
bool divides(const Layout& layout, parallel::LayoutDemands demands, const std::vector<int64_t>& batches) {
  return std::all_of(batches.begin(), batches.end(), [&](int64_t batch) {
    demands.global_batch = batch;
    return parallel::layout_problems(layout, demands).empty();
  });
}

// Every layout that divides, scored in closed form.
class Enumeration {
 public:
  Enumeration(const SearchRequest& request, LayoutClock& clock)
      : request_(request),
        clock_(clock),
        own_(candidate_of(request.run)),
        padded_(config::padded_vocab(request.vocabulary, request.run.model.make_vocab_size_divisible_by)),
        demands_(demands_of(request.run, padded_)),
        batches_(config::BatchRamp(request.run.model).batches()),
        usable_(static_cast<double>(usable_bytes(request.cluster.gpu, request.headroom))) {
    demands_.ranks = request.cluster.gpus;
  }

  std::vector<Scored> scored(SearchResult& counts) {
    const int64_t gpus = request_.cluster.gpus;
    for (const int64_t t : tensor_sizes()) {
      for (const int64_t c : context_sizes(gpus / t)) {
        for (const int64_t p : pipeline_sizes(gpus / (t * c))) with_chunks(t, c, p);
      }
    }
    counts.possible = possible_;
    counts.in_bound = static_cast<int64_t>(scored_.size());
    std::stable_sort(scored_.begin(), scored_.end(),
                     [](const Scored& a, const Scored& b) { return a.seconds < b.seconds; });
    return std::move(scored_);
  }

 private:
  bool is_pinned(const char* key) const { return request_.pinned.contains(key); }

  std::vector<int64_t> pinned_or(const char* key, int64_t own, std::vector<int64_t> sizes) const {
    if (is_pinned(key)) return {own};
    return sizes;
  }

  std::vector<int64_t> tensor_sizes() const {
    const cost::Accelerator& gpu = request_.cluster.gpu;
    const int64_t scale_up = gpu.domain > gpu.per_node ? gpu.domain : request_.cluster.gpus_per_node();
    const int64_t most = request_.most_tensor > 0 ? request_.most_tensor : scale_up;
    return dividing(pinned_or("model.tensor_model_parallel_size", own_.layout.tensor, divisors(demands_.heads, most)),
                    request_.cluster.gpus);
  }

  std::vector<int64_t> context_sizes(int64_t ranks) const {
    std::vector<int64_t> sizes;
    for (int64_t c = 1; c <= kMostContext && (c == 1 || demands_.length / c >= kLeastTokensOfRank); c *= 2)
      sizes.push_back(c);
    return dividing(pinned_or("model.context_parallel_size", own_.layout.context, sizes), ranks);
  }

  std::vector<int64_t> pipeline_sizes(int64_t ranks) const {
    return dividing(
        pinned_or("model.pipeline_model_parallel_size", own_.layout.pipeline, divisors(ranks, demands_.layers + 2)),
        ranks);
  }

  static std::vector<int64_t> dividing(std::vector<int64_t> sizes, int64_t number) {
    std::erase_if(sizes, [&](int64_t size) { return size < 1 || number % size != 0; });
    return sizes;
  }

  bool pins_split() const {
    return is_pinned("model.num_layers_in_first_pipeline_stage") ||
           is_pinned("model.num_layers_in_last_pipeline_stage") ||
           is_pinned("model.account_for_embedding_in_pipeline_split") ||
           is_pinned("model.account_for_loss_in_pipeline_split");
  }

  std::vector<LayerSplit> splits(int64_t p) const {
    if (pins_split()) return {own_.layout.split};
    if (p == 1) return {LayerSplit{}};
    return {LayerSplit{}, LayerSplit{.counts_embedding = true, .counts_loss = true}};
  }

  void with_chunks(int64_t t, int64_t c, int64_t p) {
    const int64_t d = request_.cluster.gpus / (t * c * p);
    if (demands_.global_batch % d != 0) return;
    std::vector<int64_t> chunks{1};
    for (int64_t v = 2; p > 1 && v * p <= demands_.layers + 2; ++v) chunks.push_back(v);
    for (const int64_t v : pinned_or("model.virtual_pipeline_model_parallel_size", own_.layout.chunks, chunks)) {
      for (const LayerSplit& split : splits(p)) {
        Layout layout{.tensor = t, .pipeline = p, .chunks = v, .context = c, .data = d};
        layout.sequence_parallel = is_pinned("model.sequence_parallel") ? own_.layout.sequence_parallel : t > 1;
        layout.split = split;
        if (is_pinned("model.pipeline_schedule")) layout.schedule = own_.layout.schedule;
        if (parallel::layer_split_problem(layout, demands_.layers).empty() && !repeats_even_split(layout))
          with_sharding(layout);
      }
    }
  }

  // Whether counting embedding and loss divides the layers no differently.
  bool repeats_even_split(const Layout& layout) const {
    Layout even = layout;
    even.split = {};
    return !pins_split() && !(layout.split == even.split) &&
           parallel::layer_split_problem(even, demands_.layers).empty() &&
           parallel::layers_per_virtual_stage(even, demands_.layers) ==
               parallel::layers_per_virtual_stage(layout, demands_.layers);
  }

  void with_sharding(Layout layout) {
    const bool may_shard_weights = layout.pipeline == 1 && layout.replicas() > 1;
    for (const bool shards_weights : {false, true}) {
      if (is_pinned("model.fsdp") ? shards_weights != own_.layout.shards_weights : shards_weights && !may_shard_weights)
        continue;
      layout.shards_weights = shards_weights;
      layout.shards_optimizer =
          is_pinned("model.wrap_with_zero") && !shards_weights ? own_.layout.shards_optimizer : layout.replicas() > 1;
      with_micro_batches(layout);
    }
  }

  void with_micro_batches(const Layout& layout) {
    std::vector<int64_t> sizes;
    for (int64_t b = 1; b <= kMostMicroBatch; b *= 2) sizes.push_back(b);
    for (const int64_t b : pinned_or("model.micro_batch_size", own_.micro_batch, sizes)) {
      parallel::LayoutDemands demands = demands_;
      demands.micro_batch = b;
      Layout executed = layout;
      if (layout.shards_weights) executed.chunks = demands_.layers;
      if (!divides(executed, demands, batches_)) continue;
      for (const Granularity recompute : {Granularity::none, Granularity::selective, Granularity::full}) {
        if (is_pinned("model.activations_checkpoint_granularity") && recompute != own_.recompute) continue;
        score({.layout = layout, .micro_batch = b, .recompute = recompute});
      }
    }
  }

  void score(const Candidate& candidate) {
    ++possible_;
    const RunFeatures features = clock_.features_of(candidate);
    const double bound = memory_bound(features, least_layers_of_chunk(candidate.layout));
    if (bound > usable_) return;
    scored_.push_back({candidate, clock_.quick(candidate, features).total(), bound});
  }

  int64_t least_layers_of_chunk(const Layout& layout) const {
    if (layout.pipeline == 1) return demands_.layers / layout.chunks;
    const std::vector<int64_t> layers = parallel::layers_per_virtual_stage(layout, demands_.layers);
    int64_t least = demands_.layers;
    for (size_t i = 0; i < layers.size(); i += static_cast<size_t>(layout.pipeline)) least = std::min(least, layers[i]);
    return least;
  }

  const SearchRequest& request_;
  LayoutClock& clock_;
  Candidate own_;
  int64_t padded_;
  parallel::LayoutDemands demands_;
  std::vector<int64_t> batches_;
  double usable_;
  int64_t possible_ = 0;
  std::vector<Scored> scored_;
};

// As memory_of_worst_rank(), but no further than the first stage that needs more than `limit`, the likeliest first.
WorstRank worst_rank(const engine::StageRequest& request, int64_t limit) {
  const Rehearsal rehearsal(request);
  const int64_t last = request.layout.pipeline - 1;
  WorstRank worst;
  const auto look_at = [&](int64_t stage) {
    MemoryTable table = rehearsal.memory_of(rehearsal.first_rank_of(stage)).table;
    if (worst.table.rows.empty() || table.total() > worst.table.total()) worst = {stage, std::move(table)};
    return worst.table.total() <= limit;
  };
  bool fits = look_at(0) && (last < 1 || look_at(1)) && (last < 2 || look_at(last));
  for (int64_t stage = 2; fits && stage < last; ++stage) fits = look_at(stage);
  return worst;
}

PlannedLayout planned(const SearchRequest& request, LayoutClock& clock, const Candidate& candidate, int64_t limit) {
  const config::Run run = with_candidate(request.run, request.cluster, candidate);
  WorstRank worst = worst_rank(with_few_micro_batches(stage_request(run, request.vocabulary)), limit);
  PlannedLayout result{.candidate = candidate,
                       .features = clock.features_of(candidate),
                       .memory = std::move(worst.table),
                       .worst_stage = worst.stage};
  if (result.memory.total() > limit) return result;
  result.parts = clock.exact(candidate, result.features);
  result.times = clock.times_of(candidate, result.features);
  return result;
}

// With every micro batch.
void rehearse_whole_step(const SearchRequest& request, PlannedLayout& layout) {
  const config::Run run = with_candidate(request.run, request.cluster, layout.candidate);
  WorstRank worst = memory_of_worst_rank(stage_request(run, request.vocabulary));
  layout.memory = std::move(worst.table);
  layout.worst_stage = worst.stage;
}

// Each of some candidates, on all cores.
std::vector<PlannedLayout> planned(const SearchRequest& request, LayoutClock& clock, std::span<const Scored> some) {
  const int64_t usable = usable_bytes(request.cluster.gpu, request.headroom);
  std::vector<PlannedLayout> results(some.size());
  ThreadPool pool(available_cores());
  pool.run(static_cast<int64_t>(some.size()), [&](int64_t i) {
    const auto place = static_cast<size_t>(i);
    results[place] = planned(request, clock, some[place].candidate, usable);
  });
  return results;
}

// The config's own layout where it works on these GPUs: what is found is never slower than what was asked with.
std::vector<Scored> own_layout(const SearchRequest& request) {
  Candidate own = candidate_of(request.run);
  const int64_t copy = own.layout.tensor * own.layout.pipeline * own.layout.context;
  own.layout.data = request.cluster.gpus / copy;
  const config::Run run = with_candidate(request.run, request.cluster, own);
  const int64_t padded = config::padded_vocab(request.vocabulary, run.model.make_vocab_size_divisible_by);
  const std::vector<int64_t> batches = config::BatchRamp(run.model).batches();
  if (request.cluster.gpus % copy != 0 || !divides(layout_of(run), demands_of(run, padded), batches)) return {};
  return {{.candidate = own}};
}

// Nobody saves memory by a step that takes so many times as long.
constexpr double kSlowestOfFront = 2.0;

// Of candidates by rising time, those whose bound is below that of every faster one.
std::vector<Scored> smaller_ones(const std::vector<Scored>& candidates) {
  std::vector<Scored> found;
  for (const Scored& candidate : candidates) {
    if (candidate.seconds > kSlowestOfFront * candidates.front().seconds) break;
    if (found.empty() || candidate.least_bytes < found.back().least_bytes) found.push_back(candidate);
  }
  return found;
}

std::vector<PlannedLayout> front_of(std::vector<PlannedLayout> layouts) {
  std::stable_sort(layouts.begin(), layouts.end(),
                   [](const PlannedLayout& a, const PlannedLayout& b) { return a.seconds() < b.seconds(); });
  std::vector<PlannedLayout> front;
  for (const PlannedLayout& layout : layouts) {
    if (layout.seconds() > kSlowestOfFront * layouts.front().seconds()) break;
    if (front.empty() || layout.memory.total() < front.back().memory.total()) front.push_back(layout);
  }
  return front;
}

// The best first; what a user would have run is not given up for a tie that is slower.
void rank(std::vector<PlannedLayout>& layouts, const std::vector<Scored>& own) {
  double longest = std::numeric_limits<double>::infinity();
  for (const PlannedLayout& layout : layouts) {
    if (!own.empty() && same_layout(layout.candidate, own[0].candidate)) longest = layout.seconds();
  }
  sort_by_time_and_preference(layouts, longest);
}

}  // namespace

bool is_tie(double seconds, double least_seconds) {
  return seconds <= least_seconds * (1 + kTie);
}

bool same_layout(const Candidate& a, const Candidate& b) {
  return a.layout == b.layout && a.micro_batch == b.micro_batch && a.recompute == b.recompute;
}

engine::StageRequest with_few_micro_batches(engine::StageRequest request) {
  request.micro_batches = std::min(request.micro_batches, 4 * request.layout.pipeline);
  return request;
}

int64_t usable_bytes(const cost::Accelerator& gpu, double headroom) {
  return static_cast<int64_t>(gpu.memory_gib * kGib * (1 - headroom));
}

PlannedLayout plan_as_is(const SearchRequest& request) {
  Candidate own = candidate_of(request.run);
  const int64_t copy = own.layout.tensor * own.layout.pipeline * own.layout.context;
  own.layout.data = std::max<int64_t>(1, request.cluster.gpus / copy);
  check_layout(with_candidate(request.run, request.cluster, own), request.vocabulary);
  LayoutClock clock(request);
  PlannedLayout result = planned(request, clock, own, std::numeric_limits<int64_t>::max());
  rehearse_whole_step(request, result);
  return result;
}

SearchResult search_layouts(const SearchRequest& request) {
  SearchResult result;
  LayoutClock clock(request);
  const std::vector<Scored> candidates = Enumeration(request, clock).scored(result);
  const int64_t usable = usable_bytes(request.cluster.gpu, request.headroom);
  const size_t wanted = std::max(request.shown, kJudged);
  for (size_t begin = 0; begin < candidates.size() && begin < kMostRehearsals && result.best.size() < wanted;) {
    const size_t end = std::min(candidates.size(), begin + kJudged);
    for (PlannedLayout& layout : planned(request, clock, std::span(candidates).subspan(begin, end - begin))) {
      if (layout.memory.total() <= usable) {
        result.best.push_back(std::move(layout));
      } else if (result.smallest.empty() || layout.memory.total() < result.smallest[0].memory.total()) {
        result.smallest = {std::move(layout)};
      }
    }
    begin = end;
    result.rehearsed = static_cast<int64_t>(end);
  }
  const std::vector<Scored> own = own_layout(request);
  std::vector<Scored> more = own;
  if (request.finds_front) {
    const std::vector<Scored> smaller = smaller_ones(candidates);
    more.insert(more.end(), smaller.begin(), smaller.end());
  }
  for (PlannedLayout& other : planned(request, clock, more)) {
    const bool known = std::any_of(result.best.begin(), result.best.end(), [&](const PlannedLayout& layout) {
      return same_layout(layout.candidate, other.candidate);
    });
    if (!known && other.memory.total() <= usable) result.best.push_back(std::move(other));
  }
  rank(result.best, own);
  const auto fastest =
      std::min_element(result.best.begin(), result.best.end(),
                       [](const PlannedLayout& a, const PlannedLayout& b) { return a.seconds() < b.seconds(); });
  if (fastest != result.best.begin()) result.fastest = *fastest;
  if (request.finds_front) result.front = front_of(result.best);
  if (result.best.size() > request.shown) result.best.resize(request.shown);
  if (!result.best.empty()) rehearse_whole_step(request, result.best[0]);
  return result;
}

}  // namespace megalith::plan
