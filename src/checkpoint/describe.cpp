#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "checkpoint/format/manifest.h"
#include "core/words.h"

namespace megalith::checkpoint {

namespace {
int64_t bytes_of(const TensorInfo& tensor) {
  return tensor.shape.elements() * size_of(tensor.dtype);
}

struct KindTotal {
  int64_t tensors = 0;
  int64_t elements = 0;
  int64_t bytes = 0;
};
}  // namespace

std::string describe(const Manifest& manifest) {
  const RunState& state = manifest.state;
  std::string text = fmt::format("checkpoint at step {}\n", state.step);
  text += fmt::format("  run               {}\n", state.run_id);
  text += fmt::format("  consumed samples  {}\n", state.consumed_samples);
  text += fmt::format("  sample order      horizon {}, seed {}\n", state.data.horizon, state.data.seed);
  for (const auto& [key, value] : state.extra) {
    text += fmt::format("  {:<17} {}\n", key, value.size() > 60 ? value.substr(0, 60) + "..." : value);
  }

  text += "shards\n";
  int64_t total = 0;
  for (const ShardInfo& shard : manifest.shards) {
    total += shard.digests.bytes;
    text += fmt::format("  {}  {}  xxh3 {}\n", shard.file, bytes_in_words(shard.digests.bytes), shard.digests.whole);
  }

  std::map<TensorKind, KindTotal> kinds;
  size_t width = 0;
  for (const TensorInfo& tensor : manifest.tensors) {
    KindTotal& kind = kinds[tensor.kind];
    ++kind.tensors;
    kind.elements += tensor.shape.elements();
    kind.bytes += bytes_of(tensor);
    width = std::max(width, tensor.name.size());
  }
  for (const auto& [kind, sums] : kinds) {
    text += fmt::format("{}: {} tensors, {} elements, {}\n", name_of(kind), sums.tensors, sums.elements,
                        bytes_in_words(sums.bytes));
    for (const TensorInfo& tensor : manifest.tensors) {
      if (tensor.kind != kind) continue;
      text += fmt::format("  {:<{}}  {:<4}  {:<18}  {}\n", tensor.name, width, megalith::name_of(tensor.dtype),
                          to_string(tensor.shape), bytes_in_words(bytes_of(tensor)));
    }
  }
  return text + fmt::format("total {}\n", bytes_in_words(total));
}

}  // namespace megalith::checkpoint
