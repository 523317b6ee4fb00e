#include "comm/gloo/gloo_transport.h"

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "comm/store/rendezvous.h"
#include "core/clock.h"

namespace megalith::comm {

namespace {
using Milliseconds = std::chrono::milliseconds;

class GlooStore final : public gloo::rendezvous::Store {
 public:
  GlooStore(StoreClient& store, double seconds) : store_(store), seconds_(seconds) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_.set("gloo/" + key, std::string(data.begin(), data.end()));
  }
  std::vector<char> get(const std::string& key) override {
    const std::string value = store_.get("gloo/" + key, seconds_);
    return {value.begin(), value.end()};
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) get(key);
  }

 private:
  StoreClient& store_;
  double seconds_;
};

Milliseconds milliseconds_until(double moment) {
  return Milliseconds(static_cast<int64_t>(std::ceil(std::max(0.0, moment - monotonic_seconds()) * 1e3)));
}

// Gloo tells its exceptions apart by text alone. After a time-out of ours it fails everything else that is pending with
// the second text.
bool is_time_out(const std::string& text) {
  return text.find("Timed out waiting") != std::string::npos || text.find("Application timeout") != std::string::npos;
}

class Traveller {
 public:
  Traveller(gloo::Context& context, const Letter& letter, bool outgoing)
      : peer_(letter.peer),
        outgoing_(outgoing),
        buffer_(context.createUnboundBuffer(letter.data, static_cast<size_t>(letter.bytes))) {
    outgoing ? buffer_->send(letter.peer, letter.tag) : buffer_->recv(letter.peer, letter.tag);
  }

  int peer() const { return peer_; }
  void wait(double until) const {
    const Milliseconds left = milliseconds_until(until);
    outgoing_ ? buffer_->waitSend(left) : buffer_->waitRecv(left);
  }

 private:
  int peer_;
  bool outgoing_;
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

// Peers that letters are missing from, by why.
struct Absent {
  std::set<int> silent;
  std::set<int> gone;

  void add(int peer, const std::string& why) { (is_time_out(why) ? silent : gone).insert(peer); }
  [[noreturn]] void raise() const { throw Undelivered({silent.begin(), silent.end()}, {gone.begin(), gone.end()}); }
};
}  // namespace

GlooTransport::GlooTransport(StoreClient& store, const std::string& address, int rank, int size, double seconds)
    : store_(store), rank_(rank) {
  auto device = gloo::transport::tcp::CreateDevice(address.c_str());
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->setTimeout(Milliseconds(static_cast<int64_t>(seconds * 1e3)));
  GlooStore addresses(store, seconds);
  try {
    context->connectFullMesh(addresses, device);
  } catch (const gloo::Exception& error) {
    fail(ErrorKind::comm, "rank {} could not connect to the other ranks: {}", rank, error.what());
  }
  context_ = std::move(context);
}

void GlooTransport::exchange(std::span<const Letter> sends, std::span<const Letter> receives, double seconds) {
  const double until = monotonic_seconds() + seconds;
  Absent absent;
  std::vector<Traveller> travellers;
  const auto begin = [&](const Letter& letter, bool outgoing) {
    try {
      travellers.emplace_back(*context_, letter, outgoing);
    } catch (const gloo::Exception& error) {
      absent.add(letter.peer, error.what());
    }
  };
  for (const Letter& letter : receives) begin(letter, false);
  for (const Letter& letter : sends) begin(letter, true);
  if (!absent.gone.empty()) absent.raise();
  for (const Traveller& traveller : travellers) {
    try {
      traveller.wait(until);
    } catch (const gloo::Exception& error) {
      absent.add(traveller.peer(), error.what());
      // Without time left the rest is only sorted into here and not here; a peer that died ends the call at once.
      if (!is_time_out(error.what())) break;
    }
  }
  if (!absent.silent.empty() || !absent.gone.empty()) absent.raise();
}

// The store may be gone as well, with rank 0: then there is nothing to say or to hear.
bool GlooTransport::leave_word(const std::string& reason) {
  try {
    store_.set(last_word_key(rank_), reason);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string GlooTransport::last_word_of(int peer) {
  constexpr double kWordSeconds = 1.0;  // Gloo closes the connections of a rank before that rank can speak
  try {
    return store_.get(last_word_key(peer), kWordSeconds);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace megalith::comm
