#include "data/prepare/parquet_file.h"

#include <arrow/io/file.h>
#include <arrow/memory_pool.h>
#include <arrow/util/io_util.h>
#include <parquet/api/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "core/error.h"
#include "data/prepare/json/json_text.h"

namespace megalith::data {

namespace {
constexpr size_t kJsonBytes = size_t{64} << 10;   // made at a time, about
constexpr int64_t kReadBytes = int64_t{1} << 20;  // of a column, at a time

bool refused_by_machine(const std::exception& error) {
  const auto* thrown = dynamic_cast<const parquet::ParquetStatusException*>(&error);
  if (thrown == nullptr) return dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return thrown->status().IsOutOfMemory() || arrow::internal::ErrnoFromStatus(thrown->status()) != 0;
}

// Runs what calls Arrow: none of its exceptions leaves, and what the machine refused is no fault of the file.
template <class Body>
auto guarded(const std::string& place, Body&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    if (refused_by_machine(error)) fail(ErrorKind::io, "{}: {}", place, error.what());
    data_error("{}: this cannot be read as Parquet: {}", place, error.what());
  }
}

std::unique_ptr<parquet::ParquetFileReader> open_reader(const std::string& path,
                                                        std::shared_ptr<parquet::FileMetaData> metadata) {
  std::shared_ptr<arrow::io::ReadableFile> file;
  PARQUET_ASSIGN_OR_THROW(file, arrow::io::ReadableFile::Open(path));
  parquet::ReaderProperties properties(arrow::system_memory_pool());
  properties.enable_buffered_stream();  // otherwise a whole column of the row group is read at once
  properties.set_buffer_size(kReadBytes);
  properties.set_page_checksum_verification(true);
  return parquet::ParquetFileReader::Open(std::move(file), properties, std::move(metadata));
}

// A column of a row group, value by value.
class Column {
 public:
  Column(const std::string& name, std::shared_ptr<parquet::ColumnReader> reader)
      : level_of_values_(reader->descr()->max_definition_level()),
        reader_(std::static_pointer_cast<parquet::ByteArrayReader>(std::move(reader))) {
    append_escaped(name_, name);
  }

  const std::string& name() const { return name_; }  // as JSON has it

  // Nothing for null. The text stays until the next call.
  std::optional<std::string_view> next() {
    if (row_ == rows_) read_batch();
    const bool present = level_of_values_ == 0 || levels_[row_] == level_of_values_;
    ++row_;
    if (!present) return std::nullopt;
    if (value_ == values_read_) throw parquet::ParquetException("column " + name_ + " has fewer values than rows");
    const parquet::ByteArray& value = values_[static_cast<size_t>(value_++)];
    return std::string_view(reinterpret_cast<const char*>(value.ptr), value.len);
  }

 private:
  // Does not reach beyond a page, which stays until the next batch is read.
  void read_batch() {
    value_ = 0;
    row_ = 0;
    rows_ = static_cast<size_t>(
        reader_->ReadBatch(std::ssize(values_), levels_.data(), nullptr, values_.data(), &values_read_));
    if (rows_ == 0) throw parquet::ParquetException("column " + name_ + " has fewer rows than the file says");
  }

  std::string name_;
  int16_t level_of_values_;  // the definition level of a value that is there; 0: all are
  std::shared_ptr<parquet::ByteArrayReader> reader_;
  std::array<int16_t, 1024> levels_{};
  std::array<parquet::ByteArray, 1024> values_{};
  size_t row_ = 0;   // of the batch
  size_t rows_ = 0;  // in the batch
  int64_t value_ = 0;
  int64_t values_read_ = 0;
};

struct NamedColumn {
  std::string name;
  int index = 0;
};

class RowGroupSource : public ByteSource {
 public:
  RowGroupSource(std::string place, std::unique_ptr<parquet::ParquetFileReader> file, int row_group,
                 const std::vector<NamedColumn>& columns, int64_t bytes)
      : place_(std::move(place)), bytes_(bytes), file_(std::move(file)) {
    if (file_->metadata()->num_row_groups() == 0) return;
    group_ = file_->RowGroup(row_group);
    rows_ = group_->metadata()->num_rows();
    for (const NamedColumn& column : columns) columns_.emplace_back(column.name, group_->Column(column.index));
  }

  size_t read(std::span<char> into) override {
    if (taken_ == json_.size()) guarded(place_, [this] { make_json(); });
    const size_t count = std::min(into.size(), json_.size() - taken_);
    if (count > 0) std::memcpy(into.data(), json_.data() + taken_, count);
    taken_ += count;
    return count;
  }
  int64_t consumed() const override {
    const double share = rows_ > 0 ? static_cast<double>(row_) / static_cast<double>(rows_) : 1.0;
    return static_cast<int64_t>(share * static_cast<double>(bytes_));
  }

 private:
  void make_json() {
    json_.clear();
    taken_ = 0;
    while (row_ < rows_ && json_.size() < kJsonBytes) {
      if (!in_value_) begin_value();
      append_escaped(json_, rest_.substr(0, kJsonBytes));
      rest_.remove_prefix(std::min(rest_.size(), kJsonBytes));
      if (rest_.empty()) end_value();
    }
  }

  void begin_value() {
    json_ += column_ == 0 ? "{\"" : ",\"";
    json_ += columns_[column_].name();
    const auto value = columns_[column_].next();
    is_text_ = value.has_value();
    json_ += is_text_ ? "\":\"" : "\":null";
    rest_ = value.value_or("");
    in_value_ = true;
  }

  void end_value() {
    if (is_text_) json_ += '"';
    in_value_ = false;
    if (++column_ < columns_.size()) return;
    json_ += "}\n";
    column_ = 0;
    ++row_;
  }

  std::string place_;
  int64_t bytes_;
  std::unique_ptr<parquet::ParquetFileReader> file_;
  std::shared_ptr<parquet::RowGroupReader> group_;
  std::vector<Column> columns_;
  int64_t row_ = 0;
  int64_t rows_ = 0;

  // The value that is being written; a long one takes several calls.
  size_t column_ = 0;
  bool in_value_ = false;
  bool is_text_ = false;  // not null
  std::string_view rest_;
  std::string json_;
  size_t taken_ = 0;  // of it
};

parquet::Type::type stored_type(const parquet::schema::Node& field) {
  return static_cast<const parquet::schema::PrimitiveNode&>(field).physical_type();
}

bool is_text(const parquet::schema::Node& field) {
  return field.is_primitive() && !field.is_repeated() && field.logical_type()->is_string() &&
         stored_type(field) == parquet::Type::BYTE_ARRAY;
}

std::string type_of(const parquet::schema::Node& field) {
  if (is_text(field)) return "string";
  if (field.is_group() || field.is_repeated()) return "nested";
  if (!field.logical_type()->is_none()) return field.logical_type()->ToString();
  return parquet::TypeToString(stored_type(field));
}

// The column at the top level of the file that a path names.
NamedColumn find_column(const std::string& file, const std::string& path, const parquet::SchemaDescriptor& schema) {
  const std::vector<std::string> keys = split_json_path(path);
  const parquet::schema::GroupNode& root = *schema.group_node();
  std::string has;
  std::vector<const parquet::schema::Node*> found;
  for (int i = 0; i < root.field_count(); ++i) {
    const parquet::schema::Node& field = *root.field(i);
    has += fmt::format("{}{} ({})", has.empty() ? "" : ", ", field.name(), type_of(field));
    if (field.name() == keys.front()) found.push_back(&field);
  }
  const auto refuse = [&](const std::string& why) {
    data_error("{}: {}; the file has {}", file, why, has.empty() ? "no columns" : has);
  };
  if (found.empty()) refuse(fmt::format("there is no column \"{}\"", keys.front()));
  if (found.size() > 1) refuse(fmt::format("there are several columns \"{}\"", keys.front()));
  if (keys.size() > 1) refuse(fmt::format("\"{}\" is inside of a column, where only whole columns are read", path));
  if (!is_text(*found[0])) {
    refuse(fmt::format("the column \"{}\" is {}, where string is expected", path, type_of(*found[0])));
  }
  return {keys.front(), schema.ColumnIndex(*found[0])};
}

class ArrowParquetFile : public ParquetFile {
 public:
  ArrowParquetFile(const std::filesystem::path& path, const std::vector<std::string>& columns)
      : path_(path.string()), metadata_(open_reader(path_, nullptr)->metadata()) {
    for (const std::string& name : columns) columns_.push_back(find_column(path_, name, *metadata_->schema()));
  }

  int64_t row_groups() const override { return metadata_->num_row_groups(); }

  std::unique_ptr<ByteSource> read(int64_t row_group, int64_t bytes) const override {
    std::string place = fmt::format("{}: row group {}", path_, row_group);
    return guarded(place, [&]() -> std::unique_ptr<ByteSource> {
      return std::make_unique<RowGroupSource>(place, open_reader(path_, metadata_), static_cast<int>(row_group),
                                              columns_, bytes);
    });
  }

 private:
  std::string path_;
  std::shared_ptr<parquet::FileMetaData> metadata_;
  std::vector<NamedColumn> columns_;
};
}  // namespace

ParquetFile* megalith_open_parquet(const std::filesystem::path& path, const std::vector<std::string>& columns) {
  return guarded(path.string(), [&] { return new ArrowParquetFile(path, columns); });
}

}  // namespace megalith::data
