#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "comm/operation.h"

namespace megalith::comm {

// The last calls of a communicator, for whoever has to find out why one did not end. Safe from several threads.
class CallLog {
 public:
  struct Entry {
    Operation operation = Operation::barrier;
    int64_t sequence = 0;
    int64_t bytes = 0;
    double asked = 0.0;  // monotonic seconds
    double started = 0.0;
    double finished = 0.0;  // 0: not yet
  };

  // The ticket by which the call is known to started() and finished().
  int64_t asked(Operation operation, int64_t sequence, int64_t bytes);
  void started(int64_t ticket);
  void finished(int64_t ticket);

  // Oldest first: "all_reduce #7, 4096 bytes, done in 0.002 s; barrier #8, 0 bytes, running for 30.0 s".
  std::string describe() const;

 private:
  static constexpr int64_t kKept = 8;

  Entry& entry(int64_t ticket) { return entries_[static_cast<size_t>(ticket % kKept)]; }

  mutable std::mutex mutex_;
  std::array<Entry, kKept> entries_{};
  int64_t count_ = 0;
};

}  // namespace megalith::comm
