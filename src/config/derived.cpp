#include "config/derived.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "config/scalar.h"
#include "core/error.h"

namespace megalith::config {
namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find_first_of(separators);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Two digits or more, as clocks write them: 05, 120.
int64_t clock_number(std::string_view digits, std::string_view text) {
  const bool good =
      !digits.empty() && digits.size() <= 6 && digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!good) user_error("trainer.max_time is '{}': expected DD:HH:MM:SS, for example 00:03:55:00", text);
  int64_t number = 0;
  for (const char digit : digits) number = 10 * number + (digit - '0');
  return number;
}

}  // namespace

int64_t ffn_hidden_size(const Model& model) {
  return model.ffn_hidden_size > 0 ? model.ffn_hidden_size : 4 * model.hidden_size;
}

int64_t num_query_groups(const Model& model) {
  return model.num_query_groups > 0 ? model.num_query_groups : model.num_attention_heads;
}

int64_t kv_channels(const Model& model) {
  return model.kv_channels > 0 ? model.kv_channels : model.hidden_size / model.num_attention_heads;
}

int64_t max_position_embeddings(const Model& model) {
  return model.max_position_embeddings > 0 ? model.max_position_embeddings : model.encoder_seq_length;
}

int64_t padded_vocab(int64_t vocab, int64_t multiple) {
  return (vocab + multiple - 1) / multiple * multiple;
}

int64_t world_size(const Trainer& trainer) {
  return trainer.devices * trainer.num_nodes;
}

int64_t model_parallel_size(const Model& model) {
  return model.tensor_model_parallel_size * model.pipeline_model_parallel_size * model.context_parallel_size;
}

int64_t data_parallel_size(const Run& run) {
  return std::max<int64_t>(1, world_size(run.trainer) / model_parallel_size(run.model));
}

int64_t micro_batches_per_step(const Run& run) {
  return run.model.global_batch_size / (run.model.micro_batch_size * data_parallel_size(run));
}

DType compute_dtype(const Trainer& trainer) {
  return trainer.precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

int64_t parse_max_time(std::string_view text) {
  const auto parts = split(text, ":");
  if (parts.size() != 4) user_error("trainer.max_time is '{}': expected DD:HH:MM:SS, for example 00:03:55:00", text);
  const int64_t days = clock_number(parts[0], text);
  const int64_t hours = clock_number(parts[1], text);
  const int64_t minutes = clock_number(parts[2], text);
  const int64_t seconds = clock_number(parts[3], text);
  if (hours > 23 || minutes > 59 || seconds > 59) {
    user_error("trainer.max_time is '{}': DD:HH:MM:SS has hours up to 23, minutes and seconds up to 59", text);
  }
  return ((days * 24 + hours) * 60 + minutes) * 60 + seconds;
}

namespace {
// Of "H:M:S" or "D:H:M:S", or of a number and its unit; nothing for another text.
std::optional<double> seconds_of(std::string_view text) {
  std::vector<std::string_view> parts = split(text, ":");
  if (parts.size() == 1) {
    constexpr std::string_view kUnits = "smh";
    double unit = 1.0;
    if (const size_t at = text.empty() ? std::string_view::npos : kUnits.find(text.back()); at != kUnits.npos) {
      unit = at == 0 ? 1.0 : at == 1 ? 60.0 : 3600.0;
      text.remove_suffix(1);
    }
    const auto number = read_double(text);
    return number ? std::optional(*number * unit) : std::nullopt;
  }
  if (parts.size() != 3 && parts.size() != 4) return std::nullopt;
  if (parts.size() == 3) parts.insert(parts.begin(), "0");
  constexpr std::array kFactors = {24.0, 60.0, 60.0, 1.0};
  double seconds = 0.0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto number = read_double(parts[i]);
    if (!number || *number < 0 || parts[i].find_first_not_of("0123456789") != std::string_view::npos)
      return std::nullopt;
    seconds = (seconds + *number) * kFactors.at(i);
  }
  return seconds;
}
}  // namespace

double parse_time_interval(std::string_view text) {
  constexpr double kMost = 1e9;
  const std::optional<double> seconds = seconds_of(trimmed(text));
  if (seconds && *seconds > 0 && *seconds <= kMost) return *seconds;
  user_error(
      "exp_manager.checkpoint_callback_params.train_time_interval is '{}': expected a time above 0 as seconds (600), "
      "with a unit (600s, 10m, 2h), or as H:M:S or D:H:M:S",
      text);
}

std::array<double, 3> parse_splits(std::string_view text) {
  constexpr const char* kWanted = "expected up to three weights, for example 969,30,1";
  const auto parts = split(text, ",/");
  if (parts.size() > 3) user_error("model.data.splits_string is '{}': {}", text, kWanted);
  std::array<double, 3> shares{};
  double sum = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto weight = read_double(parts[i]);
    if (!weight || *weight < 0 || *weight > 1e12) user_error("model.data.splits_string is '{}': {}", text, kWanted);
    shares[i] = *weight;
    sum += *weight;
  }
  if (sum <= 0) user_error("model.data.splits_string is '{}': one weight must be above 0", text);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace megalith::config
