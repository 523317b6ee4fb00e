#include "data/make_dataset.h"

#include <charconv>
#include <cstdint>
#include <limits>

#include "core/error.h"
#include "data/indexed_dataset.h"
#include "data/mock_sequences.h"

namespace megalith::data {

namespace {
bool is_number(const std::string& text) {
  double value = 0.0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && stop == text.data() + text.size();
}
}  // namespace

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

std::string single_prefix(const config::Data& data) {
  const auto& list = data.data_prefix;
  if (list.empty()) {
    user_error(
        "model.data.data_prefix is empty: give the prefix of a .bin and .idx pair, or set model.data.data_impl=mock");
  }
  if (list.size() == 1 && !is_number(list[0])) return list[0];
  if (list.size() == 2 && is_number(list[0]) && !is_number(list[1])) return list[1];
  if (list.size() == 1) user_error("model.data.data_prefix has the weight {} without a prefix", list[0]);
  user_error(
      "model.data.data_prefix: blending several datasets is not supported yet; give one prefix, or weight and prefix");
}

std::unique_ptr<Dataset> make_dataset(const config::Run& run, Split split, Vocabulary vocabulary, int64_t horizon) {
  const config::Data& data = run.model.data;
  const int64_t seed = run.model.seed;
  if (seed < 0 || seed > std::numeric_limits<uint32_t>::max()) {
    user_error("model.seed is {}: the sample order needs one from 0 to {}", seed, std::numeric_limits<uint32_t>::max());
  }
  std::shared_ptr<const SequenceSource> source;
  std::string shares = data.splits_string;
  if (data.data_impl == "mock") {
    source = std::make_shared<MockSequences>(vocabulary);
    shares = "1,1,1";
  } else if (data.data_impl == "mmap") {
    source = std::make_shared<IndexedDataset>(single_prefix(data));
  } else {
    user_error("model.data.data_impl is \"{}\": expected mmap or mock", data.data_impl);
  }
  if (source->sequences() > std::numeric_limits<int32_t>::max()) {
    data_error("{} has {} sequences; at most 2^31 - 1 are supported, as in Megatron", source->name(),
               source->sequences());
  }
  const SequenceRange range = Splits(shares).range(split, source->sequences());
  if (range.size() == 0) {
    user_error("model.data.splits_string \"{}\" leaves the {} split of {} without one of its {} sequences", shares,
               name_of(split), source->name(), source->sequences());
  }
  return std::make_unique<GptDataset>(
      source, GptDataset::Options{
                  .range = range,
                  .vocabulary = vocabulary,
                  .sequence_length = data.seq_length > 0 ? data.seq_length : run.model.encoder_seq_length,
                  .horizon = horizon,
                  .seed = static_cast<uint32_t>(seed),
              });
}

}  // namespace megalith::data
