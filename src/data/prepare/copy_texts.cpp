#include "data/prepare/copy_texts.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "core/process/file_lock.h"
#include "data/prepare/prepare_config.h"
#include "data/prepare/read/batch_reader.h"
#include "data/prepare/read/long_document.h"

namespace megalith::data {

namespace {
struct Output {
  std::filesystem::path path;
  std::vector<InputFile> inputs;
};

class NoReceiver : public JsonLineStream::Receiver {
  void forget(size_t) override {}
  void add_text(size_t, std::string_view) override {}
};

// A line too long to be held is written as it comes, and taken back if it turns out not to stay.
struct LongLineCopy {
  int64_t offset = 0;
  int64_t bytes = 0;
  int64_t begin = 0;  // in the output
  Digest digest;
  std::unique_ptr<LongLine> json;
  bool ended_with_newline = true;  // what came before it
};

// Makes one output from its inputs.
class Copy {
 public:
  Copy(const Output& output, const CopyOptions& options) : output_(output), options_(options) {
    const std::filesystem::path folder = output.path.parent_path() / ".megalith";
    record_ = folder / (output.path.filename().string() + ".json");
    make_parent_directory(record_);
    nlohmann::ordered_json inputs = nlohmann::ordered_json::array();
    for (const InputFile& file : output.inputs) inputs.push_back(input_to_json(file));
    nlohmann::ordered_json keep = nlohmann::ordered_json::array();
    for (const FieldFilter& filter : options.keep) keep.push_back({{"path", filter.path}, {"values", filter.values}});
    config_ = {{"inputs", inputs},
               {"keep", keep},
               {"on_error", options.on_error == OnError::fail ? "fail" : "skip"},
               {"max_document_bytes", options.max_document_bytes}};
    if (options.keep.empty()) return;
    fields_.emplace(std::vector<std::string>{}, options.keep, BadText::reject);
    rules_.emplace(std::vector<std::string>{}, options.keep);
  }

  // False if there is nothing left to do.
  bool needed() const {
    const int64_t size = size_if_there(output_.path);
    if (size_if_there(record_) >= 0) {
      const auto record = nlohmann::ordered_json::parse(read_text(record_), nullptr, /*allow_exceptions=*/false);
      if (record.is_object() && record.value("config", nlohmann::ordered_json()) == config_ &&
          record.value("bytes", int64_t{-1}) == size) {
        return false;
      }
    }
    if (size >= 0 && !options_.overwrite) {
      user_error("{} exists and was not made from these inputs by this command; use --overwrite to replace it",
                 output_.path.string());
    }
    return true;
  }

  CopyCounts run() {
    const std::filesystem::path part = std::filesystem::path(output_.path) += ".part";
    File file = File::open_for_appending(part);
    lock_or_refuse(file);
    file.truncate(0);
    file_ = &file;
    try {
      for (const InputFile& input : output_.inputs) add(input);
      file.sync();
    } catch (...) {
      ::unlink(part.c_str());
      throw;
    }
    // The record is believed only beside an output of its size: put first, a kill in between costs this output alone.
    remove_if_there(output_.path);
    const nlohmann::ordered_json record{
        {"config", config_},      {"bytes", counts_.bytes_out},   {"xxh3", digest_.hex()},
        {"lines", counts_.lines}, {"filtered", counts_.filtered}, {"skipped", counts_.skipped.to_json()}};
    replace_file(record_, record.dump(1) + "\n");
    publish(part, output_.path);
    return std::move(counts_);
  }

 private:
  void add(const InputFile& input) {
    check_unchanged(input);
    const int64_t begin = counts_.bytes_out;
    const Digest digest_before = digest_;
    const CopyCounts counts_before = counts_;
    try {
      copy(input);
      check_unchanged(input);
      counts_.bytes_in += input.size;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data || options_.on_error == OnError::fail) throw;
      if (options_.warn) options_.warn(fmt::format("{}; the file is left out", error.what()));
      file_->truncate(begin);
      digest_ = digest_before;
      counts_ = counts_before;
      counts_.skipped.add(BadLine::damaged_file, input.path.string());
    }
  }

  void copy(const InputFile& input) {
    // Without a filter lines do not matter, so that any file goes through in memory of one batch.
    BatchReader reader(input.path, Cut::lines,
                       {options_.read, std::min(int64_t{1} << 20, options_.long_document_bytes),
                        options_.max_document_bytes, options_.long_document_bytes});
    int64_t line = 0;
    bool ends_with_newline = true;
    long_line_.reset();
    for (bool more = true; more;) {
      const RawBatch batch = reader.next();
      more = !batch.last;
      if (batch.too_long) {
        ++line;
        bad(input, line, batch.offset, BadLine::too_long, "");
        continue;
      }
      if (batch.part) {
        add_part(input, batch, line, ends_with_newline);
        continue;
      }
      const std::string_view kept = fields_ ? filter(input, batch, line) : batch.text.view();
      if (kept.empty()) continue;
      if (!fields_) counts_.lines += std::count(kept.begin(), kept.end(), '\n');
      write(kept);
      ends_with_newline = kept.back() == '\n';
    }
    if (!ends_with_newline) {
      counts_.lines += fields_ ? 0 : 1;
      write("\n");
    }
  }

  void add_part(const InputFile& input, const RawBatch& part, int64_t& line_number, bool& ends_with_newline) {
    if (part.first_part) {
      long_line_.emplace();
      long_line_->offset = part.offset;
      long_line_->begin = counts_.bytes_out;
      long_line_->digest = digest_;
      long_line_->ended_with_newline = ends_with_newline;
      const int64_t most = options_.max_document_bytes;
      if (rules_) long_line_->json = std::make_unique<LongLine>(*rules_, BadText::reject, most, no_receiver_);
    }
    std::string_view content = part.text.view();
    if (!content.empty()) ends_with_newline = content.back() == '\n';
    write(content);
    if (content.ends_with('\n')) content.remove_suffix(1);
    long_line_->bytes += std::ssize(content);
    if (long_line_->json) long_line_->json->add(content);
    if (!part.last_part) return;
    ++line_number;
    if (!judge_long_line(input, line_number)) {
      file_->truncate(long_line_->begin);
      counts_.bytes_out = long_line_->begin;
      digest_ = long_line_->digest;
      ends_with_newline = long_line_->ended_with_newline;
    } else if (long_line_->json || ends_with_newline) {
      ++counts_.lines;
    }
    long_line_.reset();
  }

  bool judge_long_line(const InputFile& input, int64_t line_number) {
    LongLine::Verdict line;
    if (long_line_->json) {
      line = long_line_->json->finish();
    } else if (long_line_->bytes > options_.max_document_bytes) {
      line = {.verdict = LineVerdict::bad, .problem = {BadLine::too_long, ""}};
    }
    if (line.blank) return false;
    if (line.verdict == LineVerdict::bad) {
      bad(input, line_number, long_line_->offset, line.problem.kind, line.problem.detail);
    } else if (line.verdict == LineVerdict::filtered) {
      ++counts_.filtered;
    }
    return line.verdict == LineVerdict::document;
  }

  // The lines that stay, as they are.
  std::string_view filter(const InputFile& input, const RawBatch& batch, int64_t& line_number) {
    kept_.clear();
    const std::string_view text = batch.text.view();
    for (size_t begin = 0; begin < text.size();) {
      const auto* found = static_cast<const char*>(std::memchr(text.data() + begin, '\n', text.size() - begin));
      const size_t end = found == nullptr ? text.size() : static_cast<size_t>(found - text.data()) + 1;
      const std::string_view line = text.substr(begin, end - begin);
      ++line_number;
      const std::string_view content = line.substr(0, line.find_last_not_of("\r\n") + 1);
      if (!is_blank(content)) {
        const LineVerdict verdict = fields_->read(content);
        if (verdict == LineVerdict::document) {
          kept_ += line;
          ++counts_.lines;
        } else if (verdict == LineVerdict::filtered) {
          ++counts_.filtered;
        } else {
          bad(input, line_number, batch.offset + static_cast<int64_t>(begin), fields_->problem().kind,
              fields_->problem().detail);
        }
      }
      begin = end;
    }
    return kept_;
  }

  void bad(const InputFile& input, int64_t line, int64_t offset, BadLine kind, const std::string& detail) {
    if (options_.on_error == OnError::fail) {
      // Not a data error: those stand for damaged files here, of which nothing is used.
      user_error("{}:{}: byte {}: {}{}{}; --on-error skip leaves such lines out", input.path.string(), line, offset,
                 name_of(kind), detail.empty() ? "" : ": ", detail);
    }
    counts_.skipped.add(kind, fmt::format("{}:{}", input.path.string(), line));
  }

  void write(std::string_view text) {
    file_->write(text);
    digest_.add(text);
    counts_.bytes_out += std::ssize(text);
  }

  const Output& output_;
  const CopyOptions& options_;
  std::filesystem::path record_;
  nlohmann::ordered_json config_;
  std::optional<DocumentFields> fields_;
  std::optional<FieldRules> rules_;
  std::optional<LongLineCopy> long_line_;
  NoReceiver no_receiver_;
  File* file_ = nullptr;
  Digest digest_;
  CopyCounts counts_;
  std::string kept_;
};

CopyCounts make_all(const std::vector<Output>& outputs, const CopyOptions& options) {
  if (options.threads < 1) user_error("{} threads cannot work", options.threads);
  std::map<std::filesystem::path, const Output*> names;
  for (const Output& output : outputs) {
    const auto [other, fresh] = names.emplace(output.path, &output);
    if (!fresh) {
      user_error("{} and {} would both become {}", other->second->inputs[0].path.string(),
                 output.inputs[0].path.string(), output.path.string());
    }
  }
  std::vector<const Output*> mine;
  for (int64_t i = options.worker.index; i < std::ssize(outputs); i += options.worker.count) {
    mine.push_back(&outputs[static_cast<size_t>(i)]);
  }
  CopyCounts total;
  total.outputs = std::ssize(mine);
  std::mutex mutex;
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (size_t i = next++; i < mine.size(); i = next++) {
        Copy copy(*mine[i], options);
        const bool needed = copy.needed();
        const CopyCounts counts = needed ? copy.run() : CopyCounts{};
        const std::lock_guard lock(mutex);
        total.outputs_before += needed ? 0 : 1;
        total.lines += counts.lines;
        total.filtered += counts.filtered;
        total.bytes_in += counts.bytes_in;
        total.bytes_out += counts.bytes_out;
        total.skipped.append(counts.skipped);
        if (options.progress) options.progress(total);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
      next = mine.size();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < options.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return total;
}
}  // namespace

CopyCounts extract_texts(const CopyOptions& options) {
  std::vector<Output> outputs;
  for (InputFile& file : list_inputs(options.inputs, /*sort_all=*/true)) {
    const std::filesystem::path name = uncompressed_name(file.path.filename());
    if (std::error_code status; std::filesystem::equivalent(options.output_directory / name, file.path, status)) {
      user_error("{} would be written over itself", file.path.string());
    }
    outputs.push_back({options.output_directory / name, {std::move(file)}});
  }
  return make_all(outputs, options);
}

CopyCounts concat_texts(const CopyOptions& options, int64_t files_per_chunk, const std::string& stem) {
  if (files_per_chunk < 1) user_error("{} files cannot be a chunk", files_per_chunk);
  std::vector<Output> outputs;
  int64_t in_chunk = files_per_chunk;
  for (InputFile& file : list_inputs(options.inputs, /*sort_all=*/true)) {
    if (in_chunk == files_per_chunk) {
      const std::string name = fmt::format("{}_{}.jsonl", stem, outputs.size());
      outputs.push_back({options.output_directory / name, {}});
      in_chunk = 0;
    }
    outputs.back().inputs.push_back(std::move(file));
    ++in_chunk;
  }
  return make_all(outputs, options);
}

}  // namespace megalith::data
