#include "train/inference/stop_strings.h"

#include <algorithm>
#include <utility>

namespace megalith::train {

namespace {

// Characters at the end of `text` that a stop string may begin with.
size_t beginning_of(std::string_view stop, std::string_view text) {
  for (size_t length = std::min(stop.size() - 1, text.size()); length > 0; --length) {
    if (text.ends_with(stop.substr(0, length))) return length;
  }
  return 0;
}

}  // namespace

std::string StopStrings::add(std::string_view piece) {
  if (found_) return {};
  held_ += piece;
  size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  found_ = end != std::string::npos;
  if (!found_) {
    size_t kept = 0;
    for (const std::string& stop : stops_) kept = std::max(kept, beginning_of(stop, held_));
    end = held_.size() - kept;
  }
  std::string certain = held_.substr(0, end);
  held_.erase(0, end);
  return certain;
}

std::string StopStrings::finish() {
  return found_ ? std::string() : std::exchange(held_, {});
}

}  // namespace megalith::train
