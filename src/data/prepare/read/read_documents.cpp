#include "data/prepare/read/read_documents.h"

#include <span>

#include "core/error.h"
#include "data/prepare/encode_pipeline.h"

namespace megalith::data {

namespace {

class Documents : public PipelineEnds {
 public:
  Documents(const Tokenizer& tokenizer, const ReadDocuments& what, const std::function<void(const TextDocument&)>& take)
      : tokenizer_(tokenizer),
        units_(list_inputs(what.inputs, false), InputFormat::by_name, what.text_documents,
               FieldRules({what.json_key}, {})),
        take_(take) {}

  std::optional<PipelineUnit> next_unit() override { return units_.next(); }

  void put(const PipelineUnit& unit, PipelineBatch batch) override {
    if (!batch.damage.empty()) data_error("{}", batch.damage);
    if (!batch.encoded.bad.empty()) {
      const RejectedLine& bad = batch.encoded.bad.front();
      data_error("{}", describe_bad(unit, lines_ + bad.line, bad));
    }
    lines_ = batch.last ? 0 : lines_ + batch.encoded.lines;
    if (unit.file.path != file_) number_ = 0;
    file_ = unit.file.path;
    const EncodedBatch::Key& key = batch.encoded.keys.front();
    const std::vector<int32_t> ids = ids_of(key);
    std::span<const int32_t> rest = ids;
    for (const int32_t length : key.lengths) {
      const auto document = rest.first(static_cast<size_t>(length));
      rest = rest.subspan(document.size());
      ++number_;
      if (document.empty()) continue;
      take_({.file = unit.file.path,
             .number = number_,
             .ids = {document.begin(), document.end()},
             .bytes = std::ssize(tokenizer_.decode(document))});
    }
  }

 private:
  const Tokenizer& tokenizer_;
  InputUnits units_;
  const std::function<void(const TextDocument&)>& take_;
  std::filesystem::path file_;
  int64_t number_ = 0;  // of documents of the file so far
  int64_t lines_ = 0;   // of the unit so far
};

}  // namespace

void read_documents(const Tokenizer& tokenizer, const ReadDocuments& what,
                    const std::function<void(const TextDocument&)>& take) {
  PipelineOptions options;
  options.encode.json_keys = {what.json_key};
  Documents documents(tokenizer, what, take);
  run_pipeline(tokenizer, options, documents);
}

}  // namespace megalith::data
