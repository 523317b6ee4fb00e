#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "core/telemetry.h"

namespace megalith::observe {

// Passes what it hears on to other sinks from a thread of its own, so that neither formatting nor a slow reader holds
// up a training step: whoever emits pays for one copy. When the sinks fall behind by `capacity`, what comes next is
// dropped and counted; the log says so once, the sinks hear of it by an event `events_lost`. A sink that throws is
// named in the log by what it threw and hears nothing more.
class QueuedSink : public Sink {
 public:
  static constexpr size_t kCapacity = 4096;  // steps' worth of numbers: a few kilobytes each

  explicit QueuedSink(std::vector<std::shared_ptr<Sink>> sinks, size_t capacity = kCapacity);
  // Passes on what is left.
  ~QueuedSink() override;
  QueuedSink(const QueuedSink&) = delete;
  QueuedSink& operator=(const QueuedSink&) = delete;

  // Any thread.
  void on_event(const Event& event) override { push(event); }
  void on_metrics(const Metrics& metrics) override { push(metrics); }
  // Waits until the sinks have heard everything so far, and have flushed.
  void flush() override;

  int64_t dropped() const;

 private:
  using Item = std::variant<Event, Metrics>;

  void push(Item item);
  void run();
  void deliver(const std::deque<Item>& items);
  void tell_drops(int64_t dropped);
  template <class Use>
  void for_each_sink(const Use& use);

  // Used by the writer only.
  std::vector<std::shared_ptr<Sink>> sinks_;  // null: it threw
  int64_t drops_told_ = 0;

  size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable flushed_;
  std::deque<Item> queue_;
  int64_t dropped_ = 0;
  int64_t flushes_asked_ = 0;
  int64_t flushes_done_ = 0;
  bool stop_ = false;

  std::thread writer_;  // last: it uses all of the above
};

}  // namespace megalith::observe
