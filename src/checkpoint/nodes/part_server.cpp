#include "checkpoint/nodes/part_server.h"

#include <cstring>
#include <memory>
#include <set>

#include "checkpoint/file_names.h"
#include "checkpoint/nodes/served_bytes.h"
#include "core/hash/digest.h"

namespace megalith::checkpoint {

namespace served {

std::string list_name(const std::string& digest) {
  return fmt::format("list/{}", digest);
}

std::string manifest_name(const SaveId& save, int64_t part) {
  return fmt::format("part/{}/{}", save.to_text(), part);
}

}  // namespace served

PartServer::PartServer(NodeDirectories node, std::string run_id, const std::string& address)
    : node_(std::move(node)), run_id_(std::move(run_id)), server_(address) {}

void PartServer::add(const std::string& name, std::string text) {
  const auto bytes = static_cast<int64_t>(text.size());
  server_.offer(name, bytes, [text = std::move(text)](int64_t offset, std::span<std::byte> into) {
    std::memcpy(into.data(), text.data() + offset, into.size());
  });
  offered_.push_back(name);
}

void PartServer::offer() {
  withdraw();
  const std::lock_guard lock(mutex_);
  std::string list;
  std::set<std::string> known;
  for (const HeldPart& part : parts_on(node_)) {
    if (part.manifest.state.run_id != run_id_) continue;
    const SaveId save = SaveId::of(part.manifest);
    const std::string name = served::manifest_name(save, part.manifest.part->rank);
    // In memory and on the disk it is the same.
    if (!known.insert(name).second) continue;
    std::string manifest = encode(part.manifest);
    list += fmt::format("{} {} {}\n", save.to_text(), part.manifest.part->rank, manifest.size());
    add(name, std::move(manifest));
    const FileDigests& shard = part.manifest.shards.front().digests;
    server_.offer(served_name(shard), shard.bytes, [path = part.shard](int64_t offset, std::span<std::byte> into) {
      open_plain_file(path).read_at(offset, into);
    });
    offered_.push_back(served_name(shard));
  }
  const std::string digest = digest_of(list);
  std::string head = fmt::format("{} {}", list.size(), digest);
  head.resize(served::kListHeadBytes, ' ');
  add(served::list_name(digest), std::move(list));
  add(served::kListHead, std::move(head));
}

void PartServer::withdraw() {
  const std::lock_guard lock(mutex_);
  for (const std::string& name : offered_) server_.withdraw(name);
  offered_.clear();
}

}  // namespace megalith::checkpoint
