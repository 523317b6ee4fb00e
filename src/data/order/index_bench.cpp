#include "data/order/index_bench.h"

#include <sys/resource.h>

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"
#include "core/rng.h"
#include "core/thread_pool.h"
#include "data/order/blend.h"
#include "data/order/make_dataset.h"

namespace megalith::data {

namespace {
// Lengths by a counter-based generator: nothing is stored.
class MadeUpSequences : public SequenceSource {
 public:
  MadeUpSequences(int64_t number, int64_t sequences, int64_t mean)
      : name_(fmt::format("made-up dataset {}", number)),
        key_(mix_key(1, static_cast<uint64_t>(number))),
        sequences_(sequences),
        spread_(static_cast<uint64_t>(2 * mean - 1)) {}

  const std::string& name() const override { return name_; }
  int64_t sequences() const override { return sequences_; }
  int32_t length(int64_t sequence) const override {
    const uint64_t bits = mix_key(key_, static_cast<uint64_t>(sequence)) >> 32;
    return static_cast<int32_t>(1 + ((bits * spread_) >> 32));
  }
  void read(int64_t, int64_t, std::span<int32_t> out) const override { std::fill(out.begin(), out.end(), 0); }

 private:
  std::string name_;
  uint64_t key_;
  int64_t sequences_;
  uint64_t spread_;
};

double process_core_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<BlendSource> make_sources(const IndexBenchOptions& options) {
  std::vector<BlendSource> sources;
  const double mean_sequences = static_cast<double>(options.tokens) / static_cast<double>(options.datasets) /
                                static_cast<double>(options.mean_document);
  for (int64_t i = 0; i < options.datasets; ++i) {
    // From half to one and a half of the mean.
    const double size = 0.5 + uniform_from_bits(static_cast<uint32_t>(mix_key(2, static_cast<uint64_t>(i))));
    const auto sequences = std::max<int64_t>(static_cast<int64_t>(mean_sequences * size), 2);
    sources.push_back({.source = std::make_shared<MadeUpSequences>(i, sequences, options.mean_document),
                       .range = {0, sequences},
                       .content = {.low = static_cast<uint64_t>(i), .high = static_cast<uint64_t>(sequences)}});
  }
  return sources;
}
}  // namespace

IndexBenchResult bench_index(const IndexBenchOptions& options) {
  if (options.directory.empty()) user_error("the benchmark of indices needs a directory");
  const auto sources = make_sources(options);
  const int threads = options.threads > 0 ? options.threads : available_cores();
  const auto samples =
      static_cast<int64_t>(0.95 * static_cast<double>(options.tokens) / static_cast<double>(options.sequence_length));
  IndexBenchResult result;
  BlendOptions blend{.vocabulary = {.size = 50304},
                     .sequence_length = options.sequence_length,
                     .horizon = samples,
                     .seed = 1234,
                     .threads = threads};
  for (const BlendSource& source : sources) {
    blend.weights.push_back(static_cast<double>(source.range.size()));
    result.documents += source.range.size();
  }
  const BlendShares shares = shares_of_blend(blend.weights, samples);
  const auto cache = std::make_shared<const IndexCache>(options.directory);

  double wall = monotonic_seconds();
  double cpu = process_core_seconds();
  ThreadPool pool(threads);
  std::vector<int64_t> sizes(sources.size());
  pool.run(std::ssize(sources), [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    sizes[at] = GptDataset(sources[at].source, {.range = sources[at].range,
                                                .vocabulary = blend.vocabulary,
                                                .sequence_length = blend.sequence_length,
                                                .horizon = shares.requests[at],
                                                .seed = blend.seed,
                                                .cache = cache,
                                                .content = sources[at].content})
                    .size();
  });
  result.build_seconds = monotonic_seconds() - wall;
  result.build_core_seconds = process_core_seconds() - cpu;
  for (const int64_t size : sizes) result.samples += size;

  cpu = process_core_seconds();
  BlendOrder order(shares.weights);
  std::vector<BlendEntry> entries(16384);
  while (order.position() < std::min<int64_t>(shares.samples, 100'000'000)) order.next(entries);
  result.blend_samples = order.position();
  result.blend_core_seconds = process_core_seconds() - cpu;

  blend.cache = cache;
  make_blend(sources, blend);  // writes the rows of the blend
  result.bytes = cache->counts().bytes_written;

  wall = monotonic_seconds();
  blend.cache = std::make_shared<const IndexCache>(options.directory);
  const auto dataset = make_blend(sources, blend);
  std::vector<int32_t> tokens(static_cast<size_t>(options.sequence_length + 1));
  dataset->sample(samples / 2, tokens);
  result.reopen_seconds = monotonic_seconds() - wall;
  MEGALITH_CHECK(blend.cache->counts().built == 0, "{} indices were built twice", blend.cache->counts().built);

  for (const auto& entry : std::filesystem::directory_iterator(options.directory)) {
    if (entry.path().extension() == ".index") std::filesystem::remove(entry.path());
  }
  return result;
}

}  // namespace megalith::data
