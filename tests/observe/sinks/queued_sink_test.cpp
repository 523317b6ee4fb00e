#include "observe/sinks/queued_sink.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>

#include "core/clock.h"
#include "observe/sinks/log_files.h"

namespace megalith::observe {
namespace {

// Keeps what it hears; each call first waits at the gate.
class Recorder : public Sink {
 public:
  void on_event(const Event& event) override {
    pass();
    heard.push_back(event.name);
    if (const auto count = number_in(event.fields, "count")) lost += static_cast<int64_t>(*count);
  }
  void on_metrics(const Metrics& metrics) override {
    pass();
    heard.push_back(metrics.kind + std::to_string(metrics.step));
    thread = std::this_thread::get_id();
  }
  void flush() override { ++flushes; }

  void pass() {
    if (gate.valid()) gate.wait();
  }

  std::shared_future<void> gate;
  std::vector<std::string> heard;  // read after a flush only
  std::thread::id thread;
  int64_t lost = 0;
  std::atomic<int> flushes = 0;
};

class Thrower : public Sink {
 public:
  void on_event(const Event&) override { throw std::runtime_error("it broke"); }
  void on_metrics(const Metrics&) override { ++calls; }
  std::atomic<int> calls = 0;
};

class QueuedSinkTest : public ::testing::Test {
 protected:
  QueuedSinkTest() {
    set_log_console([this](std::string_view line) { log_ += line; });
  }
  ~QueuedSinkTest() override { set_log_console(nullptr); }

  std::string log_;
  std::shared_ptr<Recorder> recorder_ = std::make_shared<Recorder>();
};

TEST_F(QueuedSinkTest, PassesEverythingOnInOrderFromAnotherThread) {
  QueuedSink sink({recorder_});
  sink.on_event({.name = "begin"});
  for (int64_t step = 0; step < 100; ++step) sink.on_metrics({.kind = "train", .step = step});
  sink.flush();
  ASSERT_EQ(recorder_->heard.size(), 101u);
  EXPECT_EQ(recorder_->heard.front(), "begin");
  EXPECT_EQ(recorder_->heard.back(), "train99");
  EXPECT_NE(recorder_->thread, std::this_thread::get_id());
  EXPECT_EQ(recorder_->flushes, 1);
  EXPECT_EQ(sink.dropped(), 0);
}

TEST_F(QueuedSinkTest, DestructionPassesOnWhatIsLeft) {
  {
    QueuedSink sink({recorder_});
    for (int64_t step = 0; step < 100; ++step) sink.on_metrics({.kind = "train", .step = step});
  }
  EXPECT_EQ(recorder_->heard.size(), 100u);
}

TEST_F(QueuedSinkTest, ASlowSinkNeverBlocksAndDropsAreCountedAndTold) {
  std::promise<void> gate;
  recorder_->gate = gate.get_future().share();
  QueuedSink sink({recorder_}, 10);
  const double begin = monotonic_seconds();
  for (int64_t step = 0; step < 1000; ++step) sink.on_metrics({.kind = "train", .step = step});
  EXPECT_LT(monotonic_seconds() - begin, 30.0);  // nothing has come through the gate
  // Ten wait in the queue, and at most ten more were taken out of it.
  EXPECT_GE(sink.dropped(), 980);
  gate.set_value();
  sink.flush();
  EXPECT_NE(log_.find("some of it is dropped"), std::string::npos);
  EXPECT_EQ(log_.find("dropped"), log_.rfind("dropped")) << "told more than once";
  EXPECT_EQ(recorder_->lost, sink.dropped());
  const auto numbers = std::count_if(recorder_->heard.begin(), recorder_->heard.end(),
                                     [](const std::string& what) { return what != "events_lost"; });
  EXPECT_EQ(numbers + sink.dropped(), 1000);
}

TEST_F(QueuedSinkTest, ASinkThatThrowsIsLeftOutAndTheOthersGoOn) {
  const auto thrower = std::make_shared<Thrower>();
  QueuedSink sink({thrower, recorder_});
  sink.on_metrics({.kind = "train"});
  sink.on_event({.name = "first"});
  sink.on_event({.name = "second"});
  sink.on_metrics({.kind = "train"});
  sink.flush();
  EXPECT_EQ(thrower->calls, 1);
  EXPECT_EQ(recorder_->heard.size(), 4u);
  EXPECT_NE(log_.find("it broke"), std::string::npos);
}

TEST_F(QueuedSinkTest, WhatIsHeardLateKeepsItsTime) {
  const Metrics metrics{.kind = "train"};
  EXPECT_LE(metrics.when.monotonic, monotonic_seconds());
  EXPECT_GT(metrics.when.monotonic, monotonic_seconds() - 60.0);
  EXPECT_GT(metrics.when.wall, 1e9);
}

}  // namespace
}  // namespace megalith::observe
