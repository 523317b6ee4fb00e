#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/format/box.h"
#include "checkpoint/format/file_digests.h"
#include "core/tensor.h"

namespace megalith::checkpoint {

// Of a parameter; an amax history is that of the linear layer whose weight it is named after: (3, steps), of its input,
// weight and output gradient, newest first.
enum class TensorKind : uint8_t { weights, master, exp_avg, exp_avg_sq, amax_history };
std::string_view name_of(TensorKind kind);

// What fixes the order of samples (docs/design.md, law 1): kept with the run, so that lengthening it never reshuffles.
struct DataOrder {
  int64_t horizon = 0;
  int64_t seed = 0;

  bool operator==(const DataOrder&) const = default;
};

// Where a run stands, apart from its tensors. All text is UTF-8.
struct RunState {
  std::string run_id;
  int64_t step = 0;  // steps done
  int64_t consumed_samples = 0;
  DataOrder data;
  std::string config;                        // the run's config as YAML
  std::map<std::string, std::string> extra;  // what else the trainer needs to go on

  bool operator==(const RunState&) const = default;
};

struct ShardInfo {
  std::string file;  // a plain name in the checkpoint's directory
  FileDigests digests;

  bool operator==(const ShardInfo&) const = default;
};

struct TensorPiece {
  std::string shard;
  Box box;

  bool operator==(const TensorPiece&) const = default;
};

struct TensorInfo {
  std::string name;  // the logical name: "layers.12.attention.qkv.weight"
  TensorKind kind = TensorKind::weights;
  DType dtype = DType::f32;
  Shape shape;                      // of the whole tensor, on any layout
  std::vector<TensorPiece> pieces;  // each element lies in one

  bool operator==(const TensorInfo&) const = default;
};

// What one of the ranks that save together wrote.
struct Part {
  int64_t rank = 0;
  int64_t ranks = 1;

  bool operator==(const Part&) const = default;
};

// Says what a checkpoint consists of. Its presence is the commit: a directory without one is no checkpoint.
struct Manifest {
  static constexpr int64_t kVersion = 2;

  RunState state;
  std::optional<Part> part;  // nothing: it lists the whole checkpoint
  std::vector<ShardInfo> shards;
  std::vector<TensorInfo> tensors;

  bool operator==(const Manifest&) const = default;
};

// The whole from the parts of all ranks. Data error, which begins with `where`, unless they are one of each rank of one
// save and their pieces make up whole tensors.
Manifest merge(const std::vector<Manifest>& parts, const std::string& where);

// {"body":{...},"digest":"..."}: the digest covers the text of the body.
std::string encode(const Manifest& manifest);

// Accepts exactly what encode() can have written: any other byte, field, order or value is a data error that begins
// with `where`.
Manifest decode_manifest(std::string_view text, const std::string& where);

// The name that a piece of a tensor has inside its shard: "exp_avg/layers.12.attention.qkv.weight", and where it is not
// the whole, "@" and where it begins: "exp_avg/layers.12.attention.qkv.weight@128,0".
std::string stored_name(TensorKind kind, std::string_view name, const Shape& whole, const Box& box);

// A readable tree: the run, its tensors with types and shapes, sizes.
std::string describe(const Manifest& manifest);

}  // namespace megalith::checkpoint
