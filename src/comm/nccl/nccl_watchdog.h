#pragma once

#include <nccl.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "core/error.h"

namespace megalith::comm {

// What a watchdog looks after.
class Watched {
 public:
  virtual ~Watched() = default;
  // The reason why the run cannot go on, once there is one.
  virtual std::optional<Error> find_failure() = 0;
  // Every call fails with the reason from now on. The communicator to abort, null when there is none any more.
  virtual ncclComm_t give_up(const Error& reason) = 0;
};

// Looks at the communicators of a rank a few times a second. The first failure ends all of them: ranks that wait for
// each other in different groups would otherwise wait out one deadline after the other.
class NcclWatchdog {
 public:
  explicit NcclWatchdog(int device);
  ~NcclWatchdog();
  NcclWatchdog(const NcclWatchdog&) = delete;
  NcclWatchdog& operator=(const NcclWatchdog&) = delete;

  void add(Watched& watched);
  void remove(Watched& watched);
  // Comm error when something has failed.
  void throw_if_failed();

 private:
  void work(int device);
  void fail_all(const Error& reason);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::set<Watched*> watched_;
  std::optional<Error> failure_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace megalith::comm
