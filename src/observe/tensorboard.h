#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/telemetry.h"
#include "observe/async_file.h"

namespace megalith::observe {

// TensorBoard's event file (events.out.tfevents.<unix time>.<host>.<pid>.0) with the numbers of every step under the
// names that NeMo gives them, and the config as text. Each process writes its own file; TensorBoard joins them.
class TensorBoardSink : public Sink {
 public:
  TensorBoardSink(const std::filesystem::path& directory, const std::string& config_text);

  void on_event(const Event&) override {}
  void on_metrics(const Metrics& metrics) override;
  void flush() override { file_->flush(); }

  const std::filesystem::path& path() const { return file_->path(); }

 private:
  std::unique_ptr<AsyncFile> file_;
};

}  // namespace megalith::observe
