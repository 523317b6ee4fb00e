#include "checkpoint/hugging_face/hugging_face_model.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "checkpoint/format/copy_matrix.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

ForeignModel::ForeignModel(Parts parts) : parts_(std::move(parts)) {
  const std::string_view prefix = names_of(parts_.family).prefix;
  const auto& all = parts_.weights.all();
  has_prefix_ = std::any_of(all.begin(), all.end(), [&](const auto& p) { return p.first.starts_with(prefix); });
  const fs::path padding = parts_.directory / kPaddingFile;
  if (fs::exists(fs::symlink_status(padding))) padding_ = std::make_unique<ForeignFile>(padding);
  check_tensors();
}

std::string ForeignModel::name_in_files(const std::string& name) const {
  const std::string_view prefix = names_of(parts_.family).prefix;
  return has_prefix_ || !name.starts_with(prefix) ? name : name.substr(prefix.size());
}

const ForeignWeights::Location& ForeignModel::location_of(const ForeignTensor& tensor) const {
  const ForeignWeights::Location* location = parts_.weights.find(name_in_files(tensor.name));
  if (location == nullptr)
    data_error("{}: there is no tensor '{}'", parts_.directory.string(), name_in_files(tensor.name));
  return *location;
}

// Before anything is allocated: every tensor of the model is there in its shape, and no other.
void ForeignModel::check_tensors() const {
  std::set<std::string> wanted;
  for (const ForeignParameter& parameter : parts_.parameters) {
    for (const ForeignTensor& tensor : parameter.tensors) {
      const auto& [file, entry] = location_of(tensor);
      wanted.insert(entry->name);
      if (to_shape(entry->shape) != tensor.shape) {
        data_error("{}: tensor '{}' is [{}], config.json makes it {}", file->path().string(), entry->name,
                   fmt::join(entry->shape, ", "), to_string(tensor.shape));
      }
      if (entry->type != "F32" && entry->type != "BF16" && entry->type != "F16") {
        data_error("{}: tensor '{}' holds {}; F32, BF16 and F16 are read", file->path().string(), entry->name,
                   entry->type);
      }
    }
    check_padding(parameter);
  }
  for (const auto& [name, location] : parts_.weights.all()) {
    if (!wanted.contains(name)) check_other(name, location);
  }
}

// A tensor that is not a parameter.
void ForeignModel::check_other(const std::string& name, const ForeignWeights::Location& location) const {
  const FamilyNames& names = names_of(parts_.family);
  if (is_ignored(parts_.family, has_prefix_ ? name : std::string(names.prefix) + name)) return;
  if (name == "lm_head.weight" && parts_.tied) return check_tied(location);
  data_error("{}: tensor '{}' is no part of a {} as config.json describes it", location.file->path().string(), name,
             names.model_type);
}

// Some write the output layer out although it is the token embedding.
void ForeignModel::check_tied(const ForeignWeights::Location& head) const {
  const ForeignWeights::Location& tokens = location_of(parts_.parameters.front().tensors.front());
  const auto bytes = [](const ForeignWeights::Location& location) {
    std::vector<std::byte> memory(static_cast<size_t>(location.entry->bytes));
    location.file->read_bytes(*location.entry, memory);
    return memory;
  };
  if (head.entry->type == tokens.entry->type && bytes(head) == bytes(tokens)) return;
  data_error("{}: 'lm_head.weight' is not '{}', and config.json says that tie_word_embeddings",
             head.file->path().string(), tokens.entry->name);
}

void ForeignModel::check_padding(const ForeignParameter& parameter) const {
  if (!padding_) return;
  const TensorEntry* entry = padding_->reader().find(parameter.spec->name);
  const int64_t rows = entry == nullptr || entry->shape.empty() ? 0 : entry->shape[0];
  const bool fits = rows == parameter.padding_rows &&
                    (entry == nullptr || (entry->shape.size() == 2 && entry->shape[1] == parameter.spec->shape[1] &&
                                          (entry->type == "F32" || entry->type == "BF16")));
  if (fits) return;
  data_error(
      "{}: {} rows of padding for '{}', the config has {}: leave model.make_vocab_size_divisible_by as it was, or "
      "remove the file and get zeros",
      padding_->path().string(), rows, parameter.spec->name, parameter.padding_rows);
}

void ForeignModel::read(const ForeignParameter& parameter, const Tensor& into) {
  const Tensor whole = into.shape.rank() == 1 ? into.view({into.shape[0], 1}) : into;
  for (const ForeignTensor& tensor : parameter.tensors) {
    const auto& [file, entry] = location_of(tensor);
    const Tensor rows = whole.slice_rows(tensor.first_row, tensor.first_row + tensor.rows);
    read_tensor(*file, *entry, rows, parameter.transposed);
  }
  if (!padding_ || parameter.padding_rows == 0) return;
  read_tensor(*padding_, *padding_->reader().find(parameter.spec->name),
              whole.slice_rows(whole.rows() - parameter.padding_rows, whole.rows()), false);
}

void ForeignModel::read_tensor(const ForeignFile& file, const TensorEntry& entry, const Tensor& into, bool transposed) {
  if (entry.dtype == into.dtype && !transposed) {
    file.read_bytes(entry, {static_cast<std::byte*>(into.data), static_cast<size_t>(into.bytes())});
    return;
  }
  const Shape shape = *to_shape(entry.shape);
  scratch_.resize(static_cast<size_t>(entry.bytes));
  file.read_bytes(entry, scratch_);
  if (entry.dtype) return copy_matrix(Tensor(scratch_.data(), *entry.dtype, shape), into, transposed);
  std::vector<float> widened(static_cast<size_t>(shape.elements()));
  widen_halves({reinterpret_cast<const uint16_t*>(scratch_.data()), widened.size()}, widened);
  copy_matrix(Tensor(widened.data(), DType::f32, shape), into, transposed);
}

}  // namespace megalith::checkpoint
