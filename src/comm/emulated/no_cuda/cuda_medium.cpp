#include "comm/emulated/medium.h"
#include "core/error.h"

namespace megalith::comm {

std::unique_ptr<Medium> make_cuda_medium(const Wire&) {
  user_error("a wire is emulated on a GPU, but this build of Megalith has no CUDA: build with -DMEGALITH_CUDA=ON");
}

}  // namespace megalith::comm
