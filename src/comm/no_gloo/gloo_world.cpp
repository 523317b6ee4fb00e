#include "comm/world.h"
#include "core/error.h"

namespace megalith::comm {

std::unique_ptr<World> join_gloo(const JoinOptions&) {
  user_error("ranks on CPUs need Gloo, which this build of Megalith lacks; install libgloo-dev and build again");
}

}  // namespace megalith::comm
