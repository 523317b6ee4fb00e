#include "comm/world.h"
#include "core/error.h"

namespace megalith::comm {

std::unique_ptr<World> join_nccl(const JoinOptions&) {
  user_error("ranks on GPUs need NCCL, which this build of Megalith lacks; build with -DMEGALITH_CUDA=ON and NCCL");
}

}  // namespace megalith::comm
