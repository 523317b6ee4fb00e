#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "data/order/sequence_source.h"
#include "expect_error.h"
#include "temp_dir.h"

namespace megalith::data {

using ::megalith::testing::TempDir;

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The bytes of numbers, one after the other.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// FNV-1a over numbers, to compare long results with constants.
class Fnv {
 public:
  void add(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

// Sequences in memory.
class Sequences : public SequenceSource {
 public:
  explicit Sequences(std::vector<std::vector<int32_t>> sequences) : sequences_(std::move(sequences)) {}

  const std::string& name() const override { return name_; }
  int64_t sequences() const override { return std::ssize(sequences_); }
  int32_t length(int64_t sequence) const override { return static_cast<int32_t>(at(sequence).size()); }
  void read(int64_t sequence, int64_t offset, std::span<int32_t> out) const override {
    for (size_t i = 0; i < out.size(); ++i) out[i] = at(sequence).at(static_cast<size_t>(offset) + i);
  }

 private:
  const std::vector<int32_t>& at(int64_t sequence) const { return sequences_.at(static_cast<size_t>(sequence)); }

  std::string name_ = "sequences in memory";
  std::vector<std::vector<int32_t>> sequences_;
};

}  // namespace megalith::data
