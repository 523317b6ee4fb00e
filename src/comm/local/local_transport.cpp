#include "comm/local/local_transport.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>

namespace megalith::comm {

namespace {
using State = LocalExchange::Posted::State;

[[noreturn]] void give_up(LocalExchange& shared, const std::set<int>& absent, bool in_time) {
  std::vector<int> silent;
  std::vector<int> gone;
  for (const int peer : absent) (shared.desk(peer).gone ? gone : silent).push_back(peer);
  if (in_time) silent.clear();
  throw Undelivered(std::move(silent), std::move(gone));
}
}  // namespace

LocalTransport::LocalTransport(std::shared_ptr<LocalExchange> exchange, int rank)
    : shared_(std::move(exchange)), rank_(rank) {}

LocalTransport::~LocalTransport() {
  const std::lock_guard lock(shared_->mutex);
  shared_->desk(rank_).gone = true;
  for (auto& desk : shared_->desks) desk.changed.notify_all();
}

void LocalTransport::exchange(std::span<const Letter> sends, std::span<const Letter> receives, double seconds) {
  const auto ends = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Lock lock(shared_->mutex);
  const auto posted = post(sends);
  std::vector<Letter> awaited(receives.begin(), receives.end());
  bool in_time = true;
  while (true) {
    if (read(lock, awaited)) continue;
    std::set<int> absent;
    for (const Letter& letter : awaited) absent.insert(letter.peer);
    for (const auto& letter : posted) {
      if (letter->state != State::read) absent.insert(letter->letter.peer);
    }
    if (absent.empty()) return;
    const bool hopeless = std::any_of(absent.begin(), absent.end(), [&](int peer) { return shared_->desk(peer).gone; });
    if (hopeless || !in_time) {
      withdraw(lock, posted);
      give_up(*shared_, absent, in_time);
    }
    in_time = shared_->desk(rank_).changed.wait_until(lock, ends) == std::cv_status::no_timeout;
  }
}

bool LocalTransport::leave_word(const std::string& reason) {
  const std::lock_guard lock(shared_->mutex);
  shared_->desk(rank_).last_word = reason;
  return true;
}

std::string LocalTransport::last_word_of(int peer) {
  const std::lock_guard lock(shared_->mutex);
  return shared_->desk(peer).last_word;
}

std::vector<std::shared_ptr<LocalTransport::Posted>> LocalTransport::post(std::span<const Letter> sends) {
  std::vector<std::shared_ptr<Posted>> posted;
  for (const Letter& letter : sends) {
    auto& desk = shared_->desk(letter.peer);
    posted.push_back(std::make_shared<Posted>(Posted{.letter = letter}));
    const bool fresh = desk.letters.emplace(std::pair(rank_, letter.tag), posted.back()).second;
    MEGALITH_CHECK(fresh, "rank {} has sent two letters under tag {:x} to rank {}", rank_, letter.tag, letter.peer);
    desk.changed.notify_all();
  }
  return posted;
}

bool LocalTransport::read(Lock& lock, std::vector<Letter>& awaited) {
  auto& letters = shared_->desk(rank_).letters;
  for (auto letter = awaited.begin(); letter != awaited.end(); ++letter) {
    const auto found = letters.find({letter->peer, letter->tag});
    if (found == letters.end()) continue;
    const std::shared_ptr<Posted> posted = found->second;
    MEGALITH_CHECK(posted->letter.bytes == letter->bytes, "rank {} sent {} bytes, rank {} expected {}", letter->peer,
                   posted->letter.bytes, rank_, letter->bytes);
    letters.erase(found);
    posted->state = State::being_read;
    lock.unlock();
    if (letter->bytes > 0) std::memcpy(letter->data, posted->letter.data, static_cast<size_t>(letter->bytes));
    lock.lock();
    posted->state = State::read;
    shared_->desk(letter->peer).changed.notify_all();
    awaited.erase(letter);
    return true;
  }
  return false;
}

void LocalTransport::withdraw(Lock& lock, const std::vector<std::shared_ptr<Posted>>& posted) {
  for (const auto& letter : posted) {
    if (letter->state == State::waiting) shared_->desk(letter->letter.peer).letters.erase({rank_, letter->letter.tag});
    shared_->desk(rank_).changed.wait(lock, [&] { return letter->state != State::being_read; });
  }
}

}  // namespace megalith::comm
