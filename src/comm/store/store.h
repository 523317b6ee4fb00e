#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "comm/store/packet_stream.h"

namespace megalith::comm {

// Where the ranks of a run find each other: keys and values over TCP.
//
// A run that starts again does so under a higher generation; processes of an earlier one are refused, so that they
// cannot take part by accident. Both sides know one secret, which never travels: each proves with a keyed hash of both
// sides' random numbers that it knows it. On this machine's loopback alone it may be empty. What follows is neither
// encrypted nor signed: the network itself must be one's own.

struct StoreServerOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: any that is free
  int64_t generation = 0;
  std::string secret;
  double hello_deadline = 5.0;  // seconds for a new connection to prove that it knows the secret
  size_t expected_clients = 1;  // that may all come at once
};

// Serves from a thread of its own until it is destroyed. A client that sends nonsense, too much or nothing is
// disconnected and disturbs nobody else. Of those that have not proved themselves only so many are kept
// (kStrangers above expected_clients): the oldest makes room for the newest.
class StoreServer {
 public:
  static constexpr size_t kStrangers = 64;

  // User error for another address than loopback without a secret.
  explicit StoreServer(const StoreServerOptions& options);
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  uint16_t port() const;
  // That have proved themselves and are there now.
  int clients() const;

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
// answer or that refuses is a comm error that says why. After the first two every call is one, at once. One that breaks
// off before it has welcomed the client may be full of strangers: the client comes again until the deadline.
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
