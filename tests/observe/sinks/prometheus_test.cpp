#include "observe/sinks/prometheus.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/clock.h"
#include "core/error.h"
#include "expect_error.h"

namespace megalith::observe {
namespace {

PrometheusOptions options() {
  return {.run_name = "my \"run\"\\", .run_id = "a1"};
}

// What a client gets that sends these bytes.
std::string answer_to(uint16_t port, std::string request) {
  const double until = monotonic_seconds() + 10.0;
  const comm::Socket socket = comm::connect_to("127.0.0.1", port, until);
  socket.write_from(request);
  std::string answer;
  while (socket.wait_readable(until) && socket.read_into(answer, size_t{1} << 20)) {
  }
  return answer;
}

std::string get(uint16_t port, const std::string& path) {
  return answer_to(port, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(Prometheus, GaugesOfTheLastStepAndCountersOfEvents) {
  PrometheusSink sink(options());
  sink.on_metrics(
      {.kind = "train", .step = 0, .values = {{"reduced_train_loss", 9.0}, {"memory.weights", int64_t{1024}}}});
  sink.on_metrics({.kind = "train",
                   .step = 1,
                   .values = {{"reduced_train_loss", 6.25},
                              {"train_step_timing in s", 0.5},
                              {"slowest_rank", int64_t{3}},
                              {"grad_norm", std::nan("")},
                              {"lr", std::numeric_limits<double>::infinity()},
                              {"a new-number", 2.0},
                              {"skipped", int64_t{1}},
                              {"text", std::string("x")}},
                   .when = {.wall = 1234.5}});
  sink.on_metrics({.kind = "validation", .step = 1, .values = {{"val_loss", 7.5}}});
  sink.on_event({.name = "checkpoint_save", .phase = Phase::begin});
  sink.on_event({.name = "checkpoint_save", .phase = Phase::end, .duration = 1.25});
  sink.on_event({.name = "checkpoint_save", .phase = Phase::end, .duration = 1.0});
  sink.on_event({.name = "events_lost", .fields = {{"count", int64_t{7}}}});
  const std::string text = sink.text();
  for (const char* line :
       {"megalith_run_info{name=\"my \\\"run\\\"\\\\\",run_id=\"a1\"} 1", "# TYPE megalith_train_loss gauge",
        "megalith_train_loss 6.25", "megalith_step_seconds_mean 0.5", "megalith_slowest_rank 3",
        "megalith_gradient_norm NaN", "megalith_learning_rate +Inf", "megalith_a_new_number 2",
        "megalith_skipped_steps_total 1", "megalith_validation_loss 7.5",
        "megalith_memory_bytes{arena=\"weights\"} 1024", "megalith_steps_total 2",
        "# TYPE megalith_steps_total counter", "megalith_last_step_timestamp_seconds 1234.5",
        "megalith_events_total{event=\"checkpoint_save\"} 2",
        "megalith_span_seconds_total{span=\"checkpoint_save\"} 2.25", "megalith_telemetry_lost_total 7"}) {
    EXPECT_TRUE(has_line(text, line)) << line << "\n" << text;
  }
  EXPECT_EQ(text.find("megalith_text"), std::string::npos);
}

TEST(Prometheus, IsServedOverHttp) {
  PrometheusSink sink(options());
  sink.on_metrics({.kind = "train", .step = 0, .values = {{"reduced_train_loss", 9.0}}});
  const std::string answer = get(sink.port(), "/metrics");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n") + 4), sink.text());
  EXPECT_NE(answer.find("Content-Length: " + std::to_string(sink.text().size()) + "\r\n"), std::string::npos);
  EXPECT_TRUE(get(sink.port(), "/").starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(get(sink.port(), "/metrics?x=1").starts_with("HTTP/1.1 200"));
}

TEST(Prometheus, AnswersNonsenseAndLives) {
  PrometheusSink sink(options());
  EXPECT_TRUE(get(sink.port(), "/secret").starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(answer_to(sink.port(), "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
  EXPECT_TRUE(answer_to(sink.port(), "\x16\x03\x01 hello\r\n\r\n").starts_with("HTTP/1.1 400"));
  EXPECT_TRUE(answer_to(sink.port(), std::string(16384, 'x')).starts_with("HTTP/1.1 400"));
  { const comm::Socket gone = comm::connect_to("127.0.0.1", sink.port(), monotonic_seconds() + 10.0); }
  EXPECT_TRUE(get(sink.port(), "/metrics").starts_with("HTTP/1.1 200"));
}

TEST(Prometheus, SilentClientsAreCutOffAndKeepNobodyWaiting) {
  PrometheusSink sink(options());
  const double begin = monotonic_seconds();
  std::vector<comm::Socket> silent;
  for (int i = 0; i < 300; ++i) silent.push_back(comm::connect_to("127.0.0.1", sink.port(), begin + 10.0));
  EXPECT_TRUE(get(sink.port(), "/metrics").starts_with("HTTP/1.1 200"));
  EXPECT_LT(monotonic_seconds() - begin, ScrapeServer::kSeconds * 5) << "one after the other they would take 600 s";
  for (const size_t i : {size_t{0}, silent.size() - 1}) {
    std::string nothing;
    EXPECT_TRUE(silent[i].wait_readable(monotonic_seconds() + 10.0)) << i;
    EXPECT_FALSE(silent[i].read_into(nothing, 1)) << i;
  }
}

TEST(Prometheus, ListensOnLoopbackUnlessToldOtherwise) {
  EXPECT_EQ(PrometheusOptions{}.address, "127.0.0.1");
}

TEST(Prometheus, ATakenPortIsAUserErrorThatNamesTheKey) {
  const PrometheusSink first(options());
  PrometheusOptions second = options();
  second.port = first.port();
  expect_error(ErrorKind::user, {"exp_manager.prometheus.port"}, [&] { const PrometheusSink sink(second); });
}

}  // namespace
}  // namespace megalith::observe
