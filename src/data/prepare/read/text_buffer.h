#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>

namespace megalith::data {

// Bytes that grow without being zeroed first, always followed by kPadding bytes that may be read (what they hold does
// not matter): parsers look ahead in whole registers.
class TextBuffer {
 public:
  static constexpr size_t kPadding = 64;

  char* data() { return bytes_.get(); }
  size_t size() const { return size_; }
  std::string_view view() const { return {bytes_.get(), size_}; }

  // Room for `extra` bytes behind the content; grow() then makes them content.
  std::span<char> room(size_t extra) {
    if (size_ + extra > capacity_) reserve(std::max(size_ + extra, capacity_ + capacity_ / 2));
    return {bytes_.get() + size_, extra};
  }
  void grow(size_t count) { size_ += count; }
  void shrink(size_t size) { size_ = size; }

  void append(std::string_view text) {
    if (text.empty()) return;
    std::memcpy(room(text.size()).data(), text.data(), text.size());
    grow(text.size());
  }

 private:
  void reserve(size_t capacity) {
    auto bytes = std::make_unique_for_overwrite<char[]>(capacity + kPadding);
    if (size_ > 0) std::memcpy(bytes.get(), bytes_.get(), size_);
    std::memset(bytes.get() + capacity, 0, kPadding);
    bytes_ = std::move(bytes);
    capacity_ = capacity;
  }

  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace megalith::data
