#pragma once

#include <optional>

#include "config/run_config.h"
#include "core/process/status_page.h"
#include "core/telemetry.h"
#include "data/batch.h"
#include "data/order/dataset.h"
#include "engine/engine.h"
#include "observe/sinks/profile_window.h"
#include "plan/memory_table.h"
#include "train/evaluate.h"
#include "train/run/checkpoint_writer.h"
#include "train/run/run_directory.h"
#include "train/step_metrics.h"
#include "train/stop.h"
#include "train/summary.h"

namespace megalith::train {

// Runs THE loop. The engine and the telemetry are made by the caller (session.h), the trainer decides the order of
// events.
class Trainer {
 public:
  struct Parts {
    const config::Run& run;
    engine::Engine& engine;
    Telemetry& telemetry;
    StatusPage& page;  // of this rank
    const data::Dataset& train_data;
    const data::Dataset* validation_data = nullptr;  // null: no validation
    data::Vocabulary vocabulary;
    plan::MemoryTable memory;            // of this rank
    CheckpointWriter* writer = nullptr;  // null: nothing is saved
    checkpoint::RunState state;          // where the run stands
    int rank = 0;
  };

  explicit Trainer(const Parts& parts);

  Summary run();

 private:
  // A step that was asked for and not yet reported.
  struct Launched {
    int64_t step = 0;
    int64_t samples_before = 0;    // consumed before it
    int64_t consumed_samples = 0;  // and after it
    double learning_rate = 0.0;
    double data_wait = 0.0;
  };
  Launched launch();
  void run_steps();
  // Waits for what `launched` did, and tells it. `steps_back` as in Engine::result_of_step().
  void report(const Launched& launched, int steps_back);
  // Reports what is still to be reported.
  void settle();

  bool should_stop() const;
  bool validation_due() const;
  // Names this rank's fp8 operands that were beyond the largest number of their type when there are more than ever.
  void note_saturation(int64_t step, const engine::StepResult& result);
  void act_on_non_finite(const Launched& launched, const engine::StepResult& result, int steps_back);
  // Saves the weights as they were before a step whose gradient was not finite. Where they are; empty: nowhere.
  std::string save_good_weights(const Launched& failed, int steps_back);
  void validate();
  // A save that fails is reported and tried again when the next one is due.
  void save();
  void save_at_end();
  // For retention, with the next checkpoint.
  void note_monitored(const char* name, double value);

  Parts parts_;
  const config::Run& run_;
  engine::Engine& engine_;
  Telemetry& telemetry_;
  StatusPage& page_;
  checkpoint::RunState state_;
  data::Batcher batcher_;
  StepMetrics metrics_;
  StopRequest stop_;
  observe::ProfileWindow profile_;
  Summary summary_;
  std::optional<Launched> launched_;
  double mark_ = 0.0;              // where the time of the next report begins
  double checkpoint_stall_ = 0.0;  // seconds that saving held up the loop since the last report
  size_t most_saturated_ = 0;      // operands of this rank in one step
  bool stop_agreed_ = false;
  bool save_agreed_ = false;  // a save by time is due
};

}  // namespace megalith::train
