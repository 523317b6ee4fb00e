#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace megalith::data {

// Text that has to wait. A character that repeats is counted, so that a run of equal ones takes no memory; at worst a
// byte takes a byte.
class RunStore {
 public:
  bool empty() const { return bytes_.empty(); }
  void clear() { *this = {}; }

  // `character` is one whole character, of valid UTF-8.
  void add(std::string_view character) {
    if (character == last_) {
      ++repeats_;
      return;
    }
    end_run();
    last_ = character;
    bytes_.insert(bytes_.end(), character.begin(), character.end());
  }

  // Hands the text over in pieces and forgets it.
  template <class Use>
  void take(Use&& use) {
    end_run();
    std::string piece, character;
    const auto put = [&](std::string_view text) {
      piece += text;
      if (piece.size() < kPiece) return;
      use(std::string_view(piece));
      piece.clear();
    };
    for (auto at = bytes_.begin(); at != bytes_.end();) {
      if (*at == kRepeat) {
        uint64_t count = 0;
        for (int shift = 0; shift < 64; shift += 8) count |= uint64_t{static_cast<unsigned char>(*++at)} << shift;
        ++at;
        for (; count > 0; --count) put(character);
      } else {
        character.assign(1, *at++);
        while (at != bytes_.end() && (static_cast<unsigned char>(*at) & 0xC0) == 0x80) character.push_back(*at++);
        put(character);
      }
    }
    if (!piece.empty()) use(std::string_view(piece));
    clear();
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 16;
  static constexpr char kRepeat = '\xFF';  // in no UTF-8; then the number of repeats in eight bytes

  void end_run() {
    if (repeats_ > 0 && repeats_ * last_.size() <= 9) {
      for (; repeats_ > 0; --repeats_) bytes_.insert(bytes_.end(), last_.begin(), last_.end());
    } else if (repeats_ > 0) {
      bytes_.push_back(kRepeat);
      for (int shift = 0; shift < 64; shift += 8) bytes_.push_back(static_cast<char>(repeats_ >> shift));
    }
    repeats_ = 0;
    last_.clear();
  }

  std::deque<char> bytes_;
  std::string last_;
  uint64_t repeats_ = 0;
};

}  // namespace megalith::data
