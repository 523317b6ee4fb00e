#include "comm/store/board.h"

#include <chrono>
#include <thread>

#include "comm/store/packet.h"
#include "comm/store/store.h"
#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

namespace {
constexpr size_t kPageBytes = kMaxPacketBytes / 2;

std::string page_key(const std::string& key, size_t page) {
  return fmt::format("{}#{}", key, page);
}

std::string on_board(const std::string& key) {
  return "board/" + key;
}
}  // namespace

// The number of pages is posted last: who reads it finds them all.
void Board::post(const std::string& key, const std::string& text) {
  size_t pages = 0;
  for (size_t begin = 0; begin < text.size(); begin += kPageBytes)
    set(page_key(key, pages++), text.substr(begin, kPageBytes));
  set(key, std::to_string(pages));
}

std::optional<std::string> Board::read(const std::string& key) {
  const std::string pages = get(key);
  if (pages.empty()) return std::nullopt;
  std::string text;
  for (size_t page = 0; page < std::stoull(pages); ++page) text += get(page_key(key, page));
  return text;
}

std::string Board::await(const std::string& key, double seconds, const std::string& what) {
  const double until = monotonic_seconds() + seconds;
  return await(
      key, [until] { return until - monotonic_seconds(); }, what);
}

std::string Board::await(const std::string& key, const SecondsLeft& seconds_left, const std::string& what) {
  const double begin = monotonic_seconds();
  auto pause = std::chrono::milliseconds(1);
  while (true) {
    if (std::optional<std::string> text = read(key)) return *std::move(text);
    if (seconds_left() < 0.0)
      fail(ErrorKind::comm, "{} did not come within {:.1f} s", what, monotonic_seconds() - begin);
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(100));
  }
}

void LocalBoard::remove(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  std::erase_if(values_, [&](const auto& entry) { return entry.first.starts_with(prefix); });
}

void LocalBoard::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(mutex_);
  values_[key] = value;
}

std::string LocalBoard::get(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::string() : found->second;
}

void StoreBoard::remove(const std::string& prefix) {
  store_.delete_prefix(on_board(prefix));
}

void StoreBoard::set(const std::string& key, const std::string& value) {
  store_.set(on_board(key), value);
}

// Asking the store to replace nothing by nothing tells what it holds.
std::string StoreBoard::get(const std::string& key) {
  return store_.compare_and_set(on_board(key), "", "");
}

}  // namespace megalith::comm
