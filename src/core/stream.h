#pragma once

#include "core/tensor.h"
#include "core/thread_pool.h"

namespace megalith {

// Where operations run, in order. On the CPU an operation is complete when its call returns; on a GPU it is complete
// when the stream has come past it.
class Stream {
 public:
  explicit Stream(ThreadPool& pool) : device_(Device::cpu), pool_(&pool) {}

  Device device() const { return device_; }
  ThreadPool& pool() const { return *pool_; }

 private:
  Device device_;
  ThreadPool* pool_ = nullptr;
};

}  // namespace megalith
