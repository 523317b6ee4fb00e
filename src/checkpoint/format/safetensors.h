#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "checkpoint/format/file_digests.h"
#include "core/file.h"
#include "core/tensor.h"

namespace megalith::checkpoint {

// The safetensors layout: u64 little-endian length of the header, the header as a JSON object
//   {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
// padded with spaces to 8 bytes, then the data. Offsets count from the first byte after the header.

using Metadata = std::map<std::string, std::string>;

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;

  int64_t bytes() const { return shape.elements() * size_of(dtype); }
};

// Where everything lies in a file of these tensors. The largest element types come first, so that every tensor is
// aligned for readers that map the file.
struct SafetensorsLayout {
  SafetensorsLayout(std::span<const TensorSpec> tensors, const Metadata& metadata);

  std::string head;              // all bytes in front of the data
  std::vector<size_t> order;     // of the tensors in the file
  std::vector<int64_t> offsets;  // of each tensor, from the beginning of the file
  int64_t bytes = 0;             // of the file
};

// Writes bytes that are a file already.
void write_image(File& file, std::span<const std::byte> image);
struct TensorView {
  std::string name;
  Tensor tensor;  // on the CPU; rows may be strided
};

// Streams the tensors to a new, empty file and returns what was written. Syncing is the caller's business.
FileDigests write_safetensors(File& file, std::span<const TensorView> tensors, const Metadata& metadata = {},
                              int64_t chunk_bytes = FileDigests::kChunkBytes);

struct TensorEntry {
  std::string name;
  std::string type;            // as the file spells it: "F32", "BF16", ...
  std::optional<DType> dtype;  // nothing for types that files may hold but we do not compute in
  std::vector<int64_t> shape;  // empty: a scalar
  int64_t begin = 0;           // absolute offset in the file
  int64_t bytes = 0;
};

// Reads a file that may be hostile: everything in the header is checked before anything is believed or allocated, and
// what is wrong is a data error that names the file.
class SafetensorsReader {
 public:
  static constexpr int64_t kMaxHeaderBytes = int64_t{64} << 20;
  static constexpr int64_t kMaxTensors = int64_t{1} << 18;
  static constexpr size_t kMaxNameBytes = 512;
  static constexpr size_t kMaxRank = 8;

  // Fills the span from an offset of the file, or throws.
  using ReadAt = std::function<void(int64_t offset, std::span<std::byte> into)>;

  static SafetensorsReader open(const std::filesystem::path& path);
  SafetensorsReader(std::string where, int64_t file_bytes, ReadAt read_at);

  // In the order of the data.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  const TensorEntry* find(const std::string& name) const;

  // Fills CPU memory of exactly the entry's type and shape.
  void read(const std::string& name, const Tensor& into) const;

 private:
  void parse_header(std::string_view text, int64_t data_begin, int64_t file_bytes);
  void check_coverage(int64_t data_begin, int64_t file_bytes);

  std::string where_;
  ReadAt read_at_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
  Metadata metadata_;
};

// "F32" for DType::f32.
std::string_view safetensors_type(DType dtype);

// A name that may stand in a file: not empty, not too long, printable.
bool is_tensor_name(std::string_view name);

// The bytes of so many elements, or nothing where a dimension is negative or the product overflows.
std::optional<int64_t> byte_count(std::span<const int64_t> dims, int64_t element_bytes);

// A core shape of these dimensions, or nothing where the core cannot hold it.
std::optional<Shape> to_shape(std::span<const int64_t> dims);

}  // namespace megalith::checkpoint
