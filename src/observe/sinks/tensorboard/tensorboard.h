#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "core/telemetry.h"
#include "observe/sinks/async_file.h"

namespace megalith::observe {

struct TensorBoardOptions {
  std::filesystem::path directory;
  std::string config_text;  // YAML
  int64_t global_batch_size = 0;
  int64_t ranks = 1;
  int64_t first_step = 0;  // where the run goes on: what files in the directory hold of later steps is cut off
  int64_t consumed_samples = 0;
};

// TensorBoard's event file (events.out.tfevents.<unix time>.<host>.<pid>.0) with the config as text and the numbers of
// every step under three kinds of tags:
//   NeMo's, which are the names of the numbers themselves, at the 0-based step (`reduced_train_loss`, `val_loss`, ...),
//   Megatron's at the 1-based iteration (`lm loss`, `learning-rate`, `lm loss validation`, ...),
//   Megatron's at the count of samples (`lm loss vs samples`, ...).
// Each process writes its own file; TensorBoard joins them. A step is in one of them.
class TensorBoardSink : public Sink {
 public:
  explicit TensorBoardSink(const TensorBoardOptions& options);

  void on_event(const Event&) override {}
  void on_metrics(const Metrics& metrics) override;
  void flush() override { file_->flush(); }

  const std::filesystem::path& path() const { return file_->path(); }

 private:
  Fields megatron_scalars(const Metrics& metrics) const;
  void write(const Moment& when, int64_t step, const Fields& scalars);

  int64_t global_batch_size_;
  int64_t ranks_;
  int64_t consumed_samples_;  // as of the last training step
  std::unique_ptr<AsyncFile> file_;
};

}  // namespace megalith::observe
