#include "checkpoint/hugging_face/hugging_face_files.h"

#include <set>

#include "checkpoint/file_names.h"
#include "checkpoint/format/strict_json.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr JsonLimits kIndexLimits{
    .max_bytes = int64_t{64} << 20, .max_values = SafetensorsReader::kMaxTensors * 4, .max_depth = 4};

File open_foreign(const fs::path& path) {
  std::error_code status;
  if (fs::is_symlink(fs::symlink_status(path, status))) {
    data_error("{} is a link, which may lead anywhere and is not followed: copy the directory with `cp -rL` first",
               path.string());
  }
  return open_plain_file(path);
}

bool is_there(const fs::path& path) {
  std::error_code status;
  return fs::exists(fs::symlink_status(path, status));
}

// A plain name of a safetensors file: it does not leave the directory.
bool is_weights_name(const std::string& name) {
  return is_tensor_name(name) && name.find('/') == std::string::npos && name.front() != '.' &&
         name.ends_with(".safetensors");
}

std::unordered_map<std::string, std::string> read_index(const fs::path& path) {
  const json root = parse_strict_json(read_foreign_text(path), kIndexLimits, path.string());
  const auto found = root.is_object() ? root.find("weight_map") : root.end();
  if (found == root.end() || !found->is_object()) data_error("{}: there is no weight_map", path.string());
  std::unordered_map<std::string, std::string> files;
  for (const auto& [tensor, file] : found->items()) {
    if (!file.is_string() || !is_weights_name(file.get<std::string>())) {
      data_error("{}: '{}' is said to be in {}, which is not the name of a safetensors file", path.string(), tensor,
                 file.dump());
    }
    files.emplace(tensor, file.get<std::string>());
  }
  return files;
}

}  // namespace

std::string read_foreign_text(const fs::path& path) {
  constexpr int64_t kMaxBytes = int64_t{256} << 20;
  const File file = open_foreign(path);
  if (file.size() > kMaxBytes)
    data_error("{} has {} bytes, at most {} are read", path.string(), file.size(), kMaxBytes);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

ForeignFile::ForeignFile(const fs::path& path)
    : path_(path),
      file_(open_foreign(path)),
      reader_(path.string(), file_.size(),
              [this](int64_t offset, std::span<std::byte> into) { file_.read_at(offset, into); }) {}

void ForeignFile::read_bytes(const TensorEntry& entry, std::span<std::byte> into) const {
  MEGALITH_CHECK(static_cast<int64_t>(into.size()) == entry.bytes, "'{}' has {} bytes, not {}", entry.name, entry.bytes,
                 into.size());
  file_.read_at(entry.begin, into);
}

ForeignWeights ForeignWeights::open(const fs::path& directory) {
  ForeignWeights weights;
  const bool single = is_there(directory / kSingleFile);
  const bool indexed = is_there(directory / kIndexFile);
  if (single && indexed) {
    data_error("{} has both {} and {}: remove the one that is not meant", directory.string(), kSingleFile, kIndexFile);
  }
  if (!single && !indexed) {
    data_error("{} has neither {} nor {} (other formats, such as pytorch_model.bin, can run code and are not read)",
               directory.string(), kSingleFile, kIndexFile);
  }
  if (single) {
    weights.add_file(directory / kSingleFile);
    return weights;
  }
  const std::unordered_map<std::string, std::string> index = read_index(directory / kIndexFile);
  std::set<std::string> files;
  for (const auto& [tensor, file] : index) files.insert(file);
  for (const std::string& file : files) weights.add_file(directory / file);
  for (const auto& [tensor, file] : index) {
    const Location* location = weights.find(tensor);
    if (location == nullptr || location->file->path().filename() != file) {
      data_error("{}: '{}' is said to be in {}, and is not", (directory / kIndexFile).string(), tensor, file);
    }
  }
  for (const auto& [tensor, location] : weights.locations_) {
    if (!index.contains(tensor)) {
      data_error("{}: tensor '{}' is not in {}", location.file->path().string(), tensor, kIndexFile);
    }
  }
  return weights;
}

void ForeignWeights::add_file(const fs::path& path) {
  const ForeignFile& file = *files_.emplace_back(std::make_unique<ForeignFile>(path));
  for (const TensorEntry& entry : file.reader().entries()) {
    const auto [found, is_new] = locations_.emplace(entry.name, Location{&file, &entry});
    if (!is_new) {
      data_error("tensor '{}' is in {} and again in {}", entry.name, found->second.file->path().string(),
                 path.string());
    }
  }
}

const ForeignWeights::Location* ForeignWeights::find(const std::string& name) const {
  const auto found = locations_.find(name);
  return found == locations_.end() ? nullptr : &found->second;
}

std::string weights_file_name(size_t number, size_t count) {
  return count == 1 ? kSingleFile : fmt::format("model-{:05}-of-{:05}.safetensors", number, count);
}

std::string write_index(const std::vector<std::pair<std::string, std::string>>& files, int64_t total_bytes) {
  json map = json::object();
  for (const auto& [tensor, file] : files) map[tensor] = file;
  return json{{"metadata", {{"total_size", total_bytes}}}, {"weight_map", std::move(map)}}.dump(2) + "\n";
}

}  // namespace megalith::checkpoint
