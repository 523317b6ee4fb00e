#include "observe/sinks/queued_sink.h"

#include <fmt/format.h>

#include "core/event_names.h"
#include "observe/sinks/log_files.h"

namespace megalith::observe {

QueuedSink::QueuedSink(std::vector<std::shared_ptr<Sink>> sinks, size_t capacity)
    : sinks_(std::move(sinks)), capacity_(capacity), writer_([this] { run(); }) {}

QueuedSink::~QueuedSink() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  writer_.join();
}

void QueuedSink::push(Item item) {
  {
    const std::lock_guard lock(mutex_);
    if (queue_.size() < capacity_) {
      queue_.push_back(std::move(item));
    } else {
      ++dropped_;
    }
  }
  wake_.notify_one();
}

void QueuedSink::flush() {
  std::unique_lock lock(mutex_);
  const int64_t mine = ++flushes_asked_;
  wake_.notify_one();
  flushed_.wait(lock, [&] { return flushes_done_ >= mine; });
}

int64_t QueuedSink::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void QueuedSink::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !queue_.empty() || flushes_asked_ > flushes_done_; });
    if (stop_ && queue_.empty()) return;
    std::deque<Item> items;
    items.swap(queue_);
    const int64_t dropped = dropped_;
    const int64_t flushes = flushes_asked_;
    const bool flush_is_due = flushes > flushes_done_;
    lock.unlock();
    deliver(items);
    items.clear();  // while others may push
    tell_drops(dropped);
    if (flush_is_due) for_each_sink([](Sink& sink) { sink.flush(); });
    lock.lock();
    flushes_done_ = flushes;
    if (flush_is_due) flushed_.notify_all();
  }
}

void QueuedSink::deliver(const std::deque<Item>& items) {
  for (const Item& item : items) {
    for_each_sink([&](Sink& sink) {
      if (const auto* event = std::get_if<Event>(&item)) sink.on_event(*event);
      if (const auto* metrics = std::get_if<Metrics>(&item)) sink.on_metrics(*metrics);
    });
  }
}

// What was dropped came after all that was in the queue.
void QueuedSink::tell_drops(int64_t dropped) {
  if (dropped == drops_told_) return;
  if (drops_told_ == 0) log_warning("the run tells more of itself than can be written: some of it is dropped");
  const Event event{.name = event::kEventsLost,
                    .reason = "more was told than could be written",
                    .fields = {{event::kCount, dropped - drops_told_}}};
  for_each_sink([&](Sink& sink) { sink.on_event(event); });
  drops_told_ = dropped;
}

template <class Use>
void QueuedSink::for_each_sink(const Use& use) {
  for (std::shared_ptr<Sink>& sink : sinks_) {
    if (sink == nullptr) continue;
    try {
      use(*sink);
    } catch (const std::exception& error) {
      log_warning(fmt::format("a sink of metrics and events failed and is left out from here on: {}", error.what()));
      sink.reset();
    }
  }
}

}  // namespace megalith::observe
