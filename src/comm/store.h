#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/packet_stream.h"

namespace megalith::comm {

// Where the ranks of a run find each other: keys and values over TCP.
//
// A run that starts again does so under a higher generation; processes of an earlier one are refused, so that they
// cannot take part by accident. Beyond this machine's loopback both sides must know one secret, which never travels:
// each proves with a keyed hash of both sides' random numbers that it knows it. What follows is neither encrypted nor
// signed: the network itself must be one's own.

struct StoreServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  int64_t generation = 0;
  std::string secret;
  double hello_deadline = 10.0;  // seconds for a new connection to say who it is
};

// Serves from a thread of its own until it is destroyed. A client that sends nonsense, too much or nothing is
// disconnected and disturbs nobody else.
class StoreServer {
 public:
  // User error for another address than loopback without a secret.
  explicit StoreServer(const StoreServerOptions& options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  uint16_t port() const;
  // Begins a new generation: forgets every key and disconnects everybody.
  void advance(int64_t generation);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

struct StoreClientOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int64_t generation = 0;
  int rank = 0;
  std::string secret;
  double connect_deadline = 60.0;  // seconds
  double answer_deadline = 60.0;   // seconds, for what the store can answer at once
};

// A rank's connection to the store; one call at a time, safe from several threads. A store that is gone, that does not
// answer or that refuses is a comm error that says why. After the first two every call is one, at once.
class StoreClient {
 public:
  explicit StoreClient(const StoreClientOptions& options);

  void set(const std::string& key, const std::string& value);
  // Waits until somebody has set the key; comm error after `seconds`.
  std::string get(const std::string& key, double seconds);
  // The sum, which other clients may have added to as well; a missing key counts as 0.
  int64_t add(const std::string& key, int64_t amount);
  // Sets the key if its value is `expected` ("" also means missing). The value that the key has now.
  std::string compare_and_set(const std::string& key, const std::string& expected, const std::string& desired);
  void wait(const std::vector<std::string>& keys, double seconds);
  // How many keys began with it.
  int64_t delete_prefix(const std::string& prefix);

  // This machine as the store's machine sees it: where other ranks can reach this one.
  std::string local_address() const { return stream_.socket().local_address(); }

 private:
  Packet request(const Packet& packet, double seconds);

  double answer_deadline_;
  std::mutex mutex_;
  PacketStream stream_;
};

}  // namespace megalith::comm
