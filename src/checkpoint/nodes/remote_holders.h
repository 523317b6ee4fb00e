#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/format/byte_source.h"
#include "checkpoint/holdings.h"
#include "comm/store/byte_server.h"

namespace megalith::checkpoint {

// A node that serves what it holds (part_server.h).
struct RemoteHolder {
  std::string node;
  comm::ByteServerAddress place;
};

// A file for ranks of this node, of mode 0600: it has the servers' secrets. One line for each holder:
// "<node> <address> <port> <secret in hexadecimal digits>".
void write_holders(const std::filesystem::path& file, const std::vector<RemoteHolder>& holders);
// User error for a file that others can use, or that holds something else.
std::vector<RemoteHolder> read_holders(const std::filesystem::path& file);

// The way to them, for a rank. Nothing that a holder says is believed before it was checked; what it does not give is
// an I/O error, what makes no sense a data error.
class RemoteHolders {
 public:
  // `deadline`: seconds for one of them to answer.
  RemoteHolders(std::vector<RemoteHolder> holders, double deadline);

  std::vector<std::string> nodes() const;

  struct ListedPart {
    SaveId save;
    int64_t part = 0;
    int64_t manifest_bytes = 0;
  };
  std::vector<ListedPart> list(const std::string& node);
  Manifest manifest(const std::string& node, const ListedPart& part);
  // Opened places must not outlive this.
  ShardPlace place(const std::string& node, const FileDigests& shard);

 private:
  std::shared_ptr<comm::ByteReader> connect(const std::string& node);
  std::string read(const std::string& node, const std::string& name, int64_t bytes);

  double deadline_;
  std::map<std::string, comm::ByteServerAddress> places_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<comm::ByteReader>> readers_;
};

}  // namespace megalith::checkpoint
