#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/hugging_face/hugging_face_files.h"
#include "checkpoint/hugging_face/hugging_face_names.h"

namespace megalith::checkpoint {

// The weights of a Hugging Face directory as the parameters of a model.
class ForeignModel {
 public:
  struct Parts {
    std::filesystem::path directory;
    const ForeignWeights& weights;
    HuggingFaceFamily family = HuggingFaceFamily::gpt2;
    std::vector<ForeignParameter> parameters;
    bool tied = false;  // the output layer is the token embedding
  };
  // What the parts refer to must outlive it. Refuses with a data error what is missing, too much, or of another shape
  // or type, before anything is allocated for it.
  explicit ForeignModel(Parts parts);

  const std::vector<ForeignParameter>& parameters() const { return parts_.parameters; }

  // Fills CPU memory of the parameter's shape, in any floating-point type. Padding that the directory does not hold is
  // left as it is.
  void read(const ForeignParameter& parameter, const Tensor& into);

 private:
  std::string name_in_files(const std::string& name) const;
  const ForeignWeights::Location& location_of(const ForeignTensor& tensor) const;
  void check_tensors() const;
  void check_other(const std::string& name, const ForeignWeights::Location& location) const;
  void check_tied(const ForeignWeights::Location& head) const;
  void check_padding(const ForeignParameter& parameter) const;
  void read_tensor(const ForeignFile& file, const TensorEntry& entry, const Tensor& into, bool transposed);

  Parts parts_;
  std::unique_ptr<ForeignFile> padding_;
  bool has_prefix_ = false;
  std::vector<std::byte> scratch_;
};

}  // namespace megalith::checkpoint
