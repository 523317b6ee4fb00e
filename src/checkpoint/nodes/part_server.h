#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "checkpoint/holdings.h"
#include "comm/store/byte_server.h"

namespace megalith::checkpoint {

// Lets the ranks of a generation read what a node holds on which none of them runs: of spares, and of nodes that were
// dropped (remote_holders.h is the other side). Any process of the node may have one; it needs no rank.
//
// What is offered is a list of the parts, the manifest of each, and the shards, which are read from their files as
// they are asked for: nothing is kept open, and whoever reads checks every byte.
class PartServer {
 public:
  // `address`: of this node, as the others reach it.
  PartServer(NodeDirectories node, std::string run_id, const std::string& address);

  // Goes to other nodes by a way that nobody else can read.
  comm::ByteServerAddress place() const { return server_.address(); }

  // What is there now, in place of what was offered before.
  void offer();
  // Nobody reads anything any more when this returns.
  void withdraw();

 private:
  void add(const std::string& name, std::string text);

  NodeDirectories node_;
  std::string run_id_;
  std::mutex mutex_;
  std::vector<std::string> offered_;
  comm::ByteServer server_;
};

// The list has a line for each part, "<save id> <part> <bytes of its manifest>". How long it is and under which name it
// is offered is in a text of fixed length, since a reader must know how much to ask for: "<bytes> <digest>", and
// blanks.
namespace served {
constexpr const char* kListHead = "list";
constexpr int64_t kListHeadBytes = 64;
std::string list_name(const std::string& digest);
std::string manifest_name(const SaveId& save, int64_t part);
}  // namespace served

}  // namespace megalith::checkpoint
