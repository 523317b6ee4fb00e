#include "train/tell.h"

#include <algorithm>

namespace megalith::train {

std::string tell(comm::Communicator& group, Stream& stream, const Tensor& room, const std::string& text, int teller) {
  const auto pass_on = [&](void* data, int64_t units) {
    const Tensor here(data, DType::i32, {units});
    const Tensor on_device(room.data, DType::i32, {units}, room.device);
    copy(stream, here, on_device);
    group.broadcast(stream, on_device, teller).wait(stream);
    copy(stream, on_device, here);
    stream.wait();
  };
  auto length = static_cast<int32_t>(text.size());
  pass_on(&length, 1);
  std::string heard = text;
  heard.resize(static_cast<size_t>(round_up(length, size_of(DType::i32))));
  const int64_t units = std::ssize(heard) / size_of(DType::i32);
  for (int64_t begin = 0; begin < units; begin += kTellingUnits) {
    pass_on(heard.data() + begin * size_of(DType::i32), std::min(units - begin, kTellingUnits));
  }
  heard.resize(static_cast<size_t>(length));
  return heard;
}

}  // namespace megalith::train
