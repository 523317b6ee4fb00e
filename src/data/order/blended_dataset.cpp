#include "data/order/blended_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace megalith::data {

namespace {
// A row takes 8 bytes per dataset; to go on from one takes a tenth of a second.
constexpr int64_t kRowsEvery = int64_t{1} << 20;
}  // namespace

BlendedDataset::BlendedDataset(std::vector<std::unique_ptr<Dataset>> datasets, Options options)
    : name_(fmt::format("a blend of {} datasets", datasets.size())),
      datasets_(std::move(datasets)),
      options_(std::move(options)),
      rows_every_(kRowsEvery),
      order_(options_.weights, options_.limits),
      entries_(static_cast<size_t>(kBlock)) {
  MEGALITH_CHECK(datasets_.size() == options_.weights.size(), "{} datasets, {} weights", datasets_.size(),
                 options_.weights.size());
  for (const auto& dataset : datasets_) {
    MEGALITH_CHECK(dataset->sequence_length() == sequence_length(), "samples of {} and {} tokens",
                   dataset->sequence_length(), sequence_length());
  }
  rows_.push_back(order_.taken());
  if (options_.cache && options_.samples > rows_every_) {
    cached_rows_ = options_.cache->blend_rows(options_.weights, options_.limits, options_.samples, rows_every_);
  }
}

void BlendedDataset::sample(int64_t index, std::span<int32_t> tokens) const {
  const BlendEntry entry = locate(index);
  datasets_[static_cast<size_t>(entry.dataset)]->sample(entry.sample, tokens);
}

BlendEntry BlendedDataset::locate(int64_t index) const {
  MEGALITH_CHECK(index >= 0, "sample {}", index);
  const std::lock_guard lock(mutex_);
  if (block_ != index / kBlock) load_block(index / kBlock);
  return entries_[static_cast<size_t>(index % kBlock)];
}

void BlendedDataset::load_block(int64_t block) const {
  block_ = -1;
  if (order_.position() != block * kBlock) move_to(block * kBlock);
  order_.next(entries_);
  block_ = block;
  // Rows lie between blocks; the one at the end of this block is worth remembering if it is the next.
  if (order_.position() == std::ssize(rows_) * rows_every_) rows_.push_back(order_.taken());
}

void BlendedDataset::move_to(int64_t position) const {
  int64_t row = position / rows_every_;
  const bool ahead = order_.position() <= position && order_.position() > row * rows_every_;
  if (!ahead && !move_by_cache(row)) {
    row = std::min(row, std::ssize(rows_) - 1);
    if (order_.position() > position || order_.position() < row * rows_every_) {
      order_.seek(row * rows_every_, rows_[static_cast<size_t>(row)]);
    }
  }
  while (order_.position() < position) {
    order_.next(std::span(entries_).first(static_cast<size_t>(std::min(kBlock, position - order_.position()))));
    if (order_.position() == std::ssize(rows_) * rows_every_) rows_.push_back(order_.taken());
  }
}

bool BlendedDataset::move_by_cache(int64_t row) const {
  if (!cached_rows_) return false;
  const size_t row_bytes = sizeof(int64_t) * datasets_.size();
  const auto table = cached_rows_->array(0);
  row = std::min(row, static_cast<int64_t>(table.size() / row_bytes) - 1);
  const auto bytes = table.subspan(static_cast<size_t>(row) * row_bytes, row_bytes);
  std::vector<int64_t> taken(datasets_.size());
  try {
    cached_rows_->verify(bytes.data(), bytes.size());
    std::memcpy(taken.data(), bytes.data(), bytes.size());
    order_.seek(row * rows_every_, taken);
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    cached_rows_ =
        options_.cache->blend_rows(options_.weights, options_.limits, options_.samples, rows_every_, /*again=*/true);
    order_.seek(0, rows_.front());
    return false;
  }
}

}  // namespace megalith::data
