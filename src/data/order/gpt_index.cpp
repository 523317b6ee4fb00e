#include "data/order/gpt_index.h"

#include <unistd.h>

#include <limits>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"
#include "data/order/index_file.h"
#include "data/order/numpy_random.h"

namespace megalith::data {

namespace {
// A horizon far beyond what memory can index (such as max_steps = 10^10, to mean "no end") is the user's to change.
void check_memory(const Epochs& epochs, int64_t documents) {
  const double bytes = 4.0 * static_cast<double>(epochs.count) * static_cast<double>(documents) +
                       12.0 * static_cast<double>(epochs.samples);
  const double memory = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
  if (bytes > memory) {
    user_error(
        "the index of {} samples ({} epochs of {} sequences) takes {:.0f} GiB, more than this machine's memory: "
        "lower trainer.max_steps",
        epochs.samples, epochs.count, documents, bytes / 1073741824.0);
  }
}

CompactSpan span_of(CompactInts& ints) {
  CompactSpan result;
  ints.apply(0, ints.size(), [&result](auto values) {
    result = {.bytes = std::as_bytes(values), .width = sizeof(typename decltype(values)::value_type)};
  });
  return result;
}
}  // namespace

Epochs count_epochs(int64_t tokens_per_epoch, int64_t sequence_length, int64_t samples_wanted) {
  MEGALITH_CHECK(tokens_per_epoch > 0 && sequence_length > 0 && samples_wanted >= 0, "{} tokens, length {}, {} samples",
                 tokens_per_epoch, sequence_length, samples_wanted);
  int64_t tokens_wanted = 0;
  int64_t tokens = 0;
  if (__builtin_mul_overflow(samples_wanted, sequence_length, &tokens_wanted) ||
      __builtin_add_overflow(tokens_wanted, tokens_per_epoch, &tokens)) {
    user_error("{} samples of {} tokens are more than can be counted", samples_wanted, sequence_length);
  }
  Epochs epochs;
  epochs.count = ceil_div(tokens_wanted + 1, tokens_per_epoch);
  epochs.samples = (epochs.count * tokens_per_epoch - 1) / sequence_length;
  epochs.samples_before_final = epochs.samples;
  if (epochs.count > 1) {
    const int64_t before = ((epochs.count - 1) * tokens_per_epoch - 1) / sequence_length;
    const int64_t per_epoch = (tokens_per_epoch - 1) / sequence_length;
    epochs.separate_final_epoch = samples_wanted - before < static_cast<int64_t>(0.80 * static_cast<double>(per_epoch));
    if (epochs.separate_final_epoch) epochs.samples_before_final = before;
  }
  return epochs;
}

GptIndex::GptIndex(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length,
                   int64_t samples_wanted, uint32_t seed) {
  const int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  MEGALITH_CHECK(first_sequence + std::ssize(lengths) <= std::numeric_limits<int32_t>::max(),
                 "{} sequences are more than the index can number", first_sequence + std::ssize(lengths));
  epochs_ = count_epochs(tokens, sequence_length, samples_wanted);
  check_memory(epochs_, std::ssize(lengths));
  NumpyRandomState random(seed);
  build_documents(random, std::ssize(lengths), first_sequence);
  build_starts(lengths, first_sequence, sequence_length);
  build_shuffle(random);
  positions_ = span_of(own_positions_);
  offsets_ = own_offsets_;
  shuffle_ = span_of(own_shuffle_);
}

GptIndex::GptIndex(std::shared_ptr<const IndexFile> file) : file_(std::move(file)) {
  const IndexFile::Numbers& numbers = file_->numbers();
  epochs_ = {.count = numbers[0],
             .samples = numbers[1],
             .separate_final_epoch = numbers[2] != 0,
             .samples_before_final = numbers[3]};
  const auto ints = [this](size_t array) {
    const auto bytes = file_->array(array);
    return std::span(reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / 4);
  };
  documents_ = ints(0);
  offsets_ = ints(1);
  positions_ = {.bytes = file_->array(2), .width = numbers[4] == 8 ? size_t{8} : size_t{4}};
  shuffle_ = {.bytes = file_->array(3), .width = numbers[5] == 8 ? size_t{8} : size_t{4}};
  if (epochs_.samples < 1 || shuffle_.size() != epochs_.samples || positions_.size() != epochs_.samples + 1 ||
      std::ssize(offsets_) != epochs_.samples + 1 || documents_.empty()) {
    throw DamagedIndex("an index file holds arrays of sizes that do not fit together");
  }
}

// An index that was built here is right; one from a file could have been written by anything.
void GptIndex::check_place(int64_t index, int64_t count, const char* what) const {
  if (index >= 0 && index < count) return;
  MEGALITH_CHECK(file_, "{} {} of {}", what, index, count);
  throw DamagedIndex(fmt::format("an index file names {} {} of {}", what, index, count));
}

int64_t GptIndex::sequence_at(int64_t position) const {
  check_place(position, std::ssize(documents_), "document");
  const int32_t* place = documents_.data() + position;
  if (file_) file_->verify(place, sizeof(*place));
  return *place;
}

std::span<const int32_t> GptIndex::document_index() const {
  if (file_) file_->verify(documents_.data(), documents_.size_bytes());
  return documents_;
}

GptIndex::Start GptIndex::unshuffled_start(int64_t sample) const {
  check_place(sample, positions_.size(), "sample");
  const int32_t* offset = offsets_.data() + sample;
  if (file_) {
    file_->verify(positions_.at(sample), positions_.width);
    file_->verify(offset, sizeof(*offset));
  }
  return {positions_[sample], *offset};
}

int64_t GptIndex::shuffle_index(int64_t sample) const {
  check_place(sample, shuffle_.size(), "sample");
  if (file_) file_->verify(shuffle_.at(sample), shuffle_.width);
  return shuffle_[sample];
}

void GptIndex::build_documents(NumpyRandomState& random, int64_t count, int64_t first_sequence) {
  own_documents_.resize(static_cast<size_t>(epochs_.count * count));
  for (auto epoch = own_documents_.begin(); epoch != own_documents_.end(); epoch += count) {
    std::iota(epoch, epoch + count, static_cast<int32_t>(first_sequence));
  }
  const int64_t mixed_epochs = epochs_.separate_final_epoch ? epochs_.count - 1 : epochs_.count;
  const auto cut = static_cast<size_t>(mixed_epochs * count);
  random.shuffle(std::span(own_documents_).first(cut));
  random.shuffle(std::span(own_documents_).subspan(cut));
  documents_ = own_documents_;
}

void GptIndex::build_starts(std::span<const int32_t> lengths, int64_t first_sequence, int64_t sequence_length) {
  own_positions_ = CompactInts(epochs_.samples + 1, std::ssize(own_documents_));
  own_offsets_.resize(static_cast<size_t>(epochs_.samples + 1));
  int64_t position = 0;
  int64_t offset = 0;
  for (int64_t sample = 1; sample <= epochs_.samples; ++sample) {
    // The sample ends in the document that holds the last of its length + 1 tokens, and the next one starts at that
    // token. Looking for the token itself, not for the place behind the one before it, decides which of two documents
    // is named where one ends: this must agree with Megatron.
    int64_t ahead = sequence_length;
    for (;;) {
      const int64_t left =
          lengths[static_cast<size_t>(own_documents_[static_cast<size_t>(position)] - first_sequence)] - offset;
      if (ahead < left) break;
      ahead -= left;
      ++position;
      offset = 0;
    }
    offset += ahead;
    own_positions_.set(sample, position);
    own_offsets_[static_cast<size_t>(sample)] = static_cast<int32_t>(offset);
  }
}

void GptIndex::build_shuffle(NumpyRandomState& random) {
  own_shuffle_ = CompactInts(epochs_.samples, epochs_.samples);
  own_shuffle_.apply(0, epochs_.samples, [](auto samples) { std::iota(samples.begin(), samples.end(), 0); });
  const auto shuffle = [&random](auto samples) { random.shuffle(samples); };
  own_shuffle_.apply(0, epochs_.samples_before_final, shuffle);
  own_shuffle_.apply(epochs_.samples_before_final, epochs_.samples, shuffle);
}

}  // namespace megalith::data
