#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace megalith::train {

// Ends a text that comes in pieces before the first of some strings. What may be the beginning of one is held back.
class StopStrings {
 public:
  explicit StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // What is certain by now to come before any of them.
  std::string add(std::string_view piece);
  // What was held back, at the end of the text.
  std::string finish();
  // Nothing that is added afterwards counts.
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace megalith::train
