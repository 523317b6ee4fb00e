#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "comm/world.h"
#include "core/arena.h"
#include "core/stream.h"

// What every backend must do, said once. Each function is one rank's part; on a wrong result it throws,
// so that it serves threads and forked processes alike.

namespace megalith::comm {

inline const std::vector<DType> kAllTypes = {DType::f32, DType::bf16, DType::f64, DType::i32, DType::i64};
inline const std::vector<int64_t> kAllSizes = {0, 1, 3, 7, 64, 1001};

class TestStream {
 public:
  explicit TestStream(Device device) : stream_(pool_, device) {}
  operator Stream&() { return stream_; }  // NOLINT: reads like the stream it is

 private:
  ThreadPool pool_{1};
  Stream stream_;
};

class CpuStream : public TestStream {
 public:
  CpuStream() : TestStream(Device::cpu) {}
};

// Memory of any type and device, whose values are given and read as doubles. On a GPU they travel with upload() and
// download().
class Values {
 public:
  Values(DType dtype, int64_t elements, Device device = Device::cpu);

  Tensor tensor() { return device_ ? *device_ : host(); }
  void upload(Stream& stream);
  void download(Stream& stream);
  void set(int64_t index, double value);
  double get(int64_t index);
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  Tensor host() { return Tensor(bytes_.data(), dtype_, {static_cast<int64_t>(bytes_.size()) / size_of(dtype_)}); }

  DType dtype_;
  std::vector<std::byte> bytes_;
  std::unique_ptr<Arena> arena_;
  std::optional<Tensor> device_;
};

// Small whole numbers, which every type holds exactly.
inline double value_of(int rank, int64_t index) {
  return static_cast<double>((rank * 5 + index * 3) % 11 - 4);
}

void check_reductions(Communicator& group, DType dtype, int64_t elements);
// Those, and everything that moves data to all.
void check_collectives(Communicator& group, DType dtype, int64_t elements);
void check_exchanges(Communicator& group, DType dtype, int64_t elements);
// Values whose sum depends on the order; the bytes of the result.
std::vector<std::byte> sum_of_awkward_values(Communicator& group, DType dtype, int64_t elements);
// Everything above for one world: all types, all sizes, the world and its subgroups.
void check_world(World& world);

}  // namespace megalith::comm
