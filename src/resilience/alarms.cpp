#include "resilience/alarms.h"

#include "core/clock.h"

namespace megalith::resilience {

namespace {
constexpr double kAgainSeconds = 60.0;
constexpr size_t kMost = 64;  // in a minute
}  // namespace

void Alarms::add(const std::string& text) {
  const double now = monotonic_seconds();
  const std::lock_guard lock(mutex_);
  std::erase_if(said_, [&](const auto& entry) { return now - entry.second > kAgainSeconds; });
  if (said_.size() >= kMost || waiting_.size() >= kMost) return;
  if (said_.emplace(text, now).second) waiting_.push_back(text);
}

std::optional<std::string> Alarms::next() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) return std::nullopt;
  std::string text = std::move(waiting_.front());
  waiting_.pop_front();
  return text;
}

}  // namespace megalith::resilience
