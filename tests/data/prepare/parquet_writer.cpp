#include "data/prepare/parquet_writer.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>
#include <parquet/exception.h>

namespace megalith::data {

namespace {
// The value of a result, or its error as an exception.
template <class T>
T value_of(arrow::Result<T> result) {
  PARQUET_THROW_NOT_OK(result.status());
  return std::move(result).ValueUnsafe();
}

template <class Builder>
std::shared_ptr<arrow::Array> filled(Builder& builder, const ParquetColumn& column) {
  for (const auto& value : column.values) {
    PARQUET_THROW_NOT_OK(value ? builder.Append(*value) : builder.AppendNull());
  }
  return value_of(builder.Finish());
}

std::shared_ptr<arrow::Array> array_of(const ParquetColumn& column, const std::string& type) {
  if (type == "large_string") {
    arrow::LargeStringBuilder builder;
    return filled(builder, column);
  }
  if (type == "dictionary") {
    arrow::StringDictionary32Builder builder;
    return filled(builder, column);
  }
  if (type == "binary") {
    arrow::BinaryBuilder builder;
    return filled(builder, column);
  }
  arrow::StringBuilder builder;
  return filled(builder, column);
}

std::shared_ptr<parquet::WriterProperties> properties_of(const ParquetLayout& layout) {
  parquet::WriterProperties::Builder builder;
  builder.compression(value_of(arrow::util::Codec::GetCompressionType(layout.compression)));
  builder.data_page_version(layout.second_pages ? parquet::ParquetDataPageVersion::V2
                                                : parquet::ParquetDataPageVersion::V1);
  builder.data_pagesize(layout.page_bytes)->write_batch_size(4)->enable_page_checksum();
  if (!layout.dictionary_pages) builder.disable_dictionary();
  if (layout.delta_encoded) builder.encoding(parquet::Encoding::DELTA_BYTE_ARRAY);
  return builder.build();
}

void write(const std::filesystem::path& path, const arrow::Table& table, const ParquetLayout& layout) {
  const auto keep_types = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  PARQUET_THROW_NOT_OK(parquet::arrow::WriteTable(table, arrow::default_memory_pool(),
                                                  value_of(arrow::io::FileOutputStream::Open(path.string())),
                                                  layout.rows_per_group, properties_of(layout), keep_types));
}
}  // namespace

void write_parquet(const std::filesystem::path& path, const std::vector<ParquetColumn>& columns,
                   const ParquetLayout& layout) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const ParquetColumn& column : columns) {
    arrays.push_back(array_of(column, layout.type));
    fields.push_back(arrow::field(column.name, arrays.back()->type()));
  }
  write(path, *arrow::Table::Make(arrow::schema(fields), arrays), layout);
}

void write_parquet_without_row_groups(const std::filesystem::path& path) {
  auto sink = value_of(arrow::io::FileOutputStream::Open(path.string()));
  auto writer = value_of(parquet::arrow::FileWriter::Open(*arrow::schema({arrow::field("text", arrow::utf8())}),
                                                          arrow::default_memory_pool(), sink));
  PARQUET_THROW_NOT_OK(writer->Close());
}

void write_parquet_without_text(const std::filesystem::path& path) {
  arrow::Int64Builder ids;
  PARQUET_THROW_NOT_OK(ids.Append(7));
  const auto source = array_of({"source", {"a"}}, "string");
  const auto tag = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder tags(arrow::default_memory_pool(), tag);
  PARQUET_THROW_NOT_OK(tags.Append());
  PARQUET_THROW_NOT_OK(tag->Append("b"));
  const arrow::ArrayVector arrays{value_of(ids.Finish()), array_of({"raw", {"c"}}, "binary"), value_of(tags.Finish()),
                                  value_of(arrow::StructArray::Make({source}, std::vector<std::string>{"source"}))};
  arrow::FieldVector fields;
  for (const char* name : {"id", "raw", "tags", "meta"})
    fields.push_back(arrow::field(name, arrays[fields.size()]->type()));
  write(path, *arrow::Table::Make(arrow::schema(fields), arrays), {});
}

}  // namespace megalith::data
