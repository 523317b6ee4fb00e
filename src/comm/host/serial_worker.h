#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace megalith::comm {

// One thread that runs jobs in the order they came. It starts with the first job: most groups of a large mesh have
// none.
class SerialWorker {
 public:
  SerialWorker() = default;
  // Returns when every job has run.
  ~SerialWorker();
  SerialWorker(const SerialWorker&) = delete;
  SerialWorker& operator=(const SerialWorker&) = delete;

  // The future holds what the job throws.
  std::shared_future<void> submit(std::function<void()> job);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::packaged_task<void()>> jobs_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace megalith::comm
