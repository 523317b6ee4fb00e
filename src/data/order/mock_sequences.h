#pragma once

#include <string>
#include <vector>

#include "data/order/dataset.h"
#include "data/order/sequence_source.h"

namespace megalith::data {

// Megatron's mock data: 100,000 documents whose lengths are numpy's default_rng(0).integers(1, 4096) and whose tokens
// are 1, 2, 3, ... modulo the vocabulary, ending in eod. Needs no file; for measuring speed, not for learning.
class MockSequences : public SequenceSource {
 public:
  static constexpr int64_t kSequences = 100000;

  explicit MockSequences(Vocabulary vocabulary);

  const std::string& name() const override { return name_; }
  int64_t sequences() const override { return kSequences; }
  int32_t length(int64_t sequence) const override { return lengths_[static_cast<size_t>(sequence)]; }
  void read(int64_t sequence, int64_t offset, std::span<int32_t> out) const override;

 private:
  std::string name_ = "mock data";
  Vocabulary vocabulary_;
  std::vector<int32_t> lengths_;
};

}  // namespace megalith::data
