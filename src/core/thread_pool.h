#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace megalith {

// Runs the tiles of a job on a fixed set of threads. Which thread runs a tile is not fixed, so a job whose tiles write
// disjoint results, cut independently of threads(), gives the same bits on any number of threads.
class ThreadPool {
 public:
  // threads counts the caller of run(): 1 means no worker at all.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls tile(0) ... tile(tiles - 1) and returns when all are done. The first exception is rethrown here. Not
  // reentrant.
  void run(int64_t tiles, const std::function<void(int64_t)>& tile);

 private:
  void work();
  void drain();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  uint64_t generation_ = 0;
  int busy_ = 0;
  bool stopping_ = false;
  const std::function<void(int64_t)>* tile_ = nullptr;
  int64_t tiles_ = 0;
  std::atomic<int64_t> next_{0};
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

// Threads worth using on this machine: the cores this process may run on.
int available_cores();

}  // namespace megalith
