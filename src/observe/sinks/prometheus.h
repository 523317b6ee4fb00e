#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/telemetry.h"
#include "observe/sinks/scrape_server.h"

namespace megalith::observe {

struct PrometheusOptions {
  std::string address = "127.0.0.1";
  uint16_t port = 0;  // 0: one that is free
  std::string run_name;
  std::string run_id;
};

// The latest numbers of the run in Prometheus' text format, at http://ADDRESS:PORT/metrics:
//   megalith_train_loss 6.13                          the numbers of the last step, as gauges
//   megalith_memory_bytes{arena="weights"} 1024
//   megalith_events_total{event="checkpoint_saved"} 3
//   megalith_span_seconds_total{span="checkpoint_save"} 1.25
class PrometheusSink : public Sink {
 public:
  explicit PrometheusSink(const PrometheusOptions& options);

  void on_event(const Event& event) override;
  void on_metrics(const Metrics& metrics) override;

  // What a scrape gets. Any thread.
  std::string text() const;
  uint16_t port() const { return server_->port(); }

 private:
  struct Family {
    std::string help;
    std::string type;                       // gauge | counter
    std::map<std::string, double> samples;  // by labels: {arena="weights"}, or nothing
  };
  double& sample(const std::string& name, const std::string& labels, const char* type, const std::string& help);
  void take(const std::string& name, double value);

  mutable std::mutex mutex_;
  std::map<std::string, Family> families_;
  std::unique_ptr<ScrapeServer> server_;  // last: it asks for text()
};

}  // namespace megalith::observe
