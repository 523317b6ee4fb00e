#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "comm/host/transport.h"

namespace megalith::comm {

// Where the threads of one process hand letters to each other. A letter lies on the desk of its reader, who copies it
// from the sender's memory.
struct LocalExchange {
  struct Posted {
    enum class State { waiting, being_read, read };
    Letter letter;
    State state = State::waiting;
  };
  struct Desk {
    std::condition_variable changed;
    std::map<std::pair<int, uint64_t>, std::shared_ptr<Posted>> letters;  // by sender and tag
    bool gone = false;                                                    // its rank
    std::string last_word;
  };

  explicit LocalExchange(int ranks) : desks(static_cast<size_t>(ranks)) {}
  Desk& desk(int rank) { return desks[static_cast<size_t>(rank)]; }

  std::mutex mutex;  // held for looking and posting, never for copying
  std::vector<Desk> desks;
};

class LocalTransport final : public Transport {
 public:
  LocalTransport(std::shared_ptr<LocalExchange> exchange, int rank);
  // Whoever waits for this rank hears that it is gone.
  ~LocalTransport() override;

  void exchange(std::span<const Letter> sends, std::span<const Letter> receives, double seconds) override;
  bool leave_word(const std::string& reason) override;
  std::string last_word_of(int peer) override;

 private:
  using Posted = LocalExchange::Posted;
  using Lock = std::unique_lock<std::mutex>;

  std::vector<std::shared_ptr<Posted>> post(std::span<const Letter> sends);
  // Reads those of `awaited` that lie on the desk and takes them off the list; false when there were none.
  bool read(Lock& lock, std::vector<Letter>& awaited);
  // Nobody touches the memory of the letters any more.
  void withdraw(Lock& lock, const std::vector<std::shared_ptr<Posted>>& posted);

  std::shared_ptr<LocalExchange> shared_;
  int rank_;
};

}  // namespace megalith::comm
