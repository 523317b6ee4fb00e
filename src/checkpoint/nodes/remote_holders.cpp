#include "checkpoint/nodes/remote_holders.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <limits>
#include <sstream>

#include "checkpoint/file_names.h"
#include "checkpoint/nodes/part_server.h"
#include "checkpoint/nodes/served_bytes.h"
#include "config/fleet_environment.h"
#include "core/file.h"
#include "core/hash/digest.h"

namespace megalith::checkpoint {

namespace {

constexpr int64_t kMaxListBytes = int64_t{16} << 20;
constexpr int64_t kMaxManifestBytes = int64_t{128} << 20;  // as decode_manifest() accepts
constexpr int64_t kMaxHoldersFileBytes = int64_t{4} << 20;

std::string to_hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return text;
}

// Nothing for what is none.
std::optional<std::string> from_hex(std::string_view text) {
  std::string bytes;
  if (text.empty() || text.size() % 2 != 0) return std::nullopt;
  for (; !text.empty(); text.remove_prefix(2)) {
    uint8_t byte = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + 2, byte, 16);
    if (status != std::errc{} || end != text.data() + 2) return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

std::optional<RemoteHolder> holder_in(const std::string& line) {
  std::istringstream words(line);
  RemoteHolder holder;
  std::string port;
  std::string secret;
  std::string more;
  words >> holder.node >> holder.place.address >> port >> secret;
  const std::optional<int64_t> number = parse_number(port);
  const std::optional<std::string> bytes = from_hex(secret);
  if (!config::is_node_name(holder.node) || !number || *number < 1 || *number > std::numeric_limits<uint16_t>::max() ||
      !bytes || words >> more)
    return std::nullopt;
  holder.place.port = static_cast<uint16_t>(*number);
  holder.place.secret = *bytes;
  return holder;
}

void check_private(const File& file) {
  struct stat info {};
  if (::fstat(file.descriptor(), &info) != 0) io_error_errno(fmt::format("cannot stat {}", file.path().string()));
  if (info.st_uid != ::geteuid() || (info.st_mode & 0077) != 0)
    user_error("{} has mode {:04o}: it holds secrets and must be this user's alone, 0600", file.path().string(),
               info.st_mode & 0777);
  if (info.st_size > kMaxHoldersFileBytes)
    user_error("{} has {} bytes: that is no list of holders", file.path().string(), info.st_size);
}

// "<save id> <part> <bytes of its manifest>"
std::optional<RemoteHolders::ListedPart> part_in(const std::string& line) {
  std::istringstream words(line);
  std::string save;
  std::string part;
  std::string bytes;
  std::string more;
  words >> save >> part >> bytes;
  const std::optional<SaveId> id = SaveId::from_text(save);
  const std::optional<int64_t> rank = parse_number(part);
  const std::optional<int64_t> size = parse_number(bytes);
  if (!id || !rank || *rank >= id->ranks || !size || *size < 1 || *size > kMaxManifestBytes || words >> more)
    return std::nullopt;
  return RemoteHolders::ListedPart{.save = *id, .part = *rank, .manifest_bytes = *size};
}

}  // namespace

void write_holders(const std::filesystem::path& file, const std::vector<RemoteHolder>& holders) {
  std::string text;
  for (const RemoteHolder& holder : holders)
    text +=
        fmt::format("{} {} {} {}\n", holder.node, holder.place.address, holder.place.port, to_hex(holder.place.secret));
  ::unlink(file.c_str());
  File made = File::create_new(file);
  if (::fchmod(made.descriptor(), 0600) != 0) io_error_errno(fmt::format("cannot protect {}", file.string()));
  made.write(text);
}

std::vector<RemoteHolder> read_holders(const std::filesystem::path& file) {
  const File opened = open_plain_file(file);
  check_private(opened);
  std::string text(static_cast<size_t>(opened.size()), '\0');
  opened.read_at(0, std::as_writable_bytes(std::span(text)));
  std::vector<RemoteHolder> holders;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<RemoteHolder> holder = holder_in(line);
    if (!holder)
      user_error("line {} of {} is no holder: expected node, address, port and secret", holders.size() + 1,
                 file.string());
    holders.push_back(*holder);
  }
  return holders;
}

RemoteHolders::RemoteHolders(std::vector<RemoteHolder> holders, double deadline) : deadline_(deadline) {
  for (RemoteHolder& holder : holders) places_[holder.node] = std::move(holder.place);
}

std::vector<std::string> RemoteHolders::nodes() const {
  std::vector<std::string> nodes;
  for (const auto& [node, place] : places_) nodes.push_back(node);
  return nodes;
}

std::vector<RemoteHolders::ListedPart> RemoteHolders::list(const std::string& node) {
  const auto refuse = [&](const char* what) { data_error("node {} serves {}", node, what); };
  std::istringstream head(read(node, served::kListHead, served::kListHeadBytes));
  std::string bytes;
  std::string digest;
  head >> bytes >> digest;
  const std::optional<int64_t> size = parse_number(bytes);
  if (!size || *size > kMaxListBytes || !is_digest(digest)) refuse("no list of parts");
  const std::string list = read(node, served::list_name(digest), *size);
  if (digest_of(list) != digest) refuse("another list than it says");
  std::vector<ListedPart> parts;
  std::istringstream lines(list);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<ListedPart> part = part_in(line);
    if (!part) refuse("a list with a line that names no part");
    parts.push_back(*part);
  }
  return parts;
}

Manifest RemoteHolders::manifest(const std::string& node, const ListedPart& part) {
  const std::string where = fmt::format("part {} of step {} on node {}", part.part, part.save.step, node);
  Manifest manifest =
      decode_manifest(read(node, served::manifest_name(part.save, part.part), part.manifest_bytes), where);
  if (!manifest.part || manifest.part->rank != part.part || manifest.shards.size() != 1 ||
      SaveId::of(manifest) != part.save)
    data_error("{} is not what its name says", where);
  return manifest;
}

ShardPlace RemoteHolders::place(const std::string& node, const FileDigests& shard) {
  const std::string where = fmt::format("the copy that node {} offers", node);
  return {where, [this, node, where, shard] { return served_shard(connect(node), where, shard); }};
}

std::string RemoteHolders::read(const std::string& node, const std::string& name, int64_t bytes) {
  std::string text(static_cast<size_t>(bytes), '\0');
  const std::shared_ptr<comm::ByteReader> reader = connect(node);
  as_io([&] { reader->read(name, 0, std::as_writable_bytes(std::span(text))); });
  return text;
}

std::shared_ptr<comm::ByteReader> RemoteHolders::connect(const std::string& node) {
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<comm::ByteReader> open = readers_[node].lock()) return open;
  const auto place = places_.find(node);
  if (place == places_.end()) fail(ErrorKind::io, "this rank was not told where node {} serves what it holds", node);
  std::shared_ptr<comm::ByteReader> reader;
  try {
    reader = std::make_shared<comm::ByteReader>(place->second, fmt::format("node {}", node), deadline_);
  } catch (const Error& error) {
    fail(ErrorKind::io, "node {}: {}", node, error.what());
  }
  readers_[node] = reader;
  return reader;
}

}  // namespace megalith::checkpoint
