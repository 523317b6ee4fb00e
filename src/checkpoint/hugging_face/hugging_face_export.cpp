#include <fmt/format.h>

#include <map>
#include <memory>

#include "checkpoint/format/copy_matrix.h"
#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/hugging_face_config.h"
#include "checkpoint/hugging_face/hugging_face_files.h"
#include "checkpoint/hugging_face/hugging_face_tokenizer.h"
#include "checkpoint/new_directory.h"
#include "core/error.h"
#include "data/tokenizer/tokenizer.h"
#include "model/parameters.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;

namespace {

void write_new_file(const fs::path& path, std::string_view text) {
  File file = File::create_new(path);
  file.write(text);
  file.sync();
}

// Tensors in memory of their own.
class OwnedTensors {
 public:
  Tensor add(const std::string& name, DType dtype, const Shape& shape) {
    memory_.push_back(
        std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(shape.elements() * size_of(dtype))));
    return views_.emplace_back(TensorView{.name = name, .tensor = Tensor(memory_.back().get(), dtype, shape)}).tensor;
  }
  const std::vector<TensorView>& views() const { return views_; }

 private:
  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<TensorView> views_;
};

class Exporter {
 public:
  Exporter(Loaded& checkpoint, const config::Run& run, const ExportOptions& options)
      : checkpoint_(checkpoint),
        model_(run.model),
        options_(options),
        family_(family_of(model_)),
        vocabulary_(data::vocabulary_of(model_.tokenizer)),
        table_(model::logical_parameters(model::make_model_config(run, vocabulary_.size))),
        parameters_(foreign_parameters(family_, table_, vocabulary_.size)) {
    for (const TensorInfo& info : checkpoint.manifest().tensors) {
      stored_[{info.kind, info.name}] = &info;
      if (!table_.contains(info.name)) {
        user_error("{} does not fit this config: it holds {}, which this model does not have",
                   checkpoint.path().string(), info.name);
      }
    }
    for (const ForeignParameter& parameter : parameters_) check_stored(*parameter.spec);
    dtype_ = options.dtype.value_or(stored_.at({TensorKind::weights, table_.specs().front().name})->dtype);
  }

  Converted write(const fs::path& directory) {
    const std::vector<std::vector<const ForeignParameter*>> shards = divide_into_files();
    Converted result{.family = family_, .dtype = dtype_, .files = static_cast<int64_t>(shards.size())};
    std::vector<std::pair<std::string, std::string>> index;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string name = weights_file_name(i + 1, shards.size());
      write_weights(directory, name, shards[i], index);
      result.written.push_back(name);
    }
    for (const ForeignParameter& parameter : parameters_) {
      result.parameters += exported_elements(parameter);
      result.bytes += exported_elements(parameter) * size_of(dtype_);
    }
    if (shards.size() > 1) {
      write_new_file(directory / kIndexFile, write_index(index, result.bytes));
      result.written.emplace_back(kIndexFile);
    }
    if (!padding_.views().empty()) {
      write_tensors(directory / kPaddingFile, padding_, {{"format", "megalith"}});
      result.written.emplace_back(kPaddingFile);
    }
    write_new_file(
        directory / kHuggingFaceConfig,
        write_hugging_face_config(
            {.model = model_, .vocabulary = vocabulary_.size, .end_of_text = vocabulary_.eod, .dtype = dtype_}));
    result.written.emplace_back(kHuggingFaceConfig);
    write_tokenizer(directory, result);
    return result;
  }

 private:
  void check_stored(const parallel::ParameterSpec& spec) const {
    const auto found = stored_.find({TensorKind::weights, spec.name});
    if (found == stored_.end() || found->second->shape != spec.shape) {
      user_error("{} does not fit this config: weights of {} are {} there, {} is wanted", checkpoint_.path().string(),
                 spec.name, found == stored_.end() ? "missing" : to_string(found->second->shape),
                 to_string(spec.shape));
    }
  }

  static int64_t exported_elements(const ForeignParameter& parameter) {
    int64_t elements = 0;
    for (const ForeignTensor& tensor : parameter.tensors) elements += tensor.shape.elements();
    return elements;
  }

  std::vector<std::vector<const ForeignParameter*>> divide_into_files() const {
    std::vector<std::vector<const ForeignParameter*>> files(1);
    int64_t in_file = 0;
    for (const ForeignParameter& parameter : parameters_) {
      const int64_t bytes = exported_elements(parameter) * size_of(dtype_);
      if (in_file + bytes > options_.max_shard_bytes && !files.back().empty()) {
        files.emplace_back();
        in_file = 0;
      }
      files.back().push_back(&parameter);
      in_file += bytes;
    }
    return files;
  }

  // The whole parameter as a matrix, a vector as one column; gone with the next.
  Tensor load(const parallel::ParameterSpec& spec) {
    const bool from_master = dtype_ == DType::f32 && stored_.contains({TensorKind::master, spec.name});
    const TensorKind kind = from_master ? TensorKind::master : TensorKind::weights;
    const DType dtype = stored_.at({kind, spec.name})->dtype;
    scratch_.resize(static_cast<size_t>(spec.shape.elements() * size_of(dtype)));
    const Tensor whole(scratch_.data(), dtype, spec.shape);
    checkpoint_.load_tensor(kind, spec.name, whole);
    return spec.shape.rank() == 1 ? whole.view({spec.shape[0], 1}) : whole;
  }

  void write_weights(const fs::path& directory, const std::string& name,
                     const std::vector<const ForeignParameter*>& parameters,
                     std::vector<std::pair<std::string, std::string>>& index) {
    OwnedTensors tensors;
    for (const ForeignParameter* parameter : parameters) {
      const Tensor whole = load(*parameter->spec);
      for (const ForeignTensor& wanted : parameter->tensors) {
        copy_matrix(whole.slice_rows(wanted.first_row, wanted.first_row + wanted.rows),
                    tensors.add(wanted.name, dtype_, wanted.shape), parameter->transposed);
        index.emplace_back(wanted.name, name);
      }
      if (parameter->padding_rows == 0) continue;
      const Shape padding{parameter->padding_rows, whole.cols()};
      copy_matrix(whole.slice_rows(whole.rows() - parameter->padding_rows, whole.rows()),
                  padding_.add(parameter->spec->name, dtype_, padding), false);
    }
    // Transformers refuses files that do not say so.
    write_tensors(directory / name, tensors, {{"format", "pt"}});
  }

  static void write_tensors(const fs::path& path, const OwnedTensors& tensors, const Metadata& metadata) {
    File file = File::create_new(path);
    write_safetensors(file, tensors.views(), metadata);
    file.sync();
  }

  void write_tokenizer(const fs::path& directory, Converted& result) const {
    TokenizerFilesWritten written = write_hugging_face_tokenizer(
        {.tokenizer = model_.tokenizer, .vocabulary = vocabulary_, .max_length = model_.max_position_embeddings},
        directory);
    result.notes = std::move(written.notes);
    for (std::string& name : written.names) result.written.push_back(std::move(name));
  }

  Loaded& checkpoint_;
  const config::Model& model_;
  ExportOptions options_;
  HuggingFaceFamily family_;
  data::Vocabulary vocabulary_;
  parallel::ParameterTable table_;
  std::vector<ForeignParameter> parameters_;
  std::map<std::pair<TensorKind, std::string>, const TensorInfo*> stored_;
  DType dtype_ = DType::f32;
  std::vector<std::byte> scratch_;
  OwnedTensors padding_;
};

}  // namespace

Converted export_hugging_face(Loaded& checkpoint, const config::Run& run, const fs::path& output,
                              const ExportOptions& options) {
  Exporter exporter(checkpoint, run, options);
  NewDirectory directory(output);
  Converted result = exporter.write(directory.unfinished());
  directory.commit();
  return result;
}

}  // namespace megalith::checkpoint
