#include "data/gpt_index.h"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/error.h"
#include "core/tensor.h"
#include "data/numpy_random.h"

namespace megalith::data {

namespace {
// A horizon far beyond what memory can index (such as max_steps = 10^10, to mean "no end") is the user's to change.
void check_memory(const EpochPlan& plan, int64_t documents) {
  const double bytes = 4.0 * static_cast<double>(plan.epochs) * static_cast<double>(documents) +
                       12.0 * static_cast<double>(plan.samples);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  if (bytes > memory) {
    user_error(
        "the index of {} samples ({} epochs of {} sequences) takes {:.0f} GiB, more than this machine's memory: "
        "lower trainer.max_steps",
        plan.samples, plan.epochs, documents, bytes / 1073741824.0);
  }
}
}  // namespace

EpochPlan plan_epochs(int64_t tokens_per_epoch, int64_t sequence_length, int64_t samples_wanted) {
  MEGALITH_CHECK(tokens_per_epoch > 0 && sequence_length > 0 && samples_wanted >= 0, "{} tokens, length {}, {} samples",
                 tokens_per_epoch, sequence_length, samples_wanted);
  int64_t tokens_wanted = 0;
  int64_t tokens = 0;
  if (__builtin_mul_overflow(samples_wanted, sequence_length, &tokens_wanted) ||
      __builtin_add_overflow(tokens_wanted, tokens_per_epoch, &tokens)) {
    user_error("{} samples of {} tokens are more than can be counted", samples_wanted, sequence_length);
  }
  EpochPlan plan;
  plan.epochs = ceil_div(tokens_wanted + 1, tokens_per_epoch);
  plan.samples = (plan.epochs * tokens_per_epoch - 1) / sequence_length;
  plan.samples_before_final = plan.samples;
  if (plan.epochs > 1) {
    const int64_t before = ((plan.epochs - 1) * tokens_per_epoch - 1) / sequence_length;
    const int64_t per_epoch = (tokens_per_epoch - 1) / sequence_length;
    plan.separate_final_epoch = samples_wanted - before < static_cast<int64_t>(0.80 * static_cast<double>(per_epoch));
    if (plan.separate_final_epoch) plan.samples_before_final = before;
  }
  return plan;
}

GptIndex::GptIndex(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length,
                   int64_t samples_wanted, uint32_t seed) {
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  MEGALITH_CHECK(first_sequence + std::ssize(lengths) <= std::numeric_limits<int32_t>::max(),
                 "{} sequences are more than the index can number", first_sequence + std::ssize(lengths));
  plan_ = plan_epochs(tokens, sequence_length, samples_wanted);
  check_memory(plan_, std::ssize(lengths));
  NumpyRandomState random(seed);
  build_documents(random, std::ssize(lengths), first_sequence);
  build_starts(lengths, first_sequence, sequence_length);
  build_shuffle(random);
}

void GptIndex::build_documents(NumpyRandomState& random, int64_t count, int64_t first_sequence) {
  documents_.resize(static_cast<size_t>(plan_.epochs * count));
  for (size_t i = 0; i < documents_.size(); ++i) {
    documents_[i] = static_cast<int32_t>(first_sequence + static_cast<int64_t>(i) % count);
  }
  const int64_t mixed_epochs = plan_.separate_final_epoch ? plan_.epochs - 1 : plan_.epochs;
  const auto cut = static_cast<size_t>(mixed_epochs * count);
  random.shuffle(std::span(documents_).first(cut));
  random.shuffle(std::span(documents_).subspan(cut));
}

void GptIndex::build_starts(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length) {
  positions_ = CompactInts(plan_.samples + 1, std::ssize(documents_));
  offsets_.resize(static_cast<size_t>(plan_.samples + 1));
  int64_t position = 0;
  int64_t offset = 0;
  for (int64_t sample = 1; sample <= plan_.samples; ++sample) {
    // The sample ends in the document that holds the last of its length + 1 tokens, and the next one starts at that
    // token. Looking for the token itself, not for the place behind the one before it, decides which of two documents
    // is named where one ends: this must agree with Megatron.
    int64_t ahead = sequence_length;
    for (;;) {
      const int64_t left = lengths[static_cast<size_t>(sequence_at(position) - first_sequence)] - offset;
      if (ahead < left) break;
      ahead -= left;
      ++position;
      offset = 0;
    }
    offset += ahead;
    positions_.set(sample, position);
    offsets_[static_cast<size_t>(sample)] = static_cast<int32_t>(offset);
  }
}

void GptIndex::build_shuffle(NumpyRandomState& random) {
  shuffle_ = CompactInts(plan_.samples, plan_.samples);
  for (int64_t i = 0; i < plan_.samples; ++i) shuffle_.set(i, i);
  const auto shuffle = [&random](auto samples) { random.shuffle(samples); };
  shuffle_.apply(0, plan_.samples_before_final, shuffle);
  shuffle_.apply(plan_.samples_before_final, plan_.samples, shuffle);
}

}  // namespace megalith::data
