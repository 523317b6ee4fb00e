#include "core/stream.h"

#include <cstring>
#include <utility>

#include "core/clock.h"
#include "core/cuda_runtime.h"

namespace megalith {

Stream::Stream(ThreadPool& pool, Device device) : device_(device), pool_(&pool), threads_(pool.threads()) {
  if (device == Device::cuda) native_ = cuda::create_stream();
}

Stream::Stream(Device device, Shadow shadow) : device_(device), pool_(nullptr), threads_(shadow.threads) {}

Stream Stream::beside() const {
  if (is_shadow()) return Stream(device_, Shadow{.threads = threads_});
  return Stream(*pool_, device_);
}

Stream::~Stream() {
  libraries_.reset();
  if (native_ != nullptr) cuda::destroy_stream(native_);
}

void Stream::wait() {
  if (native_ != nullptr) cuda::wait_for_stream(native_);
}

namespace {
void check_copy(const Tensor& from, const Tensor& to) {
  MEGALITH_CHECK(from.contiguous() && to.contiguous() && from.bytes() == to.bytes(), "a copy of {} {} to {} {}",
                 name_of(from.dtype), to_string(from.shape), name_of(to.dtype), to_string(to.shape));
}
}  // namespace

void copy(Stream& stream, const Tensor& from, const Tensor& to) {
  check_copy(from, to);
  if (stream.is_shadow()) return;
  if (stream.device() == Device::cuda) {
    cuda::copy(stream.native(), from.data, to.data, from.bytes());
  } else {
    std::memcpy(to.data, from.data, static_cast<size_t>(from.bytes()));
  }
}

void copy(Stream& stream, std::span<const TensorCopy> copies) {
  if (stream.device() == Device::cpu || stream.is_shadow()) {
    for (const auto& [from, to] : copies) copy(stream, from, to);
    return;
  }
  std::vector<cuda::MemoryCopy> asked;
  asked.reserve(copies.size());
  for (const auto& [from, to] : copies) {
    check_copy(from, to);
    asked.push_back({.from = from.data, .to = to.data, .bytes = from.bytes()});
  }
  cuda::copy_many(stream.native(), asked);
}

StreamMark::~StreamMark() {
  if (native_ != nullptr) cuda::destroy_event(native_);
}

StreamMark::StreamMark(StreamMark&& other) noexcept
    : native_(std::exchange(other.native_, nullptr)), host_seconds_(other.host_seconds_) {}

StreamMark& StreamMark::operator=(StreamMark&& other) noexcept {
  std::swap(native_, other.native_);
  host_seconds_ = other.host_seconds_;
  return *this;
}

void StreamMark::record(Stream& stream) {
  if (stream.is_shadow()) return;
  if (stream.device() == Device::cpu) {
    host_seconds_ = monotonic_seconds();
    return;
  }
  if (native_ == nullptr) native_ = cuda::create_event();
  cuda::record_event(native_, stream.native());
}

void StreamMark::wait() const {
  if (native_ != nullptr) cuda::wait_for_event(native_);
}

void StreamMark::hold(Stream& other) const {
  if (native_ != nullptr) cuda::hold_stream(other.native(), native_);
}

double StreamMark::seconds_between(const StreamMark& begin, const StreamMark& end) {
  if (begin.native_ != nullptr) return cuda::seconds_between(begin.native_, end.native_);
  return end.host_seconds_ - begin.host_seconds_;
}

void StreamTimes::begin(Stream& stream) {
  if (count_ == marks_.size()) marks_.emplace_back();
  marks_[count_++].first.record(stream);
}

void StreamTimes::end(Stream& stream) {
  marks_[count_ - 1].second.record(stream);
}

double StreamTimes::seconds() const {
  double sum = 0.0;
  for (size_t i = 0; i < count_; ++i) sum += StreamMark::seconds_between(marks_[i].first, marks_[i].second);
  return sum;
}

RecordedWork::~RecordedWork() {
  if (executable_ != nullptr) cuda::destroy_graph(executable_);
}

Recording::Recording(RecordedWork* work, Stream& stream)
    : work_(work), stream_(stream), is_replayed_(work != nullptr && work->executable_ != nullptr) {
  if (work == nullptr || is_replayed_ || stream.device() == Device::cpu || stream.is_shadow()) return;
  cuda::begin_graph(stream.native());
  is_open_ = true;
}

Recording::~Recording() {
  if (is_open_) cuda::drop_graph(stream_.native());
}

void Recording::finish() {
  if (std::exchange(is_open_, false)) work_->executable_ = cuda::end_graph(stream_.native());
  if (work_ != nullptr && work_->executable_ != nullptr) cuda::launch_graph(work_->executable_, stream_.native());
}

}  // namespace megalith
