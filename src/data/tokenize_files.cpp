#include "data/tokenize_files.h"

#include <nlohmann/json.hpp>

#include <memory>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "data/indexed_dataset_writer.h"
#include "data/line_reader.h"

namespace megalith::data {

namespace {
bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\f\v") == std::string_view::npos;
}

// One run over the inputs.
class Run {
 public:
  Run(const Tokenizer& tokenizer, const TokenizeOptions& options)
      : tokenizer_(tokenizer), options_(options), begin_(monotonic_seconds()) {
    for (const std::string& key : options.json_keys) {
      const std::string prefix = tokenized_prefix(options.output_prefix, key);
      for (const char* suffix : {".bin", ".idx"}) {
        if (!options.overwrite && std::filesystem::exists(prefix + suffix)) {
          user_error("{}{} exists already; it is not overwritten unless asked to", prefix, suffix);
        }
      }
    }
    for (const std::string& key : options.json_keys) {
      const std::string prefix = tokenized_prefix(options.output_prefix, key);
      writers_.push_back(std::make_unique<IndexedDatasetWriter>(prefix, tokenizer.vocab_size()));
    }
  }

  void add_json_lines(const std::filesystem::path& path) {
    LineReader lines(path);
    const int64_t bytes_before = counts_.bytes;
    while (const auto line = lines.next()) {
      counts_.bytes = bytes_before + lines.bytes_read();
      if (is_blank(*line)) continue;
      const auto object = nlohmann::json::parse(*line, nullptr, /*allow_exceptions=*/false);
      if (!object.is_object()) {
        data_error("{}:{}: not a JSON object{}", path.string(), lines.line_number(), reason(*line));
      }
      for (size_t i = 0; i < writers_.size(); ++i) {
        const auto text = object.find(options_.json_keys[i]);
        if (text == object.end() || !text->is_string()) {
          data_error("{}:{}: the object has {} under the key \"{}\", where text is expected", path.string(),
                     lines.line_number(), text == object.end() ? "nothing" : text->type_name(), options_.json_keys[i]);
        }
        write(*writers_[i], text->get_ref<const std::string&>());
      }
      count_document();
    }
  }

  void add_whole_text(const std::filesystem::path& path) {
    const std::string text = read_text(path);
    counts_.bytes += std::ssize(text);
    write(*writers_[0], text);
    count_document();
  }

  void add_paragraphs(const std::filesystem::path& path) {
    LineReader lines(path);
    const int64_t bytes_before = counts_.bytes;
    std::string text;
    const auto end_document = [&] {
      if (text.empty()) return;
      write(*writers_[0], text);
      count_document();
      text.clear();
    };
    while (const auto line = lines.next()) {
      counts_.bytes = bytes_before + lines.bytes_read();
      if (is_blank(*line)) {
        end_document();
      } else {
        if (!text.empty()) text += '\n';
        text += *line;
      }
    }
    end_document();
  }

  TokenizeCounts finish() {
    for (const auto& writer : writers_) writer->finish();
    counts_.seconds = monotonic_seconds() - begin_;
    return counts_;
  }

 private:
  // Why a line is no JSON. It is parsed again for that, so that good lines do not pay for the message.
  static std::string reason(std::string_view line) {
    try {
      return fmt::format(": the line is of type {}", nlohmann::json::parse(line).type_name());
    } catch (const nlohmann::json::parse_error& error) {
      return fmt::format(" (byte {}): {}", error.byte, error.what());
    }
  }

  void write(IndexedDatasetWriter& writer, std::string_view text) {
    ids_.clear();
    tokenizer_.encode(text, ids_);
    if (ids_.empty()) {
      ++counts_.empty_documents;
    } else if (options_.append_eod) {
      ids_.push_back(tokenizer_.eod());
    }
    writer.add_document(ids_);
    counts_.tokens += std::ssize(ids_);
  }

  void count_document() {
    ++counts_.documents;
    if (!options_.log || options_.log_every <= 0 || counts_.documents % options_.log_every != 0) return;
    counts_.seconds = monotonic_seconds() - begin_;
    options_.log(counts_);
  }

  const Tokenizer& tokenizer_;
  const TokenizeOptions& options_;
  double begin_;
  TokenizeCounts counts_;
  std::vector<std::unique_ptr<IndexedDatasetWriter>> writers_;
  std::vector<int32_t> ids_;
};

bool is_json_lines(const std::filesystem::path& path, InputFormat format) {
  if (format != InputFormat::by_name) return format == InputFormat::json_lines;
  const std::string extension = path.extension().string();
  if (extension == ".jsonl" || extension == ".json") return true;
  if (extension == ".txt") return false;
  user_error("{}: the name does not end in .jsonl, .json or .txt; say which format it has", path.string());
}
}  // namespace

std::string tokenized_prefix(const std::string& output_prefix, const std::string& key) {
  return output_prefix + "_" + key + "_document";
}

TokenizeCounts tokenize_files(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  if (options.inputs.empty()) user_error("no input file given");
  if (options.output_prefix.empty()) user_error("no output prefix given");
  if (options.json_keys.empty()) user_error("no JSON key given");
  for (const auto& path : options.inputs) {
    if (!std::filesystem::is_regular_file(path)) user_error("input {} is not a file", path.string());
    if (!is_json_lines(path, options.format) && options.json_keys.size() != 1) {
      user_error("input {} is plain text, which cannot have {} JSON keys", path.string(), options.json_keys.size());
    }
  }
  Run run(tokenizer, options);
  for (const auto& path : options.inputs) {
    if (is_json_lines(path, options.format)) {
      run.add_json_lines(path);
    } else if (options.text_documents == TextDocuments::blank_lines) {
      run.add_paragraphs(path);
    } else {
      run.add_whole_text(path);
    }
  }
  return run.finish();
}

}  // namespace megalith::data
