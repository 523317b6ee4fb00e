#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "core/telemetry.h"
#include "observe/sinks/async_file.h"

namespace megalith::observe {

// dllogger.json as NVIDIA's DLLogger writes it, byte for byte, so that tools for NeMo's runs read ours: lines of "DLLL
// " and a JSON object; a first record "PARAMETER" with the config, then one record per step and per validation with the
// numbers that NeMo logs. A resumed run appends its own PARAMETER record and goes on.
class DlloggerSink : public Sink {
 public:
  // `parameters`: {"cfg/micro_batch_size": 1, ...}
  DlloggerSink(const std::filesystem::path& path, const nlohmann::ordered_json& parameters);

  void on_event(const Event&) override {}
  void on_metrics(const Metrics& metrics) override;
  void flush() override { file_.flush(); }

 private:
  void write(double wall, const nlohmann::ordered_json& step, const nlohmann::ordered_json& data);

  double begin_;
  AsyncFile file_;
};

// A record as its line, without the line end.
std::string dllogger_line(const nlohmann::ordered_json& record);

}  // namespace megalith::observe
