#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace megalith::config {

// Collects what is wrong, so that the user sees all of it at once.
class Problems {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  // Runs `body`; a user error that it throws becomes a problem.
  template <class Body>
  void guard(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
      lines_.push_back(error.what());
    }
  }

  void throw_if_any(const char* where) const {
    if (lines_.empty()) return;
    if (lines_.size() == 1) user_error("{}", lines_[0]);
    constexpr size_t kShown = 20;
    std::string text = fmt::format("{} problems in {}:", lines_.size(), where);
    for (size_t i = 0; i < lines_.size() && i < kShown; ++i) text += "\n  " + lines_[i];
    if (lines_.size() > kShown) text += fmt::format("\n  and {} more", lines_.size() - kShown);
    user_error("{}", text);
  }

 private:
  std::vector<std::string> lines_;
};

}  // namespace megalith::config
