#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "resilience/secure/identity.h"

// OpenSSL's, whose headers no other room needs.
struct evp_pkey_st;
struct x509_st;

namespace megalith::resilience {

// Certificates by role, with which supervisors and monitors prove over TCP who they are. A folder of credentials holds
//   ca.pem        the certificate of the authority whose word counts
//   identity.pem  a certificate of that authority, and its key, in one file, so that both are replaced at once

inline constexpr int64_t kCredentialDays = 400;

struct CredentialRequest {
  std::filesystem::path folder;
  std::vector<std::string> nodes;  // that get a certificate each
  int64_t days = kCredentialDays;
  double now = 0.0;  // wall seconds
};
// Makes an authority in FOLDER/ca, or takes the one that is there, and folders of credentials, new in any case:
// FOLDER/supervisor, monitor (for any node of a launch), monitors/NODE, operator, viewer. Returns these folders. The
// authority's key stays in FOLDER/ca. User error where FOLDER holds something else.
std::vector<std::filesystem::path> make_credentials(const CredentialRequest& request);

// A folder of credentials as it was when it was read.
struct Credentials {
  std::shared_ptr<x509_st> authority;
  std::shared_ptr<x509_st> certificate;
  std::shared_ptr<evp_pkey_st> key;
  Identity identity;
  std::string file;      // identity.pem, for messages
  double expires = 0.0;  // wall seconds: the certificate or its authority, whichever is first
};
// User error by the name of the file for what is missing, damaged, readable by others, expired, not valid yet, or of
// another authority.
Credentials load_credentials(const std::filesystem::path& folder, double now);
// The same, and for a certificate of another role, or of another node's monitor where `node` is given.
Credentials load_credentials(const std::filesystem::path& folder, double now, Role role, const std::string& node = "");

// What people should do while there is time; empty: more than 14 days are left.
std::string expiry_alarm(const Credentials& credentials, double now);

// Who the owner of this certificate is. Nothing where it does not say so in exactly one URI of ours.
std::optional<Identity> identity_of(const x509_st& certificate);

}  // namespace megalith::resilience
