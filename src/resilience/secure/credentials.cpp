#include "resilience/secure/credentials.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

#include "config/fleet_environment.h"
#include "core/error.h"
#include "core/file.h"

namespace megalith::resilience {

namespace fs = std::filesystem;

namespace {
constexpr int64_t kDay = 24 * 3600;
constexpr int64_t kAuthorityDays = 3650;
constexpr int64_t kAlarmDays = 14;
constexpr int kSerialBits = 127;
constexpr int64_t kMostFileBytes = 64 << 10;
constexpr const char* kAuthorityFile = "ca.pem";
constexpr const char* kIdentityFile = "identity.pem";
constexpr const char* kKeyFile = "key.pem";

using Certificate = std::shared_ptr<X509>;
using Key = std::shared_ptr<EVP_PKEY>;
using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

// Of OpenSSL's calls here none fails but for lack of memory, or for a bug.
template <class Result>
Result must(Result result) {
  if (!result) {
    const char* const reason = ERR_reason_error_string(ERR_get_error());
    fail(ErrorKind::internal, "OpenSSL failed to make a certificate: {}", reason == nullptr ? "unknown" : reason);
  }
  return result;
}

Key new_key() {
  return {must(EVP_EC_gen("P-256")), EVP_PKEY_free};
}

void extend(X509& certificate, X509& issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      must(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str())), X509_EXTENSION_free);
  must(X509_add_ext(&certificate, extension.get(), -1));
}

// Valid since a day ago, for machines whose clocks do not agree. Not signed yet.
Certificate new_certificate(const std::string& name, EVP_PKEY& key, double now, int64_t days) {
  Certificate certificate(must(X509_new()), X509_free);
  must(X509_set_version(certificate.get(), X509_VERSION_3));
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> serial(must(BN_new()), BN_free);
  must(BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY));
  must(BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())));
  auto from = static_cast<time_t>(now);
  must(X509_time_adj_ex(X509_getm_notBefore(certificate.get()), -1, 0, &from));
  must(X509_time_adj_ex(X509_getm_notAfter(certificate.get()), static_cast<int>(days), 0, &from));
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                                  reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0));
  must(X509_set_pubkey(certificate.get(), &key));
  return certificate;
}

std::string text_of(BIO& bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(&bio, &text);
  return {text, static_cast<size_t>(size)};
}

std::string pem_of(X509& certificate) {
  const Bio bio(must(BIO_new(BIO_s_mem())), BIO_free);
  must(PEM_write_bio_X509(bio.get(), &certificate));
  return text_of(*bio);
}

std::string pem_of(EVP_PKEY& key) {
  const Bio bio(must(BIO_new(BIO_s_mem())), BIO_free);
  must(PEM_write_bio_PrivateKey(bio.get(), &key, nullptr, nullptr, 0, nullptr, nullptr));
  return text_of(*bio);
}

// Readers find the old file or the new one, and nobody but this user finds any.
void write_secret(const fs::path& path, const std::string& text) {
  File part = open_part_file(path);
  if (::fchmod(part.descriptor(), 0600) != 0) io_error_errno(fmt::format("cannot protect {}", part.path().string()));
  part.write(text);
  part.sync();
  publish(part.path(), path);
}

struct Authority {
  Certificate certificate;
  Key key;
};

// Nothing where there is none of that kind.
Certificate certificate_in(const std::string& pem) {
  const Bio bio(must(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))), BIO_free);
  return {PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free};
}

Key key_in(const std::string& pem) {
  const auto no_password = [](char*, int, int, void*) { return -1; };
  const Bio bio(must(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))), BIO_free);
  return {PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr), EVP_PKEY_free};
}

std::string read_small_file(const fs::path& path, const std::string& advice) {
  const int64_t size = size_if_there(path);
  if (size < 0) user_error("{}: no such file; {}", path.string(), advice);
  if (size > kMostFileBytes) user_error("{}: {} bytes are no credentials", path.string(), size);
  try {
    return read_text(path);
  } catch (const Error& error) {
    user_error("{}", error.what());
  }
}

std::string read_secret(const fs::path& path, const std::string& advice) {
  std::string text = read_small_file(path, advice);
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) io_error_errno(fmt::format("cannot look at {}", path.string()));
  if ((info.st_mode & 0027) != 0) {
    user_error("{} has mode {:04o}: others than its owner can use the key in it; make it 0600 (chmod 600)",
               path.string(), info.st_mode & 07777);
  }
  return text;
}

Authority authority_in(const CredentialRequest& request) {
  const fs::path folder = request.folder / "ca";
  const fs::path key_file = folder / kKeyFile;
  const fs::path certificate_file = folder / kAuthorityFile;
  if (size_if_there(key_file) >= 0 || size_if_there(certificate_file) >= 0) {
    const std::string advice = "an authority has both its key and its certificate there, or neither";
    const Authority found{.certificate = certificate_in(read_small_file(certificate_file, advice)),
                          .key = key_in(read_secret(key_file, advice))};
    if (!found.certificate || !found.key || X509_check_private_key(found.certificate.get(), found.key.get()) != 1)
      user_error("{} holds no certificate of an authority and its key, as PEM", folder.string());
    auto until = static_cast<time_t>(request.now) + request.days * kDay;
    if (X509_cmp_time(X509_get0_notAfter(found.certificate.get()), &until) < 0) {
      user_error("the authority in {} expires before {} days have passed: remove that folder for a new one",
                 folder.string(), request.days);
    }
    return found;
  }
  const Key key = new_key();
  const int64_t days = std::max(kAuthorityDays, request.days + kDay);
  const Certificate certificate = new_certificate("megalith authority", *key, request.now, days);
  must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get())));
  extend(*certificate, *certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(*certificate, *certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(*certificate, *certificate, NID_subject_key_identifier, "hash");
  must(X509_sign(certificate.get(), key.get(), EVP_sha256()));
  make_private_directory(folder);
  write_secret(key_file, pem_of(*key));
  write_secret(certificate_file, pem_of(*certificate));
  return {.certificate = certificate, .key = key};
}

void make_identity(const fs::path& folder, const Identity& identity, const Authority& authority,
                   const CredentialRequest& request) {
  const Key key = new_key();
  const Certificate certificate =
      new_certificate(fmt::format("megalith {}", words_of(identity)), *key, request.now, request.days);
  must(X509_set_issuer_name(certificate.get(), X509_get_subject_name(authority.certificate.get())));
  const bool serves = identity.role == Role::supervisor;
  extend(*certificate, *authority.certificate, NID_basic_constraints, "critical,CA:FALSE");
  extend(*certificate, *authority.certificate, NID_key_usage, "critical,digitalSignature");
  extend(*certificate, *authority.certificate, NID_ext_key_usage, serves ? "serverAuth" : "clientAuth");
  extend(*certificate, *authority.certificate, NID_authority_key_identifier, "keyid:always");
  extend(*certificate, *authority.certificate, NID_subject_alt_name, "URI:" + uri_of(identity));
  must(X509_sign(certificate.get(), authority.key.get(), EVP_sha256()));
  make_private_directory(folder);
  write_secret(folder / kAuthorityFile, pem_of(*authority.certificate));
  write_secret(folder / kIdentityFile, pem_of(*certificate) + pem_of(*key));
}

double seconds_of(const ASN1_TIME* time, double now) {
  const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> from(
      must(ASN1_TIME_set(nullptr, static_cast<time_t>(now))), ASN1_TIME_free);
  int days = 0;
  int seconds = 0;
  if (ASN1_TIME_diff(&days, &seconds, from.get(), time) != 1) return 0.0;
  return now + static_cast<double>(days) * kDay + seconds;
}

std::string date_of(const ASN1_TIME* time) {
  std::tm date{};
  if (ASN1_TIME_to_tm(time, &date) != 1) return "?";
  return fmt::format("{:04}-{:02}-{:02}", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday);
}

void check_dates(const fs::path& file, const X509& certificate, double now) {
  const ASN1_TIME* const first = X509_get0_notBefore(&certificate);
  const ASN1_TIME* const last = X509_get0_notAfter(&certificate);
  if (now > seconds_of(last, now)) {
    user_error("{}: expired on {}; make new credentials with `megalith supervise --make-credentials`", file.string(),
               date_of(last));
  }
  if (now < seconds_of(first, now)) {
    user_error("{}: is not valid before {}; does this machine's clock run late?", file.string(), date_of(first));
  }
}

void check_issuer(const fs::path& folder, X509& certificate, X509& authority, double now) {
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(must(X509_STORE_new()), X509_STORE_free);
  must(X509_STORE_add_cert(store.get(), &authority));
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(must(X509_STORE_CTX_new()),
                                                                                X509_STORE_CTX_free);
  must(X509_STORE_CTX_init(context.get(), store.get(), &certificate, nullptr));
  X509_STORE_CTX_set_time(context.get(), 0, static_cast<time_t>(now));
  if (X509_verify_cert(context.get()) == 1) return;
  user_error("{}: is not of the authority in {} ({}); take both from the same --make-credentials folder",
             (folder / kIdentityFile).string(), kAuthorityFile,
             X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
}
}  // namespace

std::vector<fs::path> make_credentials(const CredentialRequest& request) {
  for (const std::string& node : request.nodes) {
    if (!config::is_node_name(node)) {
      user_error("'{}' is no name of a node: at most 64 letters, digits, '-', '_' and '.', no '.' in front", node);
    }
  }
  std::error_code status;
  const bool is_taken = fs::exists(request.folder, status) && !fs::is_directory(request.folder / "ca", status);
  if (is_taken && (!fs::is_directory(request.folder, status) || !fs::is_empty(request.folder, status))) {
    user_error("{} is there and holds no credentials: name a new or an empty folder", request.folder.string());
  }
  make_private_directory(request.folder);
  const Authority authority = authority_in(request);
  std::vector<fs::path> made;
  const auto make = [&](const fs::path& folder, const Identity& identity) {
    make_identity(request.folder / folder, identity, authority, request);
    made.push_back(request.folder / folder);
  };
  for (const Role role : {Role::supervisor, Role::monitor, Role::human_operator, Role::viewer})
    make(name_of(role), {.role = role});
  for (const std::string& node : request.nodes)
    make(fs::path("monitors") / node, {.role = Role::monitor, .node = node});
  return made;
}

Credentials load_credentials(const fs::path& folder, double now) {
  const std::string advice =
      "make credentials with `megalith supervise --make-credentials FOLDER`, and copy the folder of this role here";
  const fs::path authority_file = folder / kAuthorityFile;
  const fs::path identity_file = folder / kIdentityFile;
  const std::string identity_text = read_secret(identity_file, advice);
  Credentials loaded{.authority = certificate_in(read_small_file(authority_file, advice)),
                     .certificate = certificate_in(identity_text),
                     .key = key_in(identity_text),
                     .identity = {},
                     .file = identity_file.string()};
  ERR_clear_error();
  if (!loaded.authority) user_error("{}: holds no certificate, as PEM", authority_file.string());
  if (!loaded.certificate || !loaded.key)
    user_error("{}: holds no certificate and its key, as PEM", identity_file.string());
  if (X509_check_private_key(loaded.certificate.get(), loaded.key.get()) != 1)
    user_error("{}: the key is not that of the certificate", identity_file.string());
  check_dates(authority_file, *loaded.authority, now);
  check_dates(identity_file, *loaded.certificate, now);
  check_issuer(folder, *loaded.certificate, *loaded.authority, now);
  const std::optional<Identity> identity = identity_of(*loaded.certificate);
  if (!identity) user_error("{}: does not say in one URI megalith://ROLE whose it is", identity_file.string());
  loaded.identity = *identity;
  loaded.expires = std::min(seconds_of(X509_get0_notAfter(loaded.certificate.get()), now),
                            seconds_of(X509_get0_notAfter(loaded.authority.get()), now));
  return loaded;
}

Credentials load_credentials(const fs::path& folder, double now, Role role, const std::string& node) {
  Credentials loaded = load_credentials(folder, now);
  const Identity& found = loaded.identity;
  if (found.role != role) {
    user_error("{}: is the certificate of {}, and that of {} is needed", loaded.file, words_of(found),
               words_of({.role = role}));
  }
  if (!node.empty() && !found.node.empty() && found.node != node)
    user_error("{}: is the certificate of {}, and this node is {}", loaded.file, words_of(found), node);
  return loaded;
}

std::string expiry_alarm(const Credentials& credentials, double now) {
  const double left = credentials.expires - now;
  if (left > static_cast<double>(kAlarmDays * kDay)) return "";
  return fmt::format(
      "{}: expires in {:.0f} days, and nobody can connect with it then: make new credentials with `megalith supervise "
      "--make-credentials` and replace the files, nothing need be started again",
      credentials.file, std::max(0.0, left / kDay));
}

std::optional<Identity> identity_of(const x509_st& certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  if (!names) return std::nullopt;
  std::optional<Identity> identity;
  for (int index = 0; index < sk_GENERAL_NAME_num(names.get()); ++index) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), index);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                                static_cast<size_t>(ASN1_STRING_length(uri)));
    const std::optional<Identity> said = identity_of_uri(text);
    if (!said) continue;
    if (identity) return std::nullopt;
    identity = said;
  }
  return identity;
}

}  // namespace megalith::resilience
