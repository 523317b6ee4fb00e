#include "comm/store/store_proof.h"

#include <fmt/format.h>

#include "core/hash/crypto.h"

namespace megalith::comm {

namespace {
std::string proof(const std::string& secret, const char* side, const Introduction& introduction) {
  return keyed_hash(secret, fmt::format("megalith store {}\n{}{}{}\n{}", side, introduction.server_nonce,
                                        introduction.client_nonce, introduction.generation, introduction.rank));
}
}  // namespace

std::string client_proof(const std::string& secret, const Introduction& introduction) {
  return proof(secret, "client", introduction);
}

std::string server_proof(const std::string& secret, const Introduction& introduction) {
  return proof(secret, "server", introduction);
}

}  // namespace megalith::comm
