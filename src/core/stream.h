#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/shadow.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace megalith {

class StreamTimes;

// Where operations run, in order. On the CPU an operation is complete when its call returns; on a GPU it is complete
// when the stream has come past it. A shadow stands for the stream of a device: operations on it are checked and
// observed, and nothing runs.
class Stream {
 public:
  explicit Stream(ThreadPool& pool, Device device = Device::cpu);
  Stream(Device device, Shadow shadow);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return device_; }
  bool is_shadow() const { return pool_ == nullptr; }
  // Not of a shadow.
  ThreadPool& pool() const { return *pool_; }
  int threads() const { return threads_; }
  // Another of the same device and pool; a shadow where this is one.
  Stream beside() const;
  // The cudaStream_t; null on the CPU.
  void* native() const { return native_; }
  // Returns when everything asked of the stream is done. Errors of the device surface here.
  void wait();

  // Library handles and tuned algorithms that operations keep from call to call; made by the operations on first use.
  std::shared_ptr<void>& libraries() { return libraries_; }
  // Who hears of each operation (ops::OpObservation); null: nobody.
  const void* observer() const { return observer_; }
  void set_observer(const void* observer) { observer_ = observer; }
  // Where the stream's waits for other ranks are timed; null: nowhere.
  StreamTimes* wait_times() const { return wait_times_; }
  void set_wait_times(StreamTimes* times) { wait_times_ = times; }

 private:
  Device device_;
  ThreadPool* pool_;  // null: a shadow
  int threads_;
  void* native_ = nullptr;
  std::shared_ptr<void> libraries_;
  const void* observer_ = nullptr;
  StreamTimes* wait_times_ = nullptr;
};

// Copies contiguous tensors of equal size in bytes, between host and device in any direction. From or to pageable host
// memory the call may wait for the copy; pinned memory must stay as it is until the stream has come past it.
void copy(Stream& stream, const Tensor& from, const Tensor& to);
// Many of them, in any order, without waiting for any.
struct TensorCopy {
  Tensor from, to;
};
void copy(Stream& stream, std::span<const TensorCopy> copies);

// A point on a stream that the host can wait for.
class StreamMark {
 public:
  StreamMark() = default;
  ~StreamMark();
  StreamMark(StreamMark&& other) noexcept;
  StreamMark& operator=(StreamMark&& other) noexcept;

  void record(Stream& stream);
  void wait() const;
  // What is asked of the other stream from here on begins when this point has been passed.
  void hold(Stream& other) const;
  // Between two points that the stream has passed.
  static double seconds_between(const StreamMark& begin, const StreamMark& end);

 private:
  void* native_ = nullptr;
  double host_seconds_ = 0.0;
};

// Stretches of a stream's time, one after the other.
class StreamTimes {
 public:
  void begin(Stream& stream);
  void end(Stream& stream);
  void clear() { count_ = 0; }
  // Of all stretches together, once the stream has passed them.
  double seconds() const;

 private:
  std::vector<std::pair<StreamMark, StreamMark>> marks_;  // kept, since they cost something to make
  size_t count_ = 0;
};

// Work that is always the same on the same memory. A GPU records it the first time and replays it with one call after
// that; the CPU, and a shadow, do it each time.
class RecordedWork {
 public:
  RecordedWork() = default;
  ~RecordedWork();
  RecordedWork(const RecordedWork&) = delete;
  RecordedWork& operator=(const RecordedWork&) = delete;

 private:
  friend class Recording;
  void* executable_ = nullptr;
};

// Once through recorded work: `if (recording.is_needed())` it is asked of the stream, and then finish().
class Recording {
 public:
  // Null: work that cannot be recorded.
  Recording(RecordedWork* work, Stream& stream);
  ~Recording();  // what was not finished is not kept
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  bool is_needed() const { return !is_replayed_; }
  void finish();

 private:
  RecordedWork* work_;
  Stream& stream_;
  bool is_replayed_;
  bool is_open_ = false;
};

}  // namespace megalith
