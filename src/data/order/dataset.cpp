#include "data/order/dataset.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "data/order/index_cache.h"

namespace megalith::data {

GptDataset::GptDataset(std::shared_ptr<const SequenceSource> source, const Options& options)
    : source_(std::move(source)),
      options_(options),
      order_([this](uint32_t seed, bool again) { return find_index(seed, again); }, options.seed) {}

std::shared_ptr<const GptIndex> GptDataset::find_index(uint32_t seed, bool again) const {
  const auto build = [this, seed] { return build_index(seed); };
  if (!options_.cache) return build();
  const GptIndexKey key{.content = options_.content,
                        .range = options_.range,
                        .sequence_length = options_.sequence_length,
                        .horizon = options_.horizon,
                        .seed = seed};
  return options_.cache->gpt_index(key, build, again);
}

std::shared_ptr<const GptIndex> GptDataset::build_index(uint32_t seed) const {
  const SequenceRange range = options_.range;
  MEGALITH_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= source_->sequences(),
                 "sequences {} to {} of {}", range.begin, range.end, source_->sequences());
  std::vector<int32_t> lengths(static_cast<size_t>(range.size()));
  int64_t tokens = 0;
  for (int64_t i = 0; i < range.size(); ++i) {
    lengths[static_cast<size_t>(i)] = source_->length(range.begin + i);
    tokens += lengths[static_cast<size_t>(i)];
  }
  // Two tokens are the least that can teach anything: an input and its target.
  if (tokens < 2) {
    user_error("{}: sequences {} to {} hold {} tokens, too few for a sample", name(), range.begin, range.end, tokens);
  }
  // A horizon of 0 still builds one epoch; where one is shorter than a sample, ask for one so that epochs repeat.
  const int64_t wanted = std::max<int64_t>(options_.horizon, 1);
  return std::make_shared<const GptIndex>(lengths, range.begin, options_.sequence_length, wanted, seed);
}

void GptDataset::sample(int64_t index, std::span<int32_t> tokens) const {
  MEGALITH_CHECK(std::ssize(tokens) == options_.sequence_length + 1, "{} tokens asked of samples of {} + 1",
                 tokens.size(), options_.sequence_length);
  const ExtendedOrder::BlockSample found = order_.locate(index);
  try {
    read(found, tokens);
  } catch (const DamagedIndex&) {
    order_.rebuild(index, found.index);
    read(order_.locate(index), tokens);
  }
}

void GptDataset::read(const ExtendedOrder::BlockSample& found, std::span<int32_t> tokens) const {
  auto [position, begin] = found.index->start(found.sample);
  int64_t offset = begin;
  while (!tokens.empty()) {
    const int64_t sequence = found.index->sequence_at(position);
    if (sequence < options_.range.begin || sequence >= options_.range.end || offset < 0 ||
        offset > source_->length(sequence)) {
      throw DamagedIndex(fmt::format("an index of {} names token {} of sequence {}", name(), offset, sequence));
    }
    const int64_t count = std::min(source_->length(sequence) - offset, std::ssize(tokens));
    const auto piece = tokens.first(static_cast<size_t>(count));
    if (count > 0) source_->read(sequence, offset, piece);
    check_ids(sequence, offset, piece);
    tokens = tokens.subspan(static_cast<size_t>(count));
    ++position;
    offset = 0;
  }
}

void GptDataset::check_ids(int64_t sequence, int64_t offset, std::span<const int32_t> tokens) const {
  // As unsigned numbers, negative ids are large ones: one comparison per token finds both.
  uint32_t largest = 0;
  for (const int32_t token : tokens) largest = std::max(largest, static_cast<uint32_t>(token));
  if (int64_t{largest} < options_.vocabulary.size) return;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (int64_t{static_cast<uint32_t>(tokens[i])} < options_.vocabulary.size) continue;
    data_error(
        "{}: sequence {}, position {} holds token id {}, outside of the vocabulary of {} ids: it was tokenized with "
        "another tokenizer, or the file is damaged",
        name(), sequence, offset + static_cast<int64_t>(i), tokens[i], options_.vocabulary.size);
  }
}

std::vector<int32_t> read_tokens(const SequenceSource& source, SequenceRange range) {
  int64_t count = 0;
  for (int64_t i = range.begin; i < range.end; ++i) count += source.length(i);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::span<int32_t> rest(tokens);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const auto length = static_cast<size_t>(source.length(i));
    source.read(i, 0, rest.first(length));
    rest = rest.subspan(length);
  }
  return tokens;
}

}  // namespace megalith::data
