#include "resilience/secure/tls_channel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"
#include "resilience/secure/endpoint.h"

namespace megalith::resilience {

namespace {
constexpr size_t kBindingBytes = 32;
constexpr std::string_view kBindingLabel = "EXPORTER-megalith-control";

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

std::string openssl_problem() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason == nullptr ? "unknown" : reason;
}

// Nothing where OpenSSL does not take them. No session is ever resumed: each connection shows its certificates anew.
Context context_of(const Credentials& own) {
  Context context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  const bool is_made = context && SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION) == 1 &&
                       SSL_CTX_use_certificate(context.get(), own.certificate.get()) == 1 &&
                       SSL_CTX_use_PrivateKey(context.get(), own.key.get()) == 1 &&
                       X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), own.authority.get()) == 1 &&
                       SSL_CTX_set_num_tickets(context.get(), 0) == 1;
  if (!is_made) return {nullptr, SSL_CTX_free};
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_RELEASE_BUFFERS);
  return context;
}
}  // namespace

TlsChannel::TlsChannel(int socket, Side side, const Credentials& own)
    : socket_(socket), ssl_(nullptr, [](ssl_st* ssl) { SSL_free(ssl); }), side_(side), address_(peer_address(socket)) {
  const Context context = context_of(own);
  if (context) ssl_.reset(SSL_new(context.get()));
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_) != 1) {
    ::close(socket_);
    fail(ErrorKind::internal, "{}: OpenSSL begins no connection with it: {}", own.file, openssl_problem());
  }
  if (side_ == Side::accepts) {
    SSL_set_accept_state(ssl_.get());
  } else {
    SSL_set_connect_state(ssl_.get());
  }
}

TlsChannel::~TlsChannel() {
  if (is_secure_) SSL_shutdown(ssl_.get());  // as far as that goes at once
  ERR_clear_error();
  ssl_.reset();
  ::close(socket_);
  if (local_ >= 0) ::close(local_);
}

void TlsChannel::end(const std::string& problem, bool is_refusal) {
  is_over_ = true;
  is_refusal_ = is_refusal;
  problem_ = problem;
}

bool TlsChannel::has_to_wait(int result) {
  const int reason = SSL_get_error(ssl_.get(), result);
  wants_write_ = reason == SSL_ERROR_WANT_WRITE;
  if (reason == SSL_ERROR_WANT_READ || wants_write_) return true;
  if (reason == SSL_ERROR_SSL) {
    const long verified = SSL_get_verify_result(ssl_.get());
    const std::string why =
        verified == X509_V_OK ? openssl_problem() : std::string(X509_verify_cert_error_string(verified));
    // TLS has no close of its own for one who is killed: that is an end like any other.
    const bool is_cut = why.find("unexpected eof") != std::string::npos;
    end(is_cut ? "" : why, !is_cut);
  } else {
    end(reason == SSL_ERROR_SYSCALL && errno != 0 ? std::strerror(errno) : "");
  }
  ERR_clear_error();
  return false;
}

void TlsChannel::take_peer() {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl_.get()), X509_free);
  const std::optional<Identity> peer = certificate ? identity_of(*certificate) : std::nullopt;
  if (!peer) return end("its certificate does not say in one URI megalith://ROLE whose it is", true);
  peer_ = *peer;
  const bool is_expected = (side_ == Side::connects) == (peer_.role == Role::supervisor);
  if (!is_expected) return end("its certificate is that of " + words_of(peer_), true);
  std::array<unsigned char, kBindingBytes> binding{};
  if (SSL_export_keying_material(ssl_.get(), binding.data(), binding.size(), kBindingLabel.data(), kBindingLabel.size(),
                                 nullptr, 0, 0) != 1)
    return end("OpenSSL exports no key: " + openssl_problem());
  for (const unsigned char byte : binding) binding_ += fmt::format("{:02x}", byte);
  is_secure_ = true;
}

void TlsChannel::shake_hands() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    wants_write_ = false;
    return take_peer();
  }
  if (!has_to_wait(result) && problem_.empty()) problem_ = "it left before it had shown a certificate";
}

int TlsChannel::open_local() {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    end(std::string("cannot make a socket: ") + std::strerror(errno));
    return -1;
  }
  local_ = ends[0];
  return ends[1];
}

bool TlsChannel::read_socket() {
  if (!incoming_.is_empty()) return false;
  ERR_clear_error();
  errno = 0;
  const int got = SSL_read(ssl_.get(), incoming_.bytes.data(), static_cast<int>(incoming_.bytes.size()));
  if (got <= 0) {
    has_to_wait(got);
    return false;
  }
  wants_write_ = false;
  incoming_.from = 0;
  incoming_.to = static_cast<size_t>(got);
  return true;
}

bool TlsChannel::write_socket() {
  if (outgoing_.is_empty()) return false;
  ERR_clear_error();
  errno = 0;
  const int put =
      SSL_write(ssl_.get(), outgoing_.bytes.data() + outgoing_.from, static_cast<int>(outgoing_.to - outgoing_.from));
  if (put <= 0) {
    has_to_wait(put);
    return false;
  }
  wants_write_ = false;
  outgoing_.from += static_cast<size_t>(put);
  return true;
}

bool TlsChannel::read_local() {
  if (!outgoing_.is_empty()) return false;
  const ssize_t got = ::recv(local_, outgoing_.bytes.data(), outgoing_.bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {
    end("");
    return false;
  }
  outgoing_.from = 0;
  outgoing_.to = static_cast<size_t>(got);
  return true;
}

bool TlsChannel::write_local() {
  if (incoming_.is_empty()) return false;
  const ssize_t put =
      ::send(local_, incoming_.bytes.data() + incoming_.from, incoming_.to - incoming_.from, MSG_NOSIGNAL);
  if (put < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (put <= 0) {
    end("");
    return false;
  }
  incoming_.from += static_cast<size_t>(put);
  return true;
}

void TlsChannel::advance() {
  if (!is_secure_ && !is_over_) shake_hands();
  if (local_ < 0) return;
  // What has come is delivered before an end of the other side is.
  for (bool moves = true; moves && !is_over_;) {
    moves = write_local();
    if (!is_over_) moves = write_socket() || moves;
    if (!is_over_) moves = read_local() || moves;
    if (!is_over_) moves = read_socket() || moves;
  }
}

short TlsChannel::socket_events() const {
  if (is_over_) return 0;
  const bool reads = !is_secure_ || (local_ >= 0 && incoming_.is_empty());
  const bool writes = wants_write_ || (is_secure_ && !outgoing_.is_empty());
  return static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
}

short TlsChannel::local_events() const {
  if (is_over_ || local_ < 0) return 0;
  return static_cast<short>((outgoing_.is_empty() ? POLLIN : 0) | (incoming_.is_empty() ? 0 : POLLOUT));
}

}  // namespace megalith::resilience
