#include "engine/rank_talk.h"

#include <algorithm>

namespace megalith::engine {

std::string RankTalk::broadcast(comm::Communicator& group, const std::string& text, int root) {
  if (group.is_alone()) return text;
  const auto pass_on = [&](void* data, int64_t units) {
    const Tensor here(data, DType::i32, {units});
    const Tensor on_device(room_.data, DType::i32, {units}, room_.device);
    copy(stream_, here, on_device);
    group.broadcast(stream_, on_device, root).wait(stream_);
    copy(stream_, on_device, here);
    stream_.wait();
  };
  auto length = static_cast<int32_t>(text.size());
  pass_on(&length, 1);
  std::string heard = text;
  heard.resize(static_cast<size_t>(round_up(length, size_of(DType::i32))));
  const int64_t units = std::ssize(heard) / size_of(DType::i32);
  for (int64_t begin = 0; begin < units; begin += kRoom) {
    pass_on(heard.data() + begin * size_of(DType::i32), std::min(units - begin, kRoom));
  }
  heard.resize(static_cast<size_t>(length));
  return heard;
}

std::vector<bool> RankTalk::any_rank(const std::vector<bool>& here) {
  if (world_.is_alone()) return here;
  std::vector<bool> somewhere(here.size());
  for (int64_t begin = 0; begin < std::ssize(here); begin += kRoom) {
    const int64_t count = std::min(kRoom, std::ssize(here) - begin);
    std::vector<float> votes(here.begin() + begin, here.begin() + begin + count);
    const Tensor on_host(votes.data(), DType::f32, {count});
    const Tensor on_device(room_.data, DType::f32, {count}, room_.device);
    copy(stream_, on_host, on_device);
    world_.all_reduce(stream_, on_device).wait(stream_);
    copy(stream_, on_device, on_host);
    stream_.wait();
    std::transform(votes.begin(), votes.end(), somewhere.begin() + begin, [](float vote) { return vote > 0.0F; });
  }
  return somewhere;
}

}  // namespace megalith::engine
