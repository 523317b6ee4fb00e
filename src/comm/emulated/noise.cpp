#include "comm/emulated/noise.h"

#include <vector>

#include "core/rng.h"

namespace megalith::comm {

namespace {

constexpr int64_t kElements = int64_t{1} << 20;

void draw(const Tensor& on_host, double scale) {
  dispatch_float(on_host.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T* values = on_host.as<T>();
    for (int64_t i = 0; i < kElements; ++i) {
      const double value = scale * normal_at(named_key(0, "emulated messages"), static_cast<uint64_t>(i));
      if constexpr (std::is_same_v<T, double>) {
        values[i] = value;
      } else {
        values[i] = T(static_cast<float>(value));
      }
    }
  });
}

}  // namespace

const Tensor& Noise::of(Stream& stream, DType dtype, double scale) {
  const auto known = made_.find({dtype, scale});
  if (known != made_.end()) return known->second.values;
  Made made{.memory = std::make_unique<Arena>("emulated messages", device_, Arena::footprint(dtype, kElements))};
  made.values = made.memory->allocate("noise", dtype, {kElements});
  std::vector<std::byte> drawn(static_cast<size_t>(made.values.bytes()));
  const Tensor on_host(drawn.data(), dtype, {kElements});
  draw(on_host, scale);
  copy(stream, on_host, made.values);
  stream.wait();
  return made_.emplace(std::pair{dtype, scale}, std::move(made)).first->second.values;
}

}  // namespace megalith::comm
