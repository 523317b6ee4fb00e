#include "checkpoint/loaded.h"

#include "checkpoint/layout.h"
#include "core/error.h"

namespace megalith::checkpoint {

Loaded Loaded::open(const std::filesystem::path& step_directory) {
  const std::filesystem::path manifest_path = step_directory / kManifestName;
  std::error_code status;
  if (!std::filesystem::exists(std::filesystem::symlink_status(manifest_path, status))) {
    data_error("{} is not a checkpoint: it has no {} (a save that did not finish leaves none)", step_directory.string(),
               kManifestName);
  }
  return Loaded(step_directory, decode_manifest(read_plain_text(manifest_path), manifest_path.string()));
}

Loaded::Loaded(std::filesystem::path path, Manifest manifest) : path_(std::move(path)), manifest_(std::move(manifest)) {
  for (const ShardInfo& info : manifest_.shards) {
    const std::filesystem::path file = path_ / info.file;
    auto shard = std::make_unique<Shard>(Shard{VerifiedFile(open_plain_file(file), info.digests), nullptr});
    shard->reader = std::make_unique<SafetensorsReader>(
        file.string(), info.digests.bytes,
        [source = &shard->file](int64_t offset, std::span<std::byte> into) { source->read_at(offset, into); });
    shards_.emplace(info.file, std::move(shard));
  }
  for (const TensorInfo& tensor : manifest_.tensors) {
    tensors_.emplace(stored_name(tensor.kind, tensor.name), shards_.at(tensor.shard).get());
  }
  check_tensors();
}

void Loaded::check_tensors() const {
  size_t stored = 0;
  for (const auto& [name, shard] : shards_) stored += shard->reader->entries().size();
  if (stored != manifest_.tensors.size()) {
    data_error("{}: the shards hold {} tensors, the manifest lists {}", path_.string(), stored,
               manifest_.tensors.size());
  }
  for (const TensorInfo& tensor : manifest_.tensors) {
    const std::string name = stored_name(tensor.kind, tensor.name);
    const TensorEntry* entry = tensors_.at(name)->reader->find(name);
    if (entry == nullptr) data_error("{}: shard {} does not hold '{}'", path_.string(), tensor.shard, name);
    if (entry->dtype != tensor.dtype || to_shape(entry->shape) != tensor.box.extent) {
      data_error("{}: '{}' differs in type or shape between shard and manifest", path_.string(), name);
    }
  }
}

bool Loaded::has(TensorKind kind, const std::string& name) const {
  return tensors_.contains(stored_name(kind, name));
}

void Loaded::load_tensor(TensorKind kind, const std::string& name, const Tensor& into) {
  const std::string stored = stored_name(kind, name);
  const auto found = tensors_.find(stored);
  if (found == tensors_.end()) data_error("{} holds no {} of '{}'", path_.string(), name_of(kind), name);
  found->second->reader->read(stored, into);
}

void Loaded::verify() {
  for (const auto& [name, shard] : shards_) shard->file.verify();
}

}  // namespace megalith::checkpoint
