#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "data/prepare/batch_encoder.h"
#include "data/prepare/input_units.h"

namespace megalith::data {

// A batch as it comes out, in the order of the inputs.
struct PipelineBatch {
  EncodedBatch encoded;
  int64_t consumed = 0;  // bytes of the unit used up to here
  bool byte_order_mark = false;
  bool last = false;   // of its unit
  std::string damage;  // not empty: the unit cannot be read further; this batch is the last one and empty
};

// Where units come from and batches go to. Calls come one at a time (from any thread), in order.
class PipelineEnds {
 public:
  virtual ~PipelineEnds() = default;
  // Nothing after the last unit. May be called while put() runs.
  virtual std::optional<PipelineUnit> next_unit() = 0;
  virtual void put(const PipelineUnit& unit, PipelineBatch batch) = 0;
};

struct PipelineOptions {
  EncodeOptions encode;
  BatchOptions batch;
  int threads = 1;
  int64_t pending_bytes_per_thread = int64_t{32} << 20;  // finished batches that wait for an earlier one
};

// File, line and byte of a bad line, or file, row group and row, and what is wrong there.
std::string describe_bad(const PipelineUnit& unit, int64_t line, const RejectedLine& bad);
// Data error that says so.
[[noreturn]] void refuse_line(const PipelineUnit& unit, int64_t line, const RejectedLine& bad);

// Reads, encodes and hands over with `threads` threads, the caller's among them. Any thread reads the next batch of the
// earliest file that nobody else reads from, encodes it, and, when the batch that has to come out next is there, hands
// it over. Threads therefore gather on one file as far as it can feed them and go on to the next ones only then. What
// waits is bounded: beyond the bound only the earliest file is read. The first error stops everything and is thrown
// here.
void run_pipeline(const Tokenizer& tokenizer, const PipelineOptions& options, PipelineEnds& ends);

}  // namespace megalith::data
