#include "ops/cases/buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/device.h"
#include "core/rng.h"

namespace megalith::ops::testing {

namespace {

thread_local Stream* current_stream = nullptr;
thread_local DefectiveBuffer* current_defect = nullptr;

Device current_device() {
  return current_stream == nullptr ? Device::cpu : current_stream->device();
}

Tensor bytes_at(const void* memory, int64_t bytes, Device device) {
  return Tensor(const_cast<void*>(memory), DType::e4m3, Shape{bytes}, device);
}

void copy_bytes(const void* from, Device from_device, void* to, Device to_device, int64_t bytes) {
  if (bytes == 0) return;
  if (current_device() == Device::cpu) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  copy(*current_stream, bytes_at(from, bytes, from_device), bytes_at(to, bytes, to_device));
  current_stream->wait();
}

double read_element(const void* element, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return *static_cast<const float*>(element);
    case DType::bf16:
      return static_cast<float>(*static_cast<const bfloat16*>(element));
    case DType::f64:
      return *static_cast<const double*>(element);
    case DType::i16:
      return *static_cast<const int16_t*>(element);
    case DType::i32:
      return *static_cast<const int32_t*>(element);
    case DType::i64:
      return static_cast<double>(*static_cast<const int64_t*>(element));
    case DType::e4m3:
      return static_cast<float>(*static_cast<const float8_e4m3*>(element));
    case DType::e5m2:
      return static_cast<float>(*static_cast<const float8_e5m2*>(element));
  }
  return 0.0;
}

void write_element(void* element, DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      *static_cast<float*>(element) = static_cast<float>(value);
      break;
    case DType::bf16:
      *static_cast<bfloat16*>(element) = bfloat16(static_cast<float>(value));
      break;
    case DType::f64:
      *static_cast<double*>(element) = value;
      break;
    case DType::i16:
      *static_cast<int16_t*>(element) = static_cast<int16_t>(value);
      break;
    case DType::i32:
      *static_cast<int32_t*>(element) = static_cast<int32_t>(value);
      break;
    case DType::i64:
      *static_cast<int64_t*>(element) = static_cast<int64_t>(value);
      break;
    case DType::e4m3:
      *static_cast<float8_e4m3*>(element) = float8_e4m3(static_cast<float>(value));
      break;
    case DType::e5m2:
      *static_cast<float8_e5m2*>(element) = float8_e5m2(static_cast<float>(value));
      break;
  }
}

// NaN (-1 as an integer) where there is no value.
std::vector<std::byte> image_of(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values* values) {
  const int64_t size = size_of(dtype);
  std::vector<std::byte> image(static_cast<size_t>(rows * (cols + gap) * size), std::byte{0xff});
  if (values == nullptr) return image;
  MEGALITH_CHECK(static_cast<int64_t>(values->size()) == rows * cols, "{} values for ({}, {})", values->size(), rows,
                 cols);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      write_element(image.data() + (r * (cols + gap) + c) * size, dtype, (*values)[static_cast<size_t>(r * cols + c)]);
    }
  }
  return image;
}

}  // namespace

MadeOn::MadeOn(Stream& stream) : before_(std::exchange(current_stream, &stream)) {}

MadeOn::~MadeOn() {
  current_stream = before_;
}

DefectiveBuffer::DefectiveBuffer(int after, Defect defect) : after_(after), defect_(defect) {
  current_defect = this;
}

DefectiveBuffer::~DefectiveBuffer() {
  current_defect = nullptr;
}

Memory::Memory(const void* from, int64_t bytes) : device_(current_device()), bytes_(bytes) {
  if (device_ == Device::cpu) {  // of the heap, so that a sanitizer sees its ends
    data_ = std::shared_ptr<void>(new std::byte[static_cast<size_t>(bytes)],
                                  [](void* memory) { delete[] static_cast<std::byte*>(memory); });
  } else {
    const int64_t size = std::max<int64_t>(bytes, 16);
    data_ = std::shared_ptr<void>(acquire_device_memory(device_, size, "test"),
                                  [size](void* memory) { release_device_memory(Device::cuda, memory, size); });
  }
  copy_bytes(from, Device::cpu, data_.get(), device_, bytes);
}

void Memory::read(void* to) const {
  copy_bytes(data_.get(), device_, to, Device::cpu, bytes_);
}

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values* values)
    : memory_(image_of(dtype, rows, cols, gap, values).data(), rows * (cols + gap) * size_of(dtype)),
      tensor_(memory_.data(), dtype, Shape{rows, cols}, memory_.device()) {
  tensor_.row_stride = cols + gap;
  handed_out_ = tensor_;
  if (rows * cols == 0 || current_defect == nullptr || current_defect->after_-- != 0) return;
  switch (current_defect->defect_) {
    case Defect::dtype:
      handed_out_.dtype = DType::i16;  // which no operation takes
      break;
    case Defect::device:
      handed_out_.device = tensor_.device == Device::cpu ? Device::cuda : Device::cpu;
      break;
    case Defect::rows:
      handed_out_.shape = Shape{rows - 1, cols};
      break;
    case Defect::cols:
      handed_out_.shape = Shape{rows, cols - 1};
      break;
  }
}

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap) : Buffer(dtype, rows, cols, gap, nullptr) {}

Buffer::Buffer(DType dtype, int64_t rows, int64_t cols, int64_t gap, const Values& values)
    : Buffer(dtype, rows, cols, gap, &values) {}

Values Buffer::values() const {
  const int64_t size = size_of(tensor_.dtype);
  std::vector<std::byte> image(static_cast<size_t>(tensor_.rows() * tensor_.row_stride * size));
  memory_.read(image.data());
  Values values;
  for (int64_t r = 0; r < tensor_.rows(); ++r) {
    const std::byte* row = image.data() + r * tensor_.row_stride * size;
    for (int64_t c = 0; c < tensor_.cols(); ++c) values.push_back(read_element(row + c * size, tensor_.dtype));
    const bool gap_untouched = std::all_of(row + tensor_.cols() * size, row + tensor_.row_stride * size,
                                           [](std::byte byte) { return byte == std::byte{0xff}; });
    MEGALITH_CHECK(gap_untouched, "the gap after row {} was written to", r);
  }
  return values;
}

Values read_values(const Tensor& from) {
  const int64_t size = size_of(from.dtype);
  std::vector<std::byte> row(static_cast<size_t>(from.cols() * size));
  Values values;
  for (int64_t r = 0; r < from.rows(); ++r) {
    const auto* source = static_cast<const std::byte*>(from.data) + r * from.row_stride * size;
    copy_bytes(source, from.device, row.data(), Device::cpu, from.cols() * size);
    for (int64_t c = 0; c < from.cols(); ++c) values.push_back(read_element(row.data() + c * size, from.dtype));
  }
  return values;
}

Buffer vector_of(DType dtype, const Values& values) {
  return Buffer(dtype, 1, static_cast<int64_t>(values.size()), 0, values);
}

Values random_values(int64_t count, uint64_t key, double scale) {
  constexpr int64_t kDistinct = int64_t{1} << 20;
  Values values;
  values.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < std::min(count, kDistinct); ++i) {
    const double value = scale * normal_at(named_key(key, "test"), static_cast<uint64_t>(i));
    values.push_back(static_cast<float>(bfloat16(static_cast<float>(value))));
  }
  for (int64_t i = kDistinct; i < count; ++i) values.push_back(values[static_cast<size_t>(i - kDistinct)]);
  return values;
}

}  // namespace megalith::ops::testing
