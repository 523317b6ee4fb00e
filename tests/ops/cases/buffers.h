#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/stream.h"
#include "core/tensor.h"

// What the cases of operations make their tensors of.

namespace megalith::ops::testing {

using Values = std::vector<double>;
using Named = std::map<std::string, Values>;

// While it lives, what this thread makes (Buffer, Placed) is in the memory of the stream's device; otherwise, in that
// of the CPU.
class MadeOn {
 public:
  explicit MadeOn(Stream& stream);
  ~MadeOn();
  MadeOn(const MadeOn&) = delete;
  MadeOn& operator=(const MadeOn&) = delete;

 private:
  Stream* before_;
};

// While it lives, one of the buffers that this thread makes hands out a tensor that is not what was asked for.
enum class Defect { dtype, device, rows, cols };
class DefectiveBuffer {
 public:
  // The buffer that is made `after` others; empty ones do not count.
  DefectiveBuffer(int after, Defect defect);
  ~DefectiveBuffer();
  DefectiveBuffer(const DefectiveBuffer&) = delete;
  DefectiveBuffer& operator=(const DefectiveBuffer&) = delete;

  bool was_made() const { return after_ < 0; }

 private:
  friend class Buffer;

  int after_;
  Defect defect_;
};

// Memory that begins as a copy of `from`.
class Memory {
 public:
  Memory(const void* from, int64_t bytes);

  void* data() const { return data_.get(); }
  Device device() const { return device_; }
  void read(void* to) const;

 private:
  Device device_;
  int64_t bytes_;
  std::shared_ptr<void> data_;
};

// A tensor that owns its memory. It begins as NaN throughout, and the gap between its rows must stay so.
class Buffer {
 public:
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap = 0);
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values& values);

  const Tensor& tensor() const { return handed_out_; }
  Tensor vector() const {
    return Tensor(handed_out_.data, handed_out_.dtype, Shape{handed_out_.elements()}, handed_out_.device);
  }
  // Throws if the gap was written to.
  Values values() const;

 private:
  Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values* values);

  Memory memory_;
  Tensor tensor_;
  Tensor handed_out_;  // the same, but for a defect
};

// Values of plain data, such as the scalars of a step.
template <class T>
class Placed {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit Placed(const T& value) : Placed(std::span<const T>(&value, 1)) {}
  explicit Placed(std::span<const T> values)
      : memory_(values.data(), static_cast<int64_t>(values.size_bytes())), count_(values.size()) {}

  T* data() const { return static_cast<T*>(memory_.data()); }
  T value() const {
    std::vector<T> values(count_);
    memory_.read(values.data());
    return values.front();
  }

 private:
  Memory memory_;
  size_t count_;
};

// The elements of any tensor, such as columns of a Buffer.
Values read_values(const Tensor& from);

// A vector of `values`, of any dtype.
Buffer vector_of(DType dtype, const Values& values);

// Normal values, exact in bf16 so that every dtype starts from the same inputs. They repeat after 2^20, so that large
// inputs are made quickly.
Values random_values(int64_t count, uint64_t key, double scale = 1.0);

}  // namespace megalith::ops::testing
