#pragma once

#include <memory>
#include <string>

#include "comm/host/transport.h"
#include "comm/store/store.h"

namespace gloo {
class Context;
}

namespace megalith::comm {

// Letters between processes over TCP: one connection to every other rank of the run, through Gloo's unbound buffers.
// After a time-out every connection is closed, so that the others hear of it.
class GlooTransport final : public Transport {
 public:
  // Meets the other ranks through the store, which must outlive it; comm error when that takes longer than `seconds`.
  // `address`: of this machine, that the others know.
  GlooTransport(StoreClient& store, const std::string& address, int rank, int size, double seconds);

  void exchange(std::span<const Letter> sends, std::span<const Letter> receives, double seconds) override;
  bool leave_word(const std::string& reason) override;
  std::string last_word_of(int peer) override;

 private:
  StoreClient& store_;
  int rank_;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace megalith::comm
