#include "checkpoint/format/safetensors.h"

#include <algorithm>
#include <memory>
#include <tuple>

#include "checkpoint/format/strict_json.h"
#include "core/error.h"

namespace megalith::checkpoint {

namespace {
constexpr int64_t kLengthBytes = 8;

struct ElementType {
  std::string_view name;
  int64_t bytes;
  std::optional<DType> dtype;
};

constexpr ElementType kTypes[] = {
    {"F64", 8, DType::f64},       {"F32", 4, DType::f32},       {"BF16", 2, DType::bf16},  {"F16", 2, std::nullopt},
    {"F8_E4M3", 1, std::nullopt}, {"F8_E5M2", 1, std::nullopt}, {"I64", 8, DType::i64},    {"I32", 4, DType::i32},
    {"I16", 2, std::nullopt},     {"I8", 1, std::nullopt},      {"U64", 8, std::nullopt},  {"U32", 4, std::nullopt},
    {"U16", 2, std::nullopt},     {"U8", 1, std::nullopt},      {"BOOL", 1, std::nullopt},
};

const ElementType* find_type(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const ElementType& t) { return t.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

uint64_t load_little_endian(const std::byte (&bytes)[kLengthBytes]) {
  uint64_t value = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) value = value << 8 | std::to_integer<uint64_t>(bytes[i]);
  return value;
}

Metadata parse_metadata(const nlohmann::json& value, const std::string& where) {
  Metadata metadata;
  if (!value.is_object()) data_error("{}: __metadata__ is not an object", where);
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) data_error("{}: __metadata__ '{}' is not a string", where, key);
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

TensorEntry parse_entry(const std::string& name, const nlohmann::json& value, int64_t data_begin, int64_t data_bytes,
                        const std::string& where) {
  StrictObject object(value, fmt::format("{}: tensor '{}'", where, name));
  TensorEntry entry{.name = name, .type = object.take_string("dtype")};
  const ElementType* type = find_type(entry.type);
  if (type == nullptr) object.refuse(fmt::format("unknown dtype '{}'", entry.type));
  entry.dtype = type->dtype;
  entry.shape = object.take_ints("shape");
  if (entry.shape.size() > SafetensorsReader::kMaxRank) object.refuse("too many dimensions");
  const std::optional<int64_t> wanted = byte_count(entry.shape, type->bytes);
  if (!wanted) object.refuse("a shape that is negative or overflows");
  const std::vector<int64_t> offsets = object.take_ints("data_offsets");
  object.finish();
  if (offsets.size() != 2) object.refuse("data_offsets are not two numbers");
  if (offsets[0] < 0 || offsets[1] < offsets[0] || offsets[1] > data_bytes) {
    object.refuse(
        fmt::format("data_offsets [{}, {}] lie outside {} bytes of data", offsets[0], offsets[1], data_bytes));
  }
  entry.bytes = offsets[1] - offsets[0];
  if (entry.bytes != *wanted) object.refuse(fmt::format("{} bytes, its shape and dtype need {}", entry.bytes, *wanted));
  entry.begin = data_begin + offsets[0];
  return entry;
}
}  // namespace

std::string_view safetensors_type(DType dtype) {
  for (const ElementType& type : kTypes) {
    if (type.dtype == dtype) return type.name;
  }
  fail(ErrorKind::internal, "internal error: no safetensors type for {}", name_of(dtype));
}

bool is_tensor_name(std::string_view name) {
  return !name.empty() && name.size() <= SafetensorsReader::kMaxNameBytes && name != "__metadata__" &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::optional<int64_t> byte_count(std::span<const int64_t> dims, int64_t element_bytes) {
  int64_t total = element_bytes;
  for (const int64_t dim : dims) {
    if (dim < 0 || __builtin_mul_overflow(total, dim, &total)) return std::nullopt;
  }
  return total;
}

std::optional<Shape> to_shape(std::span<const int64_t> d) {
  if (std::any_of(d.begin(), d.end(), [](int64_t dim) { return dim < 0; })) return std::nullopt;
  switch (d.size()) {
    case 0:
      return Shape{};
    case 1:
      return Shape{d[0]};
    case 2:
      return Shape{d[0], d[1]};
    case 3:
      return Shape{d[0], d[1], d[2]};
    case 4:
      return Shape{d[0], d[1], d[2], d[3]};
    default:
      return std::nullopt;
  }
}

SafetensorsReader SafetensorsReader::open(const std::filesystem::path& path) {
  auto file = std::make_shared<File>(File::open_for_reading(path));
  return SafetensorsReader(path.string(), file->size(),
                           [file](int64_t offset, std::span<std::byte> into) { file->read_at(offset, into); });
}

SafetensorsReader::SafetensorsReader(std::string where, int64_t file_bytes, ReadAt read_at)
    : where_(std::move(where)), read_at_(std::move(read_at)) {
  if (file_bytes < kLengthBytes) data_error("{}: {} bytes are too few for a safetensors file", where_, file_bytes);
  std::byte length[kLengthBytes];
  read_at_(0, length);
  const uint64_t header_bytes = load_little_endian(length);
  if (header_bytes > static_cast<uint64_t>(std::min(kMaxHeaderBytes, file_bytes - kLengthBytes))) {
    data_error("{}: not a safetensors file (a header of {} bytes in a file of {}, at most {} accepted)", where_,
               header_bytes, file_bytes, kMaxHeaderBytes);
  }
  std::string header(static_cast<size_t>(header_bytes), '\0');
  read_at_(kLengthBytes, std::as_writable_bytes(std::span(header)));
  const int64_t data_begin = kLengthBytes + static_cast<int64_t>(header_bytes);
  parse_header(header, data_begin, file_bytes);
  check_coverage(data_begin, file_bytes);
}

void SafetensorsReader::parse_header(std::string_view text, int64_t data_begin, int64_t file_bytes) {
  if (!text.starts_with('{')) data_error("{}: the header does not start with '{{'", where_);
  const nlohmann::json header = parse_strict_json(
      text, {.max_bytes = kMaxHeaderBytes, .max_values = kMaxTensors * 16, .max_depth = 4}, where_ + ": header");
  if (static_cast<int64_t>(header.size()) > kMaxTensors) data_error("{}: more than {} tensors", where_, kMaxTensors);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      metadata_ = parse_metadata(value, where_);
      continue;
    }
    if (!is_tensor_name(name)) data_error("{}: a tensor's name is empty, too long or not printable", where_);
    entries_.push_back(parse_entry(name, value, data_begin, file_bytes - data_begin, where_));
  }
  // Empty tensors may share an offset with the one that follows: their size decides, then their name.
  std::sort(entries_.begin(), entries_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.bytes, a.name) < std::tie(b.begin, b.bytes, b.name);
  });
  for (size_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].name, i);
}

void SafetensorsReader::check_coverage(int64_t data_begin, int64_t file_bytes) {
  int64_t expected = data_begin;
  for (const TensorEntry& entry : entries_) {
    if (entry.begin != expected) {
      data_error("{}: tensor '{}' starts at byte {}, {} the data before it, which ends at {}", where_, entry.name,
                 entry.begin, entry.begin < expected ? "inside" : "behind a hole after", expected);
    }
    expected += entry.bytes;
  }
  if (expected != file_bytes) data_error("{}: {} bytes belong to no tensor", where_, file_bytes - expected);
}

const TensorEntry* SafetensorsReader::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

void SafetensorsReader::read(const std::string& name, const Tensor& into) const {
  const TensorEntry* entry = find(name);
  if (entry == nullptr) data_error("{}: no tensor '{}'", where_, name);
  if (entry->dtype != into.dtype || to_shape(entry->shape) != into.shape) {
    data_error("{}: tensor '{}' is {} [{}], {} {} is wanted", where_, name, entry->type, fmt::join(entry->shape, ", "),
               safetensors_type(into.dtype), to_string(into.shape));
  }
  MEGALITH_CHECK(into.device == Device::cpu, "tensor '{}' can only be read into CPU memory", name);
  auto* memory = static_cast<std::byte*>(into.data);
  if (into.contiguous()) {
    read_at_(entry->begin, {memory, static_cast<size_t>(entry->bytes)});
    return;
  }
  const int64_t row_bytes = into.cols() * size_of(into.dtype);
  const int64_t stride_bytes = into.row_stride * size_of(into.dtype);
  for (int64_t row = 0; row < into.rows(); ++row) {
    read_at_(entry->begin + row * row_bytes, {memory + row * stride_bytes, static_cast<size_t>(row_bytes)});
  }
}

}  // namespace megalith::checkpoint
