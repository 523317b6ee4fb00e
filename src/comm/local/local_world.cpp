#include "comm/local/local_world.h"

#include <exception>
#include <thread>

#include "comm/host/host_world.h"
#include "comm/local/local_transport.h"

namespace megalith::comm {

namespace {
class GroupNumbers {
 public:
  uint32_t operator()(const std::string& key) {
    const std::lock_guard lock(mutex_);
    return numbers_.emplace(key, static_cast<uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, uint32_t> numbers_;
};
}  // namespace

std::vector<std::unique_ptr<World>> make_local_worlds(int ranks) {
  const auto exchange = std::make_shared<LocalExchange>(ranks);
  const auto numbers = std::make_shared<GroupNumbers>();
  const auto board = std::make_shared<LocalBoard>();
  const auto places = std::make_shared<RankPlaces>(static_cast<size_t>(ranks), place_here("cpu", "127.0.0.1"));
  std::vector<std::unique_ptr<World>> worlds;
  worlds.reserve(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    worlds.push_back(std::make_unique<HostWorld>(rank, places, board, std::make_shared<LocalTransport>(exchange, rank),
                                                 [numbers](const std::string& key) { return (*numbers)(key); }));
  }
  return worlds;
}

void run_local_ranks(int ranks, const std::function<void(World&)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (auto& world : make_local_worlds(ranks)) {
    threads.emplace_back([&, own = std::move(world)]() mutable {
      try {
        body(*own);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
      }
      own.reset();
    });
  }
  for (auto& thread : threads) thread.join();
  if (failure != nullptr) std::rethrow_exception(failure);
}

}  // namespace megalith::comm
