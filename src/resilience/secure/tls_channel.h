#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "resilience/secure/credentials.h"

struct ssl_st;

namespace megalith::resilience {

// One TCP connection under TLS 1.3, both of whose ends must show a certificate of the same authority, and after that a
// pipe: what one side of it reads, the other has written to a local socket. Whoever speaks over that socket needs to
// know nothing of TLS, and hears nothing of anybody who has not shown a certificate. Never waits; used by one thread.
class TlsChannel {
 public:
  enum class Side { accepts, connects };
  // Takes the socket, which must not block.
  TlsChannel(int socket, Side side, const Credentials& own);
  ~TlsChannel();
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;

  // Goes on as far as it can. Call when one of the descriptors is ready, in any order.
  void advance();
  void hang_up() { end(""); }
  // The connection has ended, or could not be made: `problem` says why, empty where the other side simply left.
  bool is_over() const { return is_over_; }
  const std::string& problem() const { return problem_; }
  // That is about certificates, and will not go away by itself.
  bool is_refusal() const { return is_refusal_; }

  // Both ends have shown who they are.
  bool is_secure() const { return is_secure_; }
  const Identity& peer() const { return peer_; }
  const std::string& address() const { return address_; }  // of the peer
  // Known to both ends of this connection and to nobody else: what names it names this connection.
  const std::string& binding() const { return binding_; }
  // Once it is secure, and before the next advance(): the other end of the local socket, for the caller to close.
  int open_local();

  // What to wait for, as poll() has it; 0: nothing.
  int socket() const { return socket_; }
  short socket_events() const;
  int local() const { return local_; }  // -1: there is none yet
  short local_events() const;

 private:
  // What was read and not yet written.
  struct Buffer {
    std::array<char, 16384> bytes;
    size_t from = 0;
    size_t to = 0;
    bool is_empty() const { return from == to; }
  };

  void shake_hands();
  void take_peer();
  bool read_socket();
  bool write_socket();
  bool read_local();
  bool write_local();
  // Of a call of OpenSSL that returned this: true where it only has to be called again.
  bool has_to_wait(int result);
  void end(const std::string& problem, bool is_refusal = false);

  int socket_;
  int local_ = -1;
  std::unique_ptr<ssl_st, void (*)(ssl_st*)> ssl_;
  Side side_;
  std::string address_;
  Identity peer_;
  std::string binding_;
  Buffer incoming_;
  Buffer outgoing_;
  bool wants_write_ = false;  // OpenSSL has to write before it can go on
  bool is_secure_ = false;
  bool is_over_ = false;
  bool is_refusal_ = false;
  std::string problem_;
};

}  // namespace megalith::resilience
