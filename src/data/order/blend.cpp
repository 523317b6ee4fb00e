#include "data/order/blend.h"

#include <glob.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/words.h"
#include "data/prepare/read/input_list.h"

namespace megalith::data {

namespace {
constexpr double kSurplus = 0.005;  // Megatron's mid_level_dataset_surplus

std::optional<double> read_number(const std::string& text) {
  double value = 0.0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> expand(const std::string& prefix, std::string_view key) {
  if (prefix.find_first_of("*?") == std::string::npos) return {prefix};
  constexpr std::string_view kEnding = ".idx";
  glob_t found{};
  const int status = ::glob((prefix + std::string(kEnding)).c_str(), 0, nullptr, &found);
  std::vector<std::string> prefixes;
  for (size_t i = 0; status == 0 && i < found.gl_pathc; ++i) {
    const std::string_view path = found.gl_pathv[i];
    prefixes.emplace_back(path.substr(0, path.size() - kEnding.size()));
  }
  ::globfree(&found);
  if (prefixes.empty()) user_error("{}: no dataset matches {}.idx", key, prefix);
  std::sort(prefixes.begin(), prefixes.end(), natural_less);
  return prefixes;
}

double read_weight(const std::string& text, const std::string& prefix, std::string_view key) {
  const auto weight = read_number(text);
  if (!weight || read_number(prefix)) {
    user_error("{}: \"{}\", \"{}\" is not a weight and a prefix. Give weights to all datasets or to none", key, text,
               prefix);
  }
  if (!(*weight > 0.0) || !std::isfinite(*weight)) {
    user_error(
        "{}: the weight of {} is {}. A weight is the dataset's share of all training samples (not of tokens, and not a "
        "number of epochs), relative to the other weights: it must be above 0",
        key, prefix, text);
  }
  return *weight;
}
}  // namespace

DataSources parse_data_prefix(const std::vector<std::string>& list, std::string_view key) {
  if (list.empty()) {
    user_error("{} is empty: give the prefix of a .bin and .idx pair, or set model.data.data_impl=mock", key);
  }
  const auto numbers = std::count_if(list.begin(), list.end(), [](const auto& item) { return read_number(item); });
  if (numbers > 0 && list.size() % 2 != 0) {
    const auto last = std::find_if(list.rbegin(), list.rend(), [](const auto& item) { return read_number(item); });
    user_error(
        "{} has {} entries, among them the weight {}{}: expected [prefix, ...] or [weight, prefix, weight, prefix, "
        "...]. A weight is a dataset's share of all training samples",
        key, list.size(), *last, list.size() == 1 ? " without a prefix" : "");
  }
  DataSources sources;
  const size_t step = numbers > 0 ? 2 : 1;
  for (size_t i = 0; i < list.size(); i += step) {
    const std::string& prefix = list[i + step - 1];
    const double weight = numbers > 0 ? read_weight(list[i], prefix, key) : 0.0;
    for (std::string& name : expand(prefix, key)) {
      sources.prefixes.push_back(std::move(name));
      if (numbers > 0) sources.weights.push_back(weight);
    }
  }
  return sources;
}

DataSources files_of_split(const DataSources& all, Split split, int64_t validation_files, int64_t test_files) {
  const auto files = std::ssize(all.prefixes);
  if (validation_files < 0 || test_files < 0 || validation_files + test_files >= files) {
    user_error(
        "model.data.validation_files={} and test_files={} leave nothing to train on: model.data.data_prefix has {}",
        validation_files, test_files, counted(files, "dataset"));
  }
  int64_t begin = 0;
  int64_t end = files - validation_files - test_files;
  if (split != Split::train) {
    begin = split == Split::test ? end : files - validation_files;
    end = begin + (split == Split::test ? test_files : validation_files);
  }
  if (begin == end) {
    user_error("model.data.{}=0 leaves the {} split without a dataset",
               split == Split::test ? "test_files" : "validation_files", name_of(split));
  }
  DataSources chosen;
  chosen.prefixes.assign(all.prefixes.begin() + begin, all.prefixes.begin() + end);
  if (all.weighted()) chosen.weights.assign(all.weights.begin() + begin, all.weights.begin() + end);
  return chosen;
}

namespace {
// numpy's: eight running sums over up to 128 values, halves beyond.
double pairwise_sum(std::span<const double> values) {
  const size_t count = values.size();
  if (count < 8) {
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (count <= 128) {
    double sums[8];
    std::copy_n(values.begin(), 8, sums);
    size_t i = 8;
    for (; i + 8 <= count; i += 8) {
      for (size_t lane = 0; lane < 8; ++lane) sums[lane] += values[i + lane];
    }
    double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
    for (; i < count; ++i) sum += values[i];
    return sum;
  }
  size_t half = count / 2;
  half -= half % 8;
  return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
}
}  // namespace

std::vector<double> normalised(std::span<const double> weights) {
  const double sum = pairwise_sum(weights);
  std::vector<double> shares(weights.begin(), weights.end());
  for (double& share : shares) share /= sum;
  return shares;
}

BlendShares shares_of_blend(std::span<const double> weights, int64_t samples) {
  MEGALITH_CHECK(samples >= 0, "a blend of {} samples", samples);
  BlendShares blend;
  const std::vector<double> shares = normalised(weights);
  for (size_t i = 0; i < shares.size(); ++i) {
    // A weight of 1e-300 beside 1 is 0 of any number of samples that can be counted.
    if (!(shares[i] > 0.0)) {
      user_error("model.data.data_prefix: weight {} is no share of the sum of all weights that a number can hold",
                 weights[i]);
    }
    const double target = std::ceil(static_cast<double>(samples) * shares[i]);
    blend.samples += static_cast<int64_t>(target);
    blend.requests.push_back(static_cast<int64_t>(std::ceil(target * (1 + kSurplus))));
  }
  // Megatron normalises what is normalised already once more before it deals, which can move the last bit.
  blend.weights = normalised(shares);
  return blend;
}

}  // namespace megalith::data
