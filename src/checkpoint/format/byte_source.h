#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace megalith::checkpoint {

// Bytes that lie somewhere: in a file, or on another node.
class ByteSource {
 public:
  virtual ~ByteSource() = default;

  // As errors call it.
  virtual const std::string& name() const = 0;
  virtual int64_t size() const = 0;
  // From any thread.
  virtual void read_at(int64_t offset, std::span<std::byte> into) = 0;
};

// Where a shard may be found.
struct ShardPlace {
  using Open = std::function<std::unique_ptr<ByteSource>()>;

  // A regular file, never reached through a link.
  ShardPlace(const std::filesystem::path& path);
  ShardPlace(std::string where, Open how) : name(std::move(where)), open(std::move(how)) {}

  std::string name;
  std::filesystem::path file;  // empty: it is none of this node
  Open open;
};

}  // namespace megalith::checkpoint
