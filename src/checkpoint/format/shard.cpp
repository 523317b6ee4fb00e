#include "checkpoint/format/shard.h"

#include <algorithm>

#include "core/error.h"

namespace megalith::checkpoint {

Shard::Shard(const ShardInfo& info, std::vector<ShardPlace> places)
    : info_(&info), places_(std::move(places)), verified_(info.digests.chunks.size(), false) {}

template <class Action>
void Shard::try_places(const Action& action) {
  while (true) {
    try {
      if (!bytes_) open();
      return action();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::io) throw;
      if (places_.empty()) throw;
      give_up_place(error);
      if (places_.empty()) throw;
    }
  }
}

void Shard::give_up_place(const Error& reason) {
  const std::filesystem::path& file = places_.front().file;
  std::error_code status;
  if (file.empty() || std::filesystem::exists(std::filesystem::symlink_status(file, status)))
    bad_places_.push_back({file, reason.what(), reason.kind() == ErrorKind::data});
  places_.erase(places_.begin());
  bytes_.reset();
  reader_.reset();
}

void Shard::open() {
  if (places_.empty()) data_error("shard {} is nowhere to be found", info_->file);
  bytes_ = std::make_unique<VerifiedBytes>(places_.front().open(), info_->digests);
}

void Shard::read_at(int64_t offset, std::span<std::byte> into) {
  if (into.empty()) return;
  bytes_->read_at(offset, into);
  const int64_t chunk_bytes = info_->digests.chunk_bytes;
  const int64_t last = (offset + static_cast<int64_t>(into.size()) - 1) / chunk_bytes;
  for (int64_t chunk = offset / chunk_bytes; chunk <= last; ++chunk) verified_[static_cast<size_t>(chunk)] = true;
}

void Shard::read(const std::string& tensor, int64_t offset, std::span<std::byte> into) {
  try_places([&] {
    if (!reader_) {
      auto reader = std::make_unique<SafetensorsReader>(
          bytes_->name(), info_->digests.bytes,
          [this](int64_t position, std::span<std::byte> bytes) { read_at(position, bytes); });
      check_contents(*reader);
      reader_ = std::move(reader);
    }
    read_at(reader_->find(tensor)->begin + offset, into);
  });
}

void Shard::verify(int64_t first, int64_t last) {
  try_places([&] { bytes_->verify(first, last); });
  std::fill(verified_.begin() + first, verified_.begin() + last, true);
}

void Shard::verify() {
  for (int64_t chunk = 0; chunk < chunks();) {
    const int64_t first = chunk;
    while (chunk < chunks() && !is_verified(chunk)) ++chunk;
    if (chunk > first) verify(first, chunk);
    while (chunk < chunks() && is_verified(chunk)) ++chunk;
  }
}

void Shard::check_contents(const SafetensorsReader& reader) const {
  const std::string& where = bytes_->name();
  if (reader.entries().size() != expected_.size()) {
    data_error("{} holds {} tensors, its manifest lists {}", where, reader.entries().size(), expected_.size());
  }
  for (const Tensor& tensor : expected_) {
    const TensorEntry* entry = reader.find(tensor.name);
    if (entry == nullptr) data_error("{} does not hold '{}'", where, tensor.name);
    if (entry->dtype != tensor.dtype || to_shape(entry->shape) != tensor.shape)
      data_error("{}: '{}' differs in type or shape from the manifest", where, tensor.name);
  }
}

}  // namespace megalith::checkpoint
