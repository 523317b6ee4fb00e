#pragma once

#include <memory>
#include <string>

#include "checkpoint/format/byte_source.h"
#include "checkpoint/format/file_digests.h"
#include "comm/store/byte_server.h"
#include "core/error.h"

namespace megalith::checkpoint {

// Under which a shard is offered.
std::string served_name(const FileDigests& shard);

// A shard at a server that offers it. `where`: as errors call it. What the network does to it is an I/O error.
std::unique_ptr<ByteSource> served_shard(std::shared_ptr<comm::ByteReader> reader, std::string where,
                                         const FileDigests& shard);

// What goes wrong between two machines is one more way in which a place cannot be read.
template <class Action>
auto as_io(const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::comm) throw;
    fail(ErrorKind::io, "{}", error.what());
  }
}

}  // namespace megalith::checkpoint
