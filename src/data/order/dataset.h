#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/order/extended_order.h"
#include "data/order/index_file.h"
#include "data/order/sequence_source.h"
#include "data/order/splits.h"

namespace megalith::data {

class IndexCache;

// What a model knows of its tokens: ids 0 .. size - 1. `eod` ends a document; -1: there is none.
struct Vocabulary {
  int64_t size = 0;
  int32_t eod = -1;
};

// Samples of a fixed length in training order.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual const std::string& name() const = 0;
  virtual int64_t sequence_length() const = 0;
  // Samples in the order built for the horizon: at least the horizon. sample() goes on beyond it.
  virtual int64_t size() const = 0;
  // Fills sequence_length() + 1 tokens: all but the last are the inputs, all but the first the targets. Thread-safe.
  virtual void sample(int64_t index, std::span<int32_t> tokens) const = 0;
};

// Megatron's GPT dataset over one split of the sequences of a source.
class GptDataset : public Dataset {
 public:
  struct Options {
    SequenceRange range;
    Vocabulary vocabulary;
    int64_t sequence_length = 0;
    int64_t horizon = 0;  // samples that the run was started for
    uint32_t seed = 0;
    std::shared_ptr<const IndexCache> cache;  // where the index is kept; none: in memory
    IndexKey content;                         // what identifies the lengths of the source, where there is a cache
  };

  GptDataset(std::shared_ptr<const SequenceSource> source, const Options& options);

  const std::string& name() const override { return source_->name(); }
  int64_t sequence_length() const override { return options_.sequence_length; }
  int64_t size() const override { return order_.block_size(); }
  void sample(int64_t index, std::span<int32_t> tokens) const override;

  const SequenceSource& source() const { return *source_; }
  const GptIndex& index() const { return order_.first_block(); }

 private:
  std::shared_ptr<const GptIndex> find_index(uint32_t seed, bool again) const;
  std::shared_ptr<const GptIndex> build_index(uint32_t seed) const;
  void read(const ExtendedOrder::BlockSample& found, std::span<int32_t> tokens) const;
  void check_ids(int64_t sequence, int64_t offset, std::span<const int32_t> tokens) const;

  std::shared_ptr<const SequenceSource> source_;
  Options options_;
  ExtendedOrder order_;
};

// The tokens of a range of sequences, one after the other.
std::vector<int32_t> read_tokens(const SequenceSource& source, SequenceRange range);

}  // namespace megalith::data
