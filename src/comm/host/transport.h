#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"

namespace megalith::comm {

// Bytes for, or from, another rank of the run. Those sent under a tag go to whoever receives from this rank under it.
struct Letter {
  int peer = 0;  // global rank
  uint64_t tag = 0;
  void* data = nullptr;
  int64_t bytes = 0;
};

// Letters could not all be exchanged: some peers said nothing in time, some are gone.
class Undelivered : public Error {
 public:
  Undelivered(std::vector<int> silent, std::vector<int> gone)
      : Error(ErrorKind::comm, "undelivered", {.ranks = both(silent, gone)}),
        silent_(std::move(silent)),
        gone_(std::move(gone)) {}

  // Global ranks, ascending.
  const std::vector<int>& silent() const { return silent_; }
  const std::vector<int>& gone() const { return gone_; }

 private:
  static std::vector<int> both(const std::vector<int>& silent, const std::vector<int>& gone) {
    std::vector<int> ranks;
    std::merge(silent.begin(), silent.end(), gone.begin(), gone.end(), std::back_inserter(ranks));
    return ranks;
  }

  std::vector<int> silent_;
  std::vector<int> gone_;
};

// Carries bytes between ranks. All collectives of host memory are made of this one call, so that every transport gives
// the same bits. Safe from several threads that use different tags.
class Transport {
 public:
  virtual ~Transport() = default;

  // Returns when the peers have taken all of `sends` and all of `receives` are here. Throws Undelivered `seconds` from
  // now; none of the memory is touched after that.
  virtual void exchange(std::span<const Letter> sends, std::span<const Letter> receives, double seconds) = 0;

  // Why this rank gives up, for those who will miss it: who fails because of another can then name that other. False
  // where rank 0, which keeps the words, does not answer.
  virtual bool leave_word(const std::string& reason) = 0;
  // Empty when the peer has left none.
  virtual std::string last_word_of(int peer) = 0;
};

}  // namespace megalith::comm
