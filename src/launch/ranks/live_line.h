#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace megalith::launch {

// The last line of a terminal, which a rank draws again and again: lines of others are written above it.
class LiveLine {
 public:
  explicit LiveLine(std::FILE* terminal) : terminal_(terminal) {}

  // Empty: there is none any more.
  void set(std::string text);
  void print(std::FILE* to, const std::string& line);

 private:
  std::FILE* terminal_;
  std::string text_;
};

// What a rank wrote since the end of its last line, as a terminal shows it: each "\r...\x1b[K" takes the place of what
// was there before.
struct LineState {
  std::string_view text;
  bool live = false;  // it was drawn to be drawn again
};
LineState shown_of(std::string_view written);

}  // namespace megalith::launch
