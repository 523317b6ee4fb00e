#include "checkpoint/format/manifest.h"

#include <array>
#include <optional>
#include <set>
#include <unordered_set>

#include "checkpoint/file_names.h"
#include "checkpoint/format/safetensors.h"
#include "checkpoint/format/strict_json.h"
#include "core/error.h"

namespace megalith::checkpoint {

using nlohmann::json;

namespace {
constexpr std::string_view kFormat = "megalith-checkpoint";
constexpr JsonLimits kLimits{.max_bytes = int64_t{128} << 20, .max_values = int64_t{8} << 20, .max_depth = 8};
constexpr int64_t kMinChunkBytes = int64_t{4} << 10;
constexpr int64_t kMaxChunkBytes = int64_t{256} << 20;
constexpr int64_t kMaxRanks = int64_t{1} << 20;
constexpr std::array kKinds = {TensorKind::weights, TensorKind::master, TensorKind::exp_avg, TensorKind::exp_avg_sq,
                               TensorKind::amax_history};
constexpr std::array kTypes = {DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64};

json to_json(const Shape& shape) {
  json dims = json::array();
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

json to_json(const ShardInfo& shard) {
  return {{"file", shard.file},
          {"bytes", shard.digests.bytes},
          {"digest", shard.digests.whole},
          {"chunk_bytes", shard.digests.chunk_bytes},
          {"chunk_digests", shard.digests.chunks}};
}

json to_json(const TensorPiece& piece) {
  return {{"shard", piece.shard}, {"offset", to_json(piece.box.offset)}, {"extent", to_json(piece.box.extent)}};
}

json to_json(const TensorInfo& tensor) {
  json pieces = json::array();
  for (const TensorPiece& piece : tensor.pieces) pieces.push_back(to_json(piece));
  return {{"name", tensor.name},
          {"kind", name_of(tensor.kind)},
          {"dtype", name_of(tensor.dtype)},
          {"shape", to_json(tensor.shape)},
          {"pieces", std::move(pieces)}};
}

json body_of(const Manifest& manifest) {
  json shards = json::array();
  for (const ShardInfo& shard : manifest.shards) shards.push_back(to_json(shard));
  json tensors = json::array();
  for (const TensorInfo& tensor : manifest.tensors) tensors.push_back(to_json(tensor));
  const RunState& state = manifest.state;
  json body = {{"format", kFormat},
               {"version", Manifest::kVersion},
               {"run_id", state.run_id},
               {"step", state.step},
               {"consumed_samples", state.consumed_samples},
               {"data", {{"horizon", state.data.horizon}, {"seed", state.data.seed}}},
               {"config", state.config},
               {"extra", state.extra},
               {"shards", std::move(shards)},
               {"tensors", std::move(tensors)}};
  if (manifest.part) body["part"] = {{"rank", manifest.part->rank}, {"ranks", manifest.part->ranks}};
  return body;
}

Shape take_shape(StrictObject& object, const char* key) {
  const std::vector<int64_t> dims = object.take_ints(key);
  const std::optional<Shape> shape = to_shape(dims);
  if (!shape || !byte_count(dims, sizeof(double))) object.refuse(fmt::format("'{}' is not a shape", key));
  return *shape;
}

template <class Enum, size_t N>
Enum take_name(StrictObject& object, const char* key, const std::array<Enum, N>& values) {
  const std::string text = object.take_string(key);
  for (const Enum value : values) {
    if (name_of(value) == text) return value;
  }
  object.refuse(fmt::format("unknown {} '{}'", key, text));
}

ShardInfo parse_shard(const json& value, const std::string& where) {
  StrictObject object(value, where + ": a shard");
  ShardInfo shard{.file = object.take_string("file"), .digests = {}};
  if (!parse_shard_name(shard.file)) object.refuse(fmt::format("'{}' is not the name of a shard", shard.file));
  shard.digests.bytes = object.take_int("bytes", 1);
  shard.digests.whole = object.take_string("digest");
  shard.digests.chunk_bytes = object.take_int("chunk_bytes", kMinChunkBytes, kMaxChunkBytes);
  for (const json& digest : object.take_array("chunk_digests")) {
    if (!digest.is_string()) object.refuse("a chunk's digest is not a string");
    shard.digests.chunks.push_back(digest.get<std::string>());
    if (!is_digest(shard.digests.chunks.back())) object.refuse("a chunk's digest is not a digest");
  }
  object.finish();
  if (shard.digests.whole != digest_of_chunks(shard.digests.chunks))
    object.refuse("'digest' is not that of the chunks");
  const int64_t chunks = (shard.digests.bytes - 1) / shard.digests.chunk_bytes + 1;
  if (static_cast<int64_t>(shard.digests.chunks.size()) != chunks) {
    object.refuse(fmt::format("{} chunk digests, {} are needed", shard.digests.chunks.size(), chunks));
  }
  return shard;
}

TensorPiece parse_piece(const json& value, const TensorInfo& tensor, const std::string& where) {
  StrictObject object(value, fmt::format("{}: a piece of '{}'", where, tensor.name));
  TensorPiece piece{.shard = object.take_string("shard"), .box = {}};
  piece.box = {.offset = take_shape(object, "offset"), .extent = take_shape(object, "extent")};
  object.finish();
  if (!lies_in(piece.box, tensor.shape)) object.refuse("it does not lie in the tensor");
  return piece;
}

TensorInfo parse_tensor(const json& value, const std::string& where) {
  StrictObject object(value, where + ": a tensor");
  TensorInfo tensor;
  tensor.name = object.take_string("name");
  if (!is_tensor_name(tensor.name)) object.refuse("its name is empty, too long or not printable");
  tensor.kind = take_name(object, "kind", kKinds);
  tensor.dtype = take_name(object, "dtype", kTypes);
  tensor.shape = take_shape(object, "shape");
  for (const json& piece : object.take_array("pieces")) tensor.pieces.push_back(parse_piece(piece, tensor, where));
  object.finish();
  return tensor;
}

std::optional<Part> parse_part(StrictObject& body, const std::string& where) {
  if (!body.has("part")) return std::nullopt;
  StrictObject object(body.take("part"), where + ": part");
  const int64_t ranks = object.take_int("ranks", 1, kMaxRanks);
  const Part part{.rank = object.take_int("rank", 0, ranks - 1), .ranks = ranks};
  object.finish();
  return part;
}

RunState parse_state(StrictObject& body, const std::string& where) {
  RunState state;
  state.run_id = body.take_string("run_id");
  state.step = body.take_int("step");
  state.consumed_samples = body.take_int("consumed_samples");
  StrictObject data(body.take("data"), where + ": data");
  state.data.horizon = data.take_int("horizon");
  state.data.seed = data.take_int("seed", std::numeric_limits<int64_t>::min());
  data.finish();
  state.config = body.take_string("config");
  const json& extra = body.take("extra");
  if (!extra.is_object()) body.refuse("'extra' is not an object");
  for (const auto& [key, value] : extra.items()) {
    if (!value.is_string()) body.refuse(fmt::format("extra '{}' is not a string", key));
    state.extra[key] = value.get<std::string>();
  }
  return state;
}

// The sum of the pieces' elements cannot overflow: each lies in the tensor, and check_references() has seen that they
// fit into the shards.
void check_pieces(const TensorInfo& tensor, bool is_part, const std::string& where) {
  std::vector<Box> boxes;
  int64_t elements = 0;
  for (const TensorPiece& piece : tensor.pieces) {
    boxes.push_back(piece.box);
    elements += piece.box.extent.elements();
  }
  if (boxes.empty() || !are_disjoint(boxes)) {
    data_error("{}: the pieces of the {} of '{}' {}", where, name_of(tensor.kind), tensor.name,
               boxes.empty() ? "are missing" : "overlap");
  }
  if (!is_part && elements != tensor.shape.elements()) {
    data_error("{}: the pieces of the {} of '{}' are not all of it", where, name_of(tensor.kind), tensor.name);
  }
}

void check_references(const Manifest& manifest, const std::string& where) {
  if (manifest.shards.empty()) data_error("{}: no shards", where);
  std::unordered_set<std::string> shards;
  int64_t room = 0;
  for (const ShardInfo& shard : manifest.shards) {
    if (__builtin_add_overflow(room, shard.digests.bytes, &room)) data_error("{}: impossible sizes of shards", where);
    if (!shards.insert(shard.file).second) data_error("{}: shard {} stands twice", where, shard.file);
  }
  std::set<std::pair<TensorKind, std::string_view>> tensors;
  for (const TensorInfo& tensor : manifest.tensors) {
    if (!tensors.emplace(tensor.kind, tensor.name).second) {
      data_error("{}: the {} of '{}' stand twice", where, name_of(tensor.kind), tensor.name);
    }
    for (const TensorPiece& piece : tensor.pieces) {
      if (!shards.contains(piece.shard)) {
        data_error("{}: tensor '{}' lies in a shard that is not listed", where, tensor.name);
      }
      room -= piece.box.extent.elements() * size_of(tensor.dtype);
      if (room < 0) data_error("{}: the tensors are larger than the shards", where);
    }
    check_pieces(tensor, manifest.part.has_value(), where);
  }
}
}  // namespace

std::string_view name_of(TensorKind kind) {
  switch (kind) {
    case TensorKind::weights:
      return "weights";
    case TensorKind::master:
      return "master";
    case TensorKind::exp_avg:
      return "exp_avg";
    case TensorKind::exp_avg_sq:
      return "exp_avg_sq";
    case TensorKind::amax_history:
      return "amax_history";
  }
  return "?";
}

std::string stored_name(TensorKind kind, std::string_view name, const Shape& whole, const Box& box) {
  std::string stored = fmt::format("{}/{}", name_of(kind), name);
  if (box.extent == whole) return stored;
  for (int i = 0; i < box.offset.rank(); ++i) stored += fmt::format("{}{}", i == 0 ? "@" : ",", box.offset[i]);
  return stored;
}

std::string encode(const Manifest& manifest) {
  try {
    const std::string body = body_of(manifest).dump();
    return fmt::format("{{\"body\":{},\"digest\":\"{}\"}}\n", body, digest_of(body));
  } catch (const json::type_error& error) {
    user_error("the config or the state of run '{}' cannot be saved, it is not UTF-8 ({})", manifest.state.run_id,
               error.what());
  }
}

Manifest decode_manifest(std::string_view text, const std::string& where) {
  const json root = parse_strict_json(text, kLimits, where);
  StrictObject top(root, where);
  const json& body_json = top.take("body");
  const std::string digest = top.take_string("digest");
  top.finish();
  if (digest_of(body_json.dump()) != digest) top.refuse("its digest does not match");

  StrictObject body(body_json, where);
  if (body.take_string("format") != kFormat) body.refuse("not a Megalith checkpoint");
  if (const int64_t version = body.take_int("version"); version != Manifest::kVersion) {
    body.refuse(fmt::format("format version {}, this program reads {}", version, Manifest::kVersion));
  }
  Manifest manifest;
  manifest.state = parse_state(body, where);
  manifest.part = parse_part(body, where);
  for (const json& shard : body.take_array("shards")) manifest.shards.push_back(parse_shard(shard, where));
  for (const json& tensor : body.take_array("tensors")) manifest.tensors.push_back(parse_tensor(tensor, where));
  body.finish();
  check_references(manifest, where);
  // JSON has many spellings of one value; only ours has the bytes that were committed.
  if (encode(manifest) != text) top.refuse("its bytes are not as they were written");
  return manifest;
}

Manifest merge(const std::vector<Manifest>& parts, const std::string& where) {
  MEGALITH_CHECK(!parts.empty(), "{}: nothing to merge", where);
  std::vector<const Manifest*> by_rank(parts.size(), nullptr);
  for (const Manifest& part : parts) {
    if (!part.part || part.part->ranks != static_cast<int64_t>(parts.size()) || part.state != parts.front().state)
      data_error("{}: the parts are not of one save", where);
    const Manifest*& place = by_rank[static_cast<size_t>(part.part->rank)];
    if (place != nullptr) data_error("{}: there are two parts of rank {}", where, part.part->rank);
    place = &part;
  }
  Manifest whole{.state = parts.front().state, .part = std::nullopt, .shards = {}, .tensors = {}};
  std::map<std::pair<TensorKind, std::string_view>, size_t> known;
  for (const Manifest* part : by_rank) {
    whole.shards.insert(whole.shards.end(), part->shards.begin(), part->shards.end());
    for (const TensorInfo& tensor : part->tensors) {
      const auto [place, is_new] =
          known.emplace(std::pair(tensor.kind, std::string_view(tensor.name)), whole.tensors.size());
      if (is_new) {
        whole.tensors.push_back(tensor);
        continue;
      }
      TensorInfo& joined = whole.tensors[place->second];
      if (joined.shape != tensor.shape || joined.dtype != tensor.dtype)
        data_error("{}: the ranks disagree about the {} of '{}'", where, name_of(tensor.kind), tensor.name);
      joined.pieces.insert(joined.pieces.end(), tensor.pieces.begin(), tensor.pieces.end());
    }
  }
  check_references(whole, where);
  return whole;
}

}  // namespace megalith::checkpoint
