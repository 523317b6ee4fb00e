#include "core/thread_pool.h"

#include <sched.h>

#include <algorithm>

#include "core/error.h"

namespace megalith {

ThreadPool::ThreadPool(int threads) {
  MEGALITH_CHECK(threads >= 1, "a thread pool of {} threads", threads);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t tiles, const std::function<void(int64_t)>& tile) {
  if (tiles <= 0) return;
  if (tiles == 1 || workers_.empty()) {
    for (int64_t i = 0; i < tiles; ++i) tile(i);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    tile_ = &tile;
    tiles_ = tiles;
    next_ = 0;
    failure_ = nullptr;
    busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  wake_.notify_all();
  drain();
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void ThreadPool::drain() {
  try {
    for (int64_t i = next_++; i < tiles_; i = next_++) (*tile_)(i);
  } catch (...) {
    next_ = tiles_;
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
}

void ThreadPool::work() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    lock.unlock();
    drain();
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace megalith
