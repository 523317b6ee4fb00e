#include "resilience/sense/deadlines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace megalith::resilience {

namespace {
constexpr double kShortest = 10.0;         // of a step
constexpr double kShortestSection = 30.0;  // of everything else
constexpr double kFirstSave = 600.0;

double number_of(std::string_view text) {
  double value = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}
}  // namespace

void Deadlines::saw_steps(int64_t count, double seconds) {
  steps_.push_back(seconds);
  if (steps_.size() > kSteps) steps_.pop_front();
  steps_seen_ += count;
}

void Deadlines::saw_section(Section section, double seconds) {
  double& longest = longest_[static_cast<size_t>(section)];
  longest = std::max(longest, seconds);
}

double Deadlines::without_beat(Section section) const {
  if (section == Section::step || section == Section::wait) {
    if (settings_.rank_heartbeat_timeout > 0) return settings_.rank_heartbeat_timeout;
    if (steps_seen_ < kWarmUpSteps) return settings_.initial_rank_heartbeat_timeout;
    return std::max(kShortest, 3.0 * *std::max_element(steps_.begin(), steps_.end()));
  }
  const double longest = longest_[static_cast<size_t>(section)];
  if (longest > 0) return std::max(kShortestSection, 5.0 * longest);
  return section < Section::step ? settings_.start_timeout : kFirstSave;
}

double Deadlines::between_beats() const {
  if (steps_seen_ < kWarmUpSteps) return without_beat(Section::step);
  return std::max(2.0, *std::max_element(steps_.begin(), steps_.end()) + 1.0);
}

std::string Deadlines::to_text() const {
  std::string text;
  if (!steps_.empty()) {
    text = fmt::format("step={:.3f}x{}", *std::max_element(steps_.begin(), steps_.end()), steps_seen_);
  }
  for (int section = 0; section < kSections; ++section) {
    const double longest = longest_[static_cast<size_t>(section)];
    if (longest > 0) text += fmt::format("{}{}={:.3f}", text.empty() ? "" : " ", name_of(Section(section)), longest);
  }
  return text;
}

void Deadlines::take(std::string_view text) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    const size_t times = value.find('x');
    if (name == "step" && times != std::string_view::npos) {
      steps_ = {number_of(value.substr(0, times))};
      steps_seen_ = static_cast<int64_t>(number_of(value.substr(times + 1)));
      continue;
    }
    for (int section = 0; section < kSections; ++section) {
      if (name == name_of(Section(section))) saw_section(Section(section), number_of(value));
    }
  }
}

}  // namespace megalith::resilience
