#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace megalith::data {

// Sequences of token ids that can be read at random. Reading is thread-safe.
class SequenceSource {
 public:
  virtual ~SequenceSource() = default;

  // For messages: a path prefix, or what made the sequences.
  virtual const std::string& name() const = 0;
  virtual int64_t sequences() const = 0;
  virtual int32_t length(int64_t sequence) const = 0;
  // Fills `out` with the tokens [offset, offset + out.size()) of a sequence.
  virtual void read(int64_t sequence, int64_t offset, std::span<int32_t> out) const = 0;
};

}  // namespace megalith::data
