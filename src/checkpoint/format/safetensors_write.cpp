#include <fcntl.h>

#include <fmt/format.h>
#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_set>

#include "checkpoint/format/safetensors.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace {
// Passes bytes on to a file and digests them on the way. Small pieces are gathered, large ones are written from where
// they lie.
class DigestingWriter {
 public:
  DigestingWriter(File& file, int64_t chunk_bytes) : file_(file) {
    MEGALITH_CHECK(chunk_bytes > 0, "chunks of {} bytes", chunk_bytes);
    result_.chunk_bytes = chunk_bytes;
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const int64_t room = result_.chunk_bytes - result_.bytes % result_.chunk_bytes;
      const auto part = bytes.first(std::min(bytes.size(), static_cast<size_t>(room)));
      chunk_.add(part);
      pass_on(part);
      result_.bytes += static_cast<int64_t>(part.size());
      if (result_.bytes % result_.chunk_bytes == 0) end_chunk();
      bytes = bytes.subspan(part.size());
    }
  }

  FileDigests finish() {
    flush();
    if (result_.bytes % result_.chunk_bytes != 0) end_chunk();
    result_.whole = digest_of_chunks(result_.chunks);
    return std::move(result_);
  }

 private:
  static constexpr size_t kSmall = size_t{64} << 10;
  static constexpr size_t kGathered = size_t{1} << 20;

  void pass_on(std::span<const std::byte> part) {
    if (part.size() >= kSmall) {
      flush();
      file_.write(part);
      return;
    }
    gathered_.insert(gathered_.end(), part.begin(), part.end());
    if (gathered_.size() >= kGathered) flush();
  }

  void flush() {
    if (!gathered_.empty()) file_.write(gathered_);
    gathered_.clear();
  }

  void end_chunk() {
    result_.chunks.push_back(chunk_.hex());
    chunk_ = Digest();
  }

  File& file_;
  FileDigests result_;
  Digest chunk_;
  std::vector<std::byte> gathered_;
};

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump();
}

// Written by hand: nlohmann's ordered object looks every key up from the front, which is quadratic.
std::string make_header(std::span<const TensorSpec> tensors, const std::vector<size_t>& order,
                        const Metadata& metadata) {
  std::unordered_set<std::string_view> names;
  std::string text = "{";
  if (!metadata.empty()) text += "\"__metadata__\":" + nlohmann::json(metadata).dump();
  int64_t offset = 0;
  for (const size_t index : order) {
    const TensorSpec& tensor = tensors[index];
    MEGALITH_CHECK(is_tensor_name(tensor.name), "'{}' cannot name a tensor in a file", tensor.name);
    MEGALITH_CHECK(names.insert(tensor.name).second, "tensor '{}' is written twice", tensor.name);
    std::vector<int64_t> dims;
    for (int i = 0; i < tensor.shape.rank(); ++i) dims.push_back(tensor.shape[i]);
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", text.size() > 1 ? "," : "",
                        quoted(tensor.name), safetensors_type(tensor.dtype), fmt::join(dims, ","), offset,
                        offset + tensor.bytes());
    offset += tensor.bytes();
  }
  text += "}";
  text.append(static_cast<size_t>(round_up(static_cast<int64_t>(text.size()), 8)) - text.size(), ' ');
  return text;
}

// A disk that is too small says so before the hours of writing, where the file system can tell.
void reserve(const File& file, int64_t bytes) {
  if (bytes > 0 && ::fallocate(file.descriptor(), FALLOC_FL_KEEP_SIZE, 0, bytes) != 0 && errno == ENOSPC) {
    io_error_errno(fmt::format("no room for the {} bytes of {}", bytes, file.path().string()));
  }
}

std::span<const std::byte> bytes_of(const Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.data), static_cast<size_t>(tensor.bytes())};
}
}  // namespace

SafetensorsLayout::SafetensorsLayout(std::span<const TensorSpec> tensors, const Metadata& metadata)
    : order(tensors.size()), offsets(tensors.size()) {
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return size_of(tensors[a].dtype) > size_of(tensors[b].dtype); });
  const std::string header = make_header(tensors, order, metadata);
  MEGALITH_CHECK(static_cast<int64_t>(header.size()) <= SafetensorsReader::kMaxHeaderBytes &&
                     static_cast<int64_t>(order.size()) < SafetensorsReader::kMaxTensors,
                 "{} tensors are too many for one file", order.size());
  for (size_t i = 0; i < 8; ++i) head.push_back(static_cast<char>(header.size() >> (8 * i) & 0xff));
  head += header;
  bytes = static_cast<int64_t>(head.size());
  for (const size_t index : order) {
    offsets[index] = bytes;
    bytes += tensors[index].bytes();
  }
}

void write_image(File& file, std::span<const std::byte> image) {
  constexpr size_t kAtOnce = size_t{64} << 20;
  reserve(file, static_cast<int64_t>(image.size()));
  for (; !image.empty(); image = image.subspan(std::min(kAtOnce, image.size())))
    file.write(image.first(std::min(kAtOnce, image.size())));
}

FileDigests write_safetensors(File& file, std::span<const TensorView> tensors, const Metadata& metadata,
                              int64_t chunk_bytes) {
  std::vector<TensorSpec> specs;
  for (const TensorView& view : tensors) {
    MEGALITH_CHECK(view.tensor && view.tensor.device == Device::cpu, "tensor '{}' is not in CPU memory", view.name);
    specs.push_back({.name = view.name, .dtype = view.tensor.dtype, .shape = view.tensor.shape});
  }
  const SafetensorsLayout layout(specs, metadata);
  reserve(file, layout.bytes);
  DigestingWriter writer(file, chunk_bytes);
  writer.write(std::as_bytes(std::span(layout.head)));
  for (const size_t index : layout.order) {
    const Tensor& tensor = tensors[index].tensor;
    if (tensor.contiguous()) {
      writer.write(bytes_of(tensor));
      continue;
    }
    for (int64_t row = 0; row < tensor.rows(); ++row) writer.write(bytes_of(tensor.slice_rows(row, row + 1)));
  }
  return writer.finish();
}

}  // namespace megalith::checkpoint
