#include "data/prepare/encode_pipeline.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "core/error.h"
#include "data/prepare/read/long_document.h"

namespace megalith::data {

namespace {

// A unit that is being read or still has batches to hand over.
struct OpenUnit {
  PipelineUnit unit;
  // Touched by the thread that has set `busy`.
  std::unique_ptr<BatchReader> reader;
  std::unique_ptr<LongDocument> long_document;  // whose parts are coming
  bool busy = false;
  bool exhausted = false;
  int64_t read = 0;    // batches
  int64_t handed = 0;  // batches
  std::map<int64_t, PipelineBatch> ready;
};

class Pipeline {
 public:
  Pipeline(const Tokenizer& tokenizer, const PipelineOptions& options, PipelineEnds& ends)
      : tokenizer_(tokenizer),
        options_(options),
        ends_(ends),
        most_pending_(options.threads * options.pending_bytes_per_thread) {}

  void run() {
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.threads; ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void work() {
    try {
      BatchEncoder encoder(tokenizer_, options_.encode);
      Lock lock(mutex_);
      while (!failure_) {
        if (can_hand_over()) {
          hand_over(lock);
        } else if (OpenUnit* unit = choose_unit()) {
          read_and_encode(*unit, encoder, lock);
        } else if (no_more_units_ && open_.empty()) {
          break;
        } else {
          changed_.wait(lock);
        }
      }
    } catch (...) {
      const Lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
    changed_.notify_all();
  }

  bool can_hand_over() const {
    return !handing_over_ && !open_.empty() && open_.front()->ready.contains(open_.front()->handed);
  }

  void hand_over(Lock& lock) {
    handing_over_ = true;
    OpenUnit& head = *open_.front();
    auto node = head.ready.extract(head.handed);
    const bool last = node.mapped().last;
    pending_ -= node.mapped().encoded.bytes();
    lock.unlock();
    ends_.put(head.unit, std::move(node.mapped()));
    lock.lock();
    ++head.handed;
    if (last) open_.pop_front();
    handing_over_ = false;
    changed_.notify_all();
  }

  bool may_read(const OpenUnit& unit) const {
    if (unit.busy || unit.exhausted) return false;
    // What has to come out next may always be read, or nothing would ever move.
    return pending_ < most_pending_ || (&unit == open_.front().get() && unit.read == unit.handed);
  }

  OpenUnit* choose_unit() {
    for (const auto& unit : open_) {
      if (may_read(*unit)) return unit.get();
    }
    const bool room = open_.empty() || (pending_ < most_pending_ && std::ssize(open_) < options_.threads);
    if (no_more_units_ || !room) return nullptr;
    auto next = ends_.next_unit();
    if (!next) {
      no_more_units_ = true;
      changed_.notify_all();
      return nullptr;
    }
    open_.push_back(std::make_unique<OpenUnit>());
    open_.back()->unit = std::move(*next);
    return open_.back().get();
  }

  // What is wrong with the file itself comes out in its turn, so that the same error is met on any number of threads.
  static RawBatch read(OpenUnit& unit, const BatchOptions& options, std::string& damage) {
    try {
      if (!unit.reader) {
        check_unchanged(unit.unit.file);
        unit.reader =
            std::make_unique<BatchReader>(unit.unit.file.path, unit.unit.open(options.read), unit.unit.cut, options);
      }
      RawBatch batch = unit.reader->next();
      if (batch.last) check_unchanged(unit.unit.file);
      return batch;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      damage = error.what();
      RawBatch batch;
      batch.last = true;
      return batch;
    }
  }

  EncodedBatch encode_part(OpenUnit& unit, const RawBatch& part) {
    if (part.first_part) {
      unit.long_document = std::make_unique<LongDocument>(tokenizer_, options_.encode, unit.unit.cut, part.offset);
    }
    EncodedBatch encoded = unit.long_document->add(part);
    if (part.last_part) unit.long_document.reset();
    return encoded;
  }

  void read_and_encode(OpenUnit& unit, BatchEncoder& encoder, Lock& lock) {
    unit.busy = true;
    const int64_t index = unit.read++;
    lock.unlock();
    PipelineBatch out;
    const RawBatch raw = read(unit, options_.batch, out.damage);
    out.last = raw.last;
    out.consumed = raw.consumed;
    out.byte_order_mark = raw.byte_order_mark;
    if (raw.last) unit.reader.reset();
    // The parts of a document are encoded in their order.
    if (raw.part) out.encoded = encode_part(unit, raw);
    lock.lock();
    unit.busy = false;
    unit.exhausted = raw.last;
    const int64_t raw_bytes = std::ssize(raw.text.view());
    pending_ += raw_bytes;
    changed_.notify_all();
    lock.unlock();
    const Cut cut = unit.unit.cut;  // the unit itself stays: it goes when its last batch is handed over
    if (out.damage.empty() && !raw.part) out.encoded = encoder.encode(raw, cut);
    lock.lock();
    pending_ += out.encoded.bytes() - raw_bytes;
    unit.ready.emplace(index, std::move(out));
    changed_.notify_all();
  }

  const Tokenizer& tokenizer_;
  const PipelineOptions& options_;
  PipelineEnds& ends_;
  int64_t most_pending_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<OpenUnit>> open_;  // in the order of the inputs
  int64_t pending_ = 0;                         // bytes read or encoded and not yet handed over
  bool no_more_units_ = false;
  bool handing_over_ = false;
  std::exception_ptr failure_;
};

}  // namespace

std::string describe_bad(const PipelineUnit& unit, int64_t line, const RejectedLine& bad) {
  const std::string byte = unit.parquet ? "" : fmt::format(": byte {}", bad.offset);
  return fmt::format("{}{}: {}{}{}", unit.place(line), byte, name_of(bad.kind), bad.detail.empty() ? "" : ": ",
                     bad.detail);
}

void refuse_line(const PipelineUnit& unit, int64_t line, const RejectedLine& bad) {
  data_error("{}; --on-error skip leaves such lines out", describe_bad(unit, line, bad));
}

void run_pipeline(const Tokenizer& tokenizer, const PipelineOptions& options, PipelineEnds& ends) {
  if (options.threads < 1) user_error("{} threads cannot work", options.threads);
  Pipeline(tokenizer, options, ends).run();
}

}  // namespace megalith::data
