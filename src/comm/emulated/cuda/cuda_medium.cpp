#include <cuda_runtime_api.h>

#include <algorithm>

#include "comm/cuda/side_stream.h"
#include "comm/emulated/arrival.h"
#include "comm/emulated/cuda/call_launch.h"
#include "core/cuda/check.h"

namespace megalith::comm {

namespace {

static_assert(cuda::kLinks == kLinkKinds);

// What a call without length takes between two streams, which the latency of real calls holds already.
constexpr double kLaunchSeconds = 3e-6;

class Event final : public Pending::State {
 public:
  explicit Event(cudaStream_t stream) : end_(stream) {}
  void wait(Stream& stream) override { end_.order_before(static_cast<cudaStream_t>(stream.native())); }

 private:
  CudaEvent end_;
};

// Of all lanes.
struct CudaLinks {
  explicit CudaLinks(const Wire& wire) : memory("emulated links", Device::cuda, 2 * Arena::kAlignment) {
    active = static_cast<unsigned int*>(memory.allocate("calls under way", DType::i32, {kLinkKinds}).data);
    mark = static_cast<unsigned long long*>(memory.allocate("mark", DType::i64, {1}).data);
    for (size_t link = 0; link < rates.size(); ++link) rates[link] = wire.links[link].bytes_per_second;
  }

  Arena memory;
  unsigned int* active;
  unsigned long long* mark;
  std::array<double, kLinkKinds> rates{};
  Noise noise{Device::cuda};
};

class CudaLane final : public Lane {
 public:
  explicit CudaLane(CudaLinks& links) : links_(links), memory_("emulated calls", Device::cuda, Arena::kAlignment) {
    progress_ = static_cast<unsigned long long*>(memory_.allocate("progress", DType::i64, {1}).data);
  }

  Pending run(Stream& stream, const EmulatedCall& emulated) override {
    const Arrival arrival = arrival_of(stream, emulated, links_.noise);
    CudaEvent(static_cast<cudaStream_t>(stream.native())).order_before(side_.native());
    const cuda::CallTiming timing = timing_of(emulated);
    const int blocks = emulated.cost.blocks;
    megalith::cuda::check(arrival.reduces ? cuda::launch_reduce(timing, arrival.reduction, blocks, side_.native())
                                          : cuda::launch_copies(timing, arrival.copies, blocks, side_.native()),
                          "emulating a call between ranks");
    return Pending(std::make_shared<Event>(side_.native()));
  }

 private:
  static unsigned long long nanoseconds(double seconds) {
    return static_cast<unsigned long long>(std::max(0.0, seconds) * 1e9);
  }

  cuda::CallTiming timing_of(const EmulatedCall& emulated) {
    const CallCost cost = emulated.arrival ? CallCost{} : emulated.cost;
    cuda::CallTiming timing{.progress = progress_,
                            .number = ++calls_,
                            .latency_ns = nanoseconds(cost.latency - kLaunchSeconds),
                            .mark = emulated.arrival ? links_.mark : nullptr,
                            .arrival_ns = nanoseconds(emulated.arrival.value_or(0.0)),
                            .links = {}};
    for (size_t link = 0; link < links_.rates.size(); ++link) {
      timing.links[link] = {
          .active = links_.active + link, .bytes = cost.bytes[link], .bytes_per_ns = links_.rates[link] * 1e-9};
    }
    return timing;
  }

  CudaLinks& links_;
  Arena memory_;
  unsigned long long* progress_;
  SideStream side_;
  unsigned long long calls_ = 0;
};

class CudaMedium final : public Medium {
 public:
  explicit CudaMedium(const Wire& wire) : links_(wire) {}
  std::unique_ptr<Lane> make_lane() override { return std::make_unique<CudaLane>(links_); }
  void mark(Stream& stream) override {
    megalith::cuda::check(cuda::launch_mark(links_.mark, stream.native()), "marking a point on the GPU");
  }

 private:
  CudaLinks links_;
};

}  // namespace

std::unique_ptr<Medium> make_cuda_medium(const Wire& wire) {
  return std::make_unique<CudaMedium>(wire);
}

}  // namespace megalith::comm
