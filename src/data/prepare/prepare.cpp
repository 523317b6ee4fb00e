#include "data/prepare/prepare.h"

#include <map>
#include <memory>
#include <mutex>

#include "core/clock.h"
#include "core/error.h"
#include "core/file.h"
#include "data/prepare/encode_pipeline.h"
#include "data/prepare/prepare_job.h"
#include "data/prepare/write/shard_writer.h"
#include "data/prepare/write/sidecar.h"

namespace megalith::data {

namespace {

// A shard that is being written.
struct OpenShard {
  const ShardJob* job = nullptr;
  std::vector<std::unique_ptr<ShardWriter>> writers;  // per key; null: that output is complete
  InputUnits units;                                   // to be given to the pipeline

  // Of the unit that is coming back.
  std::vector<OutputCounts> counts;  // per key
  int64_t lines = 0;
  int64_t consumed = 0;
};

// Gives the input files of this worker's shards to the pipeline and writes what comes back.
class ShardEnds : public PipelineEnds {
 public:
  ShardEnds(const Tokenizer& tokenizer, const PrepareOptions& options, const PrepareJob& job)
      : tokenizer_(tokenizer), options_(options), job_(job), begin_(monotonic_seconds()) {
    for (const std::string& key : options.encode.json_keys) summary_.keys.push_back({key, {}});
    summary_.shards_in_all = std::ssize(job.shards);
    for (int64_t i = options.worker.index; i < std::ssize(job.shards); i += options.worker.count) {
      mine_.push_back(&job.shards[static_cast<size_t>(i)]);
      for (const InputFile& file : mine_.back()->inputs) summary_.progress.bytes_total += file.size;
      for (const std::string& key : options.encode.json_keys) {
        summary_.prefixes.push_back(output_name(mine_.back()->prefix, key));
      }
    }
    summary_.shards = std::ssize(mine_);
    refuse_foreign_outputs();
  }

  std::optional<PipelineUnit> next_unit() override {
    const std::lock_guard lock(mutex_);
    while (!giving_ || giving_->units.done()) {
      if (next_shard_ == std::ssize(mine_)) return std::nullopt;
      giving_ = open_shard(*mine_[static_cast<size_t>(next_shard_++)]);
    }
    auto unit = giving_->units.next();
    unit->id = next_id_++;
    on_the_way_[unit->id] = giving_;
    return unit;
  }

  void put(const PipelineUnit& unit, PipelineBatch batch) override {
    OpenShard& shard = shard_of(unit.id);
    if (!batch.damage.empty()) {
      leave_out(shard, unit, batch.damage);
    } else {
      add(shard, unit, batch);
      report(shard, batch);
    }
    if (batch.last) end_unit(shard, unit);
  }

  PrepareSummary finish() {
    summary_.progress.seconds = monotonic_seconds() - begin_;
    return std::move(summary_);
  }

 private:
  // Before any work is done: an hour later would be a bad moment.
  void refuse_foreign_outputs() {
    if (options_.overwrite) return;
    for (const ShardJob* shard : mine_) {
      for (const std::string& key : options_.encode.json_keys) {
        const std::string prefix = output_name(shard->prefix, key);
        const FoundOutput found = find_output(prefix, shard->config_hash);
        // A journal beside it says that a commit was cut off, if it is ours; otherwise the writer starts anew.
        const bool in_commit = size_if_there(prefix + ".lengths.part") >= 0 && size_if_there(prefix + ".json") < 0 &&
                               size_if_there(prefix + ".bin.part") < 0;
        if (found.state == OutputState::foreign && !in_commit) {
          user_error("{}.bin exists: {}; use --overwrite to replace it", prefix, found.reason);
        }
      }
    }
  }

  std::shared_ptr<OpenShard> open_shard(const ShardJob& job) {
    auto shard = std::make_shared<OpenShard>();
    shard->job = &job;
    std::optional<int64_t> finished;  // units; nothing: the shard is complete
    for (size_t i = 0; i < summary_.keys.size(); ++i) {
      const std::string prefix = output_name(job.prefix, summary_.keys[i].key);
      auto& writer = shard->writers.emplace_back(open_writer(prefix, job, summary_.keys[i].counts));
      shard->counts.emplace_back();
      if (!writer) continue;
      const int64_t verified = writer->verified_units();
      finished = std::min(finished.value_or(verified), verified);
    }
    if (!finished) {
      ++summary_.shards_before;  // touched here only
      for (const InputFile& file : job.inputs) count_resumed(file.size);
      return shard;
    }
    shard->units = units_of(job.inputs, options_);
    for (int64_t i = 0; i < *finished; ++i) {
      const auto unit = shard->units.next();
      MEGALITH_CHECK(unit, "{} units are finished of {}", *finished, i);
      count_resumed(unit->bytes);
    }
    for (const auto& writer : shard->writers) {
      if (writer) writer->resume(*finished);
    }
    if (shard->units.done()) commit(*shard);
    return shard;
  }

  void count_resumed(int64_t bytes) {
    const std::lock_guard lock(summary_mutex_);
    summary_.progress.bytes += bytes;
    summary_.progress.bytes_resumed += bytes;
  }

  // Null if the output is complete; its counts are then added to the totals.
  std::unique_ptr<ShardWriter> open_writer(const std::string& prefix, const ShardJob& job, OutputCounts& totals) {
    const auto is_complete = [&] {
      const FoundOutput found = find_output(prefix, job.config_hash);
      if (found.state != OutputState::complete) return false;
      {
        const std::lock_guard lock(summary_mutex_);
        totals.append(found.counts);
      }
      // A kill right behind the last rename leaves these.
      for (const char* suffix : {".lengths.part", ".idx.part", ".journal"}) remove_if_there(prefix + suffix);
      return true;
    };
    if (is_complete()) return nullptr;
    auto writer = std::make_unique<ShardWriter>(prefix, token_type_for_vocab(tokenizer_.vocab_size()), job.config_hash);
    // Somebody else may have finished it before the lock was ours.
    return is_complete() ? nullptr : std::move(writer);
  }

  OpenShard& shard_of(int64_t unit) {
    const std::lock_guard lock(mutex_);
    return *on_the_way_.at(unit);
  }

  void add(OpenShard& shard, const PipelineUnit& unit, const PipelineBatch& batch) {
    const EncodedBatch& encoded = batch.encoded;
    if (!encoded.bad.empty() && options_.encode.on_error == OnError::fail) {
      const RejectedLine& bad = encoded.bad.front();
      refuse_line(unit, shard.lines + bad.line, bad);
    }
    if (batch.byte_order_mark) {
      warn("{}: a byte order mark at the start of the file is left out", unit.file.path.string());
    }
    for (size_t i = 0; i < shard.writers.size(); ++i) {
      const EncodedBatch::Key& key = encoded.keys[i];
      OutputCounts& counts = shard.counts[i];
      counts.documents += encoded.documents;
      counts.empty_documents += key.empty_documents;
      counts.tokens += key.token_count;
      counts.text_bytes += encoded.text_bytes;
      counts.filtered += encoded.filtered;
      counts.special_texts += encoded.special_texts;
      for (const RejectedLine& bad : encoded.bad) counts.skipped.add(bad.kind, unit.place(shard.lines + bad.line));
      if (shard.writers[i]) write(*shard.writers[i], encoded, key);
    }
    shard.lines += encoded.lines;
    const std::lock_guard lock(summary_mutex_);
    for (const EncodedBatch::Key& key : encoded.keys) summary_.progress.tokens += key.token_count;
    summary_.progress.documents += encoded.documents;
    summary_.progress.text_bytes += encoded.text_bytes;
  }

  static void write(ShardWriter& writer, const EncodedBatch& encoded, const EncodedBatch::Key& key) {
    if (encoded.begins_document) writer.begin_document();
    if (encoded.drops_document || key.begins_again) writer.drop_document();
    writer.add(key.tokens, key.lengths);
  }

  // None of a damaged unit is used: what came before the damage is taken back.
  void leave_out(OpenShard& shard, const PipelineUnit& unit, const std::string& damage) {
    if (options_.encode.on_error == OnError::fail) data_error("{}", damage);
    warn("{}; the {} is left out", damage, unit.parquet ? "row group" : "file");
    for (size_t i = 0; i < shard.writers.size(); ++i) {
      shard.counts[i] = {};
      shard.counts[i].skipped.add(BadLine::damaged_file, unit.name());
      if (shard.writers[i]) shard.writers[i]->abandon_unit();
    }
  }

  void end_unit(OpenShard& shard, const PipelineUnit& unit) {
    for (size_t i = 0; i < shard.writers.size(); ++i) {
      if (shard.writers[i]) shard.writers[i]->end_unit(shard.counts[i]);
      shard.counts[i] = {};
    }
    {
      const std::lock_guard lock(summary_mutex_);
      summary_.progress.bytes += unit.bytes - shard.consumed;
    }
    shard.lines = shard.consumed = 0;
    if (unit.last) commit(shard);
    const std::lock_guard lock(mutex_);
    on_the_way_.erase(unit.id);
  }

  void commit(OpenShard& shard) {
    for (size_t i = 0; i < shard.writers.size(); ++i) {
      if (!shard.writers[i]) continue;
      PrepareSummary::Key& key = summary_.keys[i];
      shard.writers[i]->commit([&](const ShardWriter::Written& written) {
        return describe_output(tokenizer_, options_, *shard.job, job_.manifest_hash, key.key, written);
      });
      {
        const std::lock_guard lock(summary_mutex_);
        key.counts.append(shard.writers[i]->counts());
      }
      if (shard.writers[i]->counts().documents == 0) {
        warn("{} has no documents", output_name(shard.job->prefix, key.key));
      }
      shard.writers[i].reset();
    }
  }

  void report(OpenShard& shard, const PipelineBatch& batch) {
    const std::lock_guard lock(summary_mutex_);
    summary_.progress.bytes += batch.consumed - shard.consumed;
    shard.consumed = batch.consumed;
    summary_.progress.seconds = monotonic_seconds() - begin_;
    if (options_.progress) options_.progress(summary_.progress);
  }

  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) const {
    const std::lock_guard lock(summary_mutex_);
    if (options_.warn) options_.warn(fmt::format(format, std::forward<Args>(args)...));
  }

  const Tokenizer& tokenizer_;
  const PrepareOptions& options_;
  const PrepareJob& job_;
  double begin_;
  std::vector<const ShardJob*> mine_;

  // next_unit() and put() may run at the same time. Taken in this order.
  std::mutex mutex_;
  mutable std::mutex summary_mutex_;
  PrepareSummary summary_;
  std::shared_ptr<OpenShard> giving_;
  int64_t next_shard_ = 0;
  int64_t next_id_ = 0;
  std::map<int64_t, std::shared_ptr<OpenShard>> on_the_way_;
};

}  // namespace

std::string output_name(const std::string& output_prefix, const std::string& key) {
  return output_prefix + "_" + key + "_document";
}

PrepareSummary prepare(const Tokenizer& tokenizer, const PrepareOptions& options) {
  if (options.output_prefix.empty()) user_error("no output prefix given");
  if (options.encode.json_keys.empty()) user_error("no JSON key given");
  if (options.worker.index < 0 || options.worker.index >= options.worker.count) {
    user_error("worker {} of {} does not exist: they count from 0", options.worker.index, options.worker.count);
  }
  const PrepareJob job = make_job(tokenizer, options);
  make_parent_directory(options.output_prefix);
  if (options.numbered) settle_manifest(options.output_prefix + ".manifest.json", job, options.overwrite);
  ShardEnds ends(tokenizer, options, job);
  run_pipeline(tokenizer, pipeline_options(options), ends);
  return ends.finish();
}

}  // namespace megalith::data
