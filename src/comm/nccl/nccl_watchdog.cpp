#include "comm/nccl/nccl_watchdog.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <future>
#include <vector>

namespace megalith::comm {

namespace {
using std::chrono::milliseconds;
constexpr milliseconds kPeriod(20);
constexpr milliseconds kAbortTime(10'000);

// ncclCommAbort can hang itself when peers are stuck: it gets a thread that nobody has to join.
void abort_within_bounds(std::vector<ncclComm_t> comms) {
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> ended = done->get_future();
  std::thread([comms = std::move(comms), done] {
    for (ncclComm_t comm : comms) ncclCommAbort(comm);
    done->set_value();
  }).detach();
  ended.wait_for(kAbortTime);
}
}  // namespace

NcclWatchdog::NcclWatchdog(int device) : thread_([this, device] { work(device); }) {}

NcclWatchdog::~NcclWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void NcclWatchdog::add(Watched& watched) {
  const std::lock_guard lock(mutex_);
  watched_.insert(&watched);
}

void NcclWatchdog::remove(Watched& watched) {
  const std::lock_guard lock(mutex_);
  watched_.erase(&watched);
}

void NcclWatchdog::throw_if_failed() {
  const std::lock_guard lock(mutex_);
  if (failure_) throw Error(*failure_);
}

void NcclWatchdog::work(int device) {
  cudaSetDevice(device);
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kPeriod, [this] { return stopping_; })) {
    for (Watched* watched : watched_) {
      const std::optional<Error> failure = watched->find_failure();
      if (!failure) continue;
      fail_all(*failure);
      return;
    }
  }
}

void NcclWatchdog::fail_all(const Error& reason) {
  failure_ = reason;
  std::vector<ncclComm_t> comms;
  for (Watched* watched : watched_) {
    if (ncclComm_t comm = watched->give_up(reason)) comms.push_back(comm);
  }
  abort_within_bounds(std::move(comms));
}

}  // namespace megalith::comm
