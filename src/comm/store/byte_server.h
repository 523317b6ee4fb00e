#pragma once

#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>

#include "comm/store/packet_stream.h"

namespace megalith::comm {

// How a server is reached. Who does not know the secret, which is made anew for each server, is refused.
struct ByteServerAddress {
  std::string address;
  uint16_t port = 0;
  std::string secret;
};

// Lets other ranks read what this one offers under a name, in pieces, without the threads that train. Every connection
// has a thread of its own. Of those that do not know the secret only a few are kept, for a few seconds.
class ByteServer {
 public:
  // Fills the span with what lies at the offset. Any thread calls it, several at once.
  using Read = std::function<void(int64_t offset, std::span<std::byte> into)>;

  explicit ByteServer(const std::string& address);
  ~ByteServer();
  ByteServer(const ByteServer&) = delete;
  ByteServer& operator=(const ByteServer&) = delete;

  ByteServerAddress address() const;

  void offer(const std::string& name, int64_t bytes, Read read);
  // Nobody reads it any more when this returns.
  void withdraw(const std::string& name);

 private:
  struct Offer {
    int64_t bytes = 0;
    Read read;
  };
  struct Connection {
    PacketStream stream;
    bool is_known = false;  // knows the secret
    bool is_cut_off = false;
    bool is_over = false;
    std::thread thread = {};
  };

  void accept_clients();
  void converse(Connection& connection);
  void answer(PacketStream& stream, const Packet& request, std::span<std::byte> buffer) const;
  // Empty, or why the bytes cannot be had.
  std::string read(const std::string& name, int64_t offset, std::span<std::byte> into) const;
  void forget_ended();
  // The oldest of too many that have not proved themselves.
  void cut_off_stranger();

  std::string secret_;
  Socket listener_;
  mutable std::shared_mutex offers_mutex_;
  std::map<std::string, Offer> offers_;
  std::mutex connections_mutex_;
  std::list<Connection> connections_;
  bool stopping_ = false;
  std::thread acceptor_;
};

// Reads from a server, over one connection, on which threads take turns. Everything that goes wrong is a comm error.
class ByteReader {
 public:
  // `who`: how errors call the server.
  ByteReader(const ByteServerAddress& address, const std::string& who, double deadline);

  void read(const std::string& name, int64_t offset, std::span<std::byte> into);

 private:
  std::mutex mutex_;
  PacketStream stream_;
  double deadline_;  // seconds, for each piece
};

}  // namespace megalith::comm
