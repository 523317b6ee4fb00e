#include "checkpoint/loaded.h"

#include "checkpoint/file_names.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace {

// Each takes a file and a chunk of memory. More than a rank reads of at a time, also in another layout.
constexpr size_t kOpenShards = 256;

// A tensor of any shape as a matrix: its first dimension and the rest.
struct MatrixBox {
  MatrixBox(const Box& box, const Shape& whole)
      : first_row(box.offset[0]), rows(box.extent[0]), first_column(0), columns(box.extent.elements() / rows) {
    int64_t inner = 1;
    for (int i = 2; i < whole.rank(); ++i) inner *= whole[i];
    if (whole.rank() > 1) first_column = box.offset[1] * inner;
  }

  int64_t first_row, rows, first_column, columns;
};

std::byte* address(const Tensor& tensor, int64_t row, int64_t column) {
  return static_cast<std::byte*>(tensor.data) + (row * tensor.row_stride + column) * size_of(tensor.dtype);
}

// Seen as (first dimension, all others).
Tensor as_matrix(const Tensor& tensor) {
  return tensor.shape.rank() == 2 ? tensor : tensor.view({tensor.shape[0], tensor.elements() / tensor.shape[0]});
}

}  // namespace

Loaded Loaded::open(const std::filesystem::path& step_directory) {
  const std::filesystem::path manifest_path = step_directory / kManifestName;
  std::error_code status;
  if (!std::filesystem::exists(std::filesystem::symlink_status(manifest_path, status))) {
    data_error("{} is not a checkpoint: it has no {} (a save that did not finish leaves none)", step_directory.string(),
               kManifestName);
  }
  Manifest manifest = decode_manifest(read_plain_text(manifest_path), manifest_path.string());
  if (manifest.part) data_error("{} lists the part of one rank, not a checkpoint", manifest_path.string());
  const std::optional<int64_t> named = parse_step_name(step_directory.filename().string());
  if (named && *named != manifest.state.step) {
    data_error("{} holds a checkpoint of step {}: it was copied or renamed, call it {}", step_directory.string(),
               manifest.state.step, step_name(manifest.state.step));
  }
  for (const ShardInfo& shard : manifest.shards) check_plain_file(step_directory / shard.file, shard.digests.bytes);
  return Loaded(step_directory, std::move(manifest),
                [&](const ShardInfo& shard) { return std::vector<ShardPlace>{step_directory / shard.file}; });
}

Loaded::Loaded(std::filesystem::path name, Manifest manifest, const PlacesOf& places_of)
    : path_(std::move(name)), manifest_(std::make_unique<const Manifest>(std::move(manifest))) {
  for (const ShardInfo& info : manifest_->shards) {
    shard_index_.emplace(info.file, shards_.size());
    shards_.emplace_back(info, places_of(info));
  }
  for (const TensorInfo& tensor : manifest_->tensors) {
    tensors_.emplace(std::pair(tensor.kind, std::string_view(tensor.name)), &tensor);
    for (const TensorPiece& piece : tensor.pieces) {
      shards_[shard_index_.at(piece.shard)].expect(
          {.name = stored_name(tensor.kind, tensor.name, tensor.shape, piece.box),
           .dtype = tensor.dtype,
           .shape = piece.box.extent});
    }
  }
}

Shard& Loaded::to_read(size_t shard) {
  if (open_.empty() || open_.front() != shard) {
    open_.remove(shard);
    open_.push_front(shard);
    if (open_.size() > kOpenShards) {
      shards_[open_.back()].close();
      open_.pop_back();
    }
  }
  return shards_[shard];
}

const TensorInfo* Loaded::find(TensorKind kind, const std::string& name) const {
  const auto found = tensors_.find({kind, name});
  return found == tensors_.end() ? nullptr : found->second;
}

const TensorInfo& Loaded::get(TensorKind kind, const std::string& name) const {
  const TensorInfo* tensor = find(kind, name);
  if (tensor == nullptr) data_error("{} holds no {} of '{}'", path_.string(), name_of(kind), name);
  return *tensor;
}

void Loaded::load_tensor(TensorKind kind, const std::string& name, const Tensor& into) {
  const TensorInfo& tensor = get(kind, name);
  if (tensor.shape != into.shape || tensor.dtype != into.dtype) {
    data_error("{}: the {} of '{}' are {} {}, not {} {}", path_.string(), name_of(kind), name,
               megalith::name_of(tensor.dtype), to_string(tensor.shape), megalith::name_of(into.dtype),
               to_string(into.shape));
  }
  load_box(kind, name, whole_box(tensor.shape), into);
}

void Loaded::load_box(TensorKind kind, const std::string& name, const Box& box, const Tensor& into) {
  const TensorInfo& tensor = get(kind, name);
  MEGALITH_CHECK(lies_in(box, tensor.shape) && into.elements() == box.extent.elements() && into.dtype == tensor.dtype,
                 "'{}' {} {} cannot fill {} {}", name, megalith::name_of(tensor.dtype), to_string(tensor.shape),
                 megalith::name_of(into.dtype), to_string(into.shape));
  const MatrixBox wanted(box, tensor.shape);
  const Tensor matrix = as_matrix(into);
  for (const TensorPiece& piece : tensor.pieces) {
    const std::optional<Box> common = intersection(piece.box, box);
    if (!common) continue;
    const MatrixBox part(*common, tensor.shape);
    const int64_t row = part.first_row - wanted.first_row;
    const int64_t column = part.first_column - wanted.first_column;
    load_piece(tensor, piece, *common,
               matrix.slice_rows(row, row + part.rows).slice_cols(column, column + part.columns));
  }
}

void Loaded::load_piece(const TensorInfo& tensor, const TensorPiece& piece, const Box& box, const Tensor& into) {
  Shard& shard = to_read(shard_index_.at(piece.shard));
  const std::string name = stored_name(tensor.kind, tensor.name, tensor.shape, piece.box);
  const MatrixBox held(piece.box, tensor.shape);
  const MatrixBox wanted(box, tensor.shape);
  const int64_t size = size_of(tensor.dtype);
  const auto read = [&](int64_t row, int64_t rows) {
    const int64_t offset =
        (wanted.first_row - held.first_row + row) * held.columns + wanted.first_column - held.first_column;
    shard.read(name, offset * size, {address(into, row, 0), static_cast<size_t>(rows * wanted.columns * size)});
  };
  if (wanted.columns == held.columns && into.contiguous()) return read(0, wanted.rows);
  for (int64_t row = 0; row < wanted.rows; ++row) read(row, 1);
}

void Loaded::verify() {
  for (size_t shard = 0; shard < shards_.size(); ++shard) to_read(shard).verify();
}

std::vector<bool> Loaded::verified_chunks() const {
  std::vector<bool> verified;
  for (const Shard& shard : shards_) {
    for (int64_t chunk = 0; chunk < shard.chunks(); ++chunk) verified.push_back(shard.is_verified(chunk));
  }
  return verified;
}

void Loaded::verify_chunk(int64_t chunk) {
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    if (chunk < shards_[shard].chunks()) return to_read(shard).verify_chunk(chunk);
    chunk -= shards_[shard].chunks();
  }
  fail(ErrorKind::internal, "{} has fewer chunks", path_.string());
}

std::vector<BadShardPlace> Loaded::bad_places() const {
  std::vector<BadShardPlace> bad;
  for (const Shard& shard : shards_) bad.insert(bad.end(), shard.bad_places().begin(), shard.bad_places().end());
  return bad;
}

}  // namespace megalith::checkpoint
