#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "checkpoint/hugging_face/hugging_face.h"
#include "checkpoint/hugging_face/hugging_face_files.h"
#include "checkpoint/hugging_face_fixtures.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::test {

// An exported model that a test damages and then tries to import.
class Exported {
 public:
  explicit Exported(const char* yaml, const checkpoint::ExportOptions& options = {}) {
    const SavedModel saved(dir_ / "checkpoints", yaml);
    checkpoint::Loaded loaded = saved.open();
    checkpoint::export_hugging_face(loaded, saved.run(), path(), options);
  }

  std::filesystem::path path() const { return dir_ / "hf"; }
  std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  template <class Change>
  void change_json(const std::string& file, Change&& change) const {
    nlohmann::json root = nlohmann::json::parse(bytes_of(path() / file));
    change(root);
    overwrite(path() / file, root.dump());
  }

  // Writes the tensors again as `change` leaves them.
  template <class Change>
  void change_tensors(Change&& change) const {
    std::vector<std::vector<std::byte>> memory;
    std::vector<checkpoint::TensorView> tensors;
    {
      const checkpoint::SafetensorsReader reader =
          checkpoint::SafetensorsReader::open(path() / checkpoint::kSingleFile);
      for (const checkpoint::TensorEntry& entry : reader.entries()) {
        memory.emplace_back(static_cast<size_t>(entry.bytes));
        tensors.push_back({entry.name, Tensor(memory.back().data(), *entry.dtype, *checkpoint::to_shape(entry.shape))});
        reader.read(entry.name, tensors.back().tensor);
      }
    }
    change(tensors);
    std::filesystem::remove(path() / checkpoint::kSingleFile);
    File file = File::create_new(path() / checkpoint::kSingleFile);
    checkpoint::write_safetensors(file, tensors);
  }

  checkpoint::Converted import_it(const checkpoint::ImportOptions& options = kBytes) const {
    std::filesystem::remove_all(dir_ / "back");
    return checkpoint::import_hugging_face(path(), dir_ / "back", options);
  }
  checkpoint::Loaded imported() const { return checkpoint::Loaded::open(dir_ / "back/step-00000000"); }

  void expect_refused(const std::vector<std::string>& words, ErrorKind kind = ErrorKind::data) const {
    const std::string message = error_of(kind, [&] { import_it(); });
    for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << word << "\n" << message;
    // Not even a part of it is left.
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with("back")) << entry.path();
    }
  }

 private:
  testing::TempDir dir_;
};

inline Tensor& find(std::vector<checkpoint::TensorView>& tensors, const std::string& name) {
  for (checkpoint::TensorView& view : tensors) {
    if (view.name == name) return view.tensor;
  }
  throw std::runtime_error("no " + name);
}

}  // namespace megalith::test
