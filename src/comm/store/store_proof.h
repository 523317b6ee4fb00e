#pragma once

#include <cstdint>
#include <string>

namespace megalith::comm {

// What both sides of a new connection have said before either is believed.
struct Introduction {
  std::string server_nonce;
  std::string client_nonce;
  int64_t generation = 0;
  std::string rank;
};

// That the client, or the server, knows the secret. They differ, so that neither can be answered with the other's
// words.
std::string client_proof(const std::string& secret, const Introduction& introduction);
std::string server_proof(const std::string& secret, const Introduction& introduction);

constexpr size_t kNonceBytes = 16;

}  // namespace megalith::comm
