#pragma once

#include <optional>

#include "config/run_config.h"
#include "core/progress.h"
#include "core/telemetry.h"
#include "data/batch.h"
#include "data/dataset.h"
#include "observe/profile_window.h"
#include "train/checkpoint_writer.h"
#include "train/engine.h"
#include "train/run_directory.h"
#include "train/step.h"
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
    Engine& engine;
    Telemetry& telemetry;
    const data::Dataset& train_data;
    const data::Dataset* validation_data = nullptr;  // null: no validation
    data::Vocabulary vocabulary;
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
    int64_t consumed_samples = 0;
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
  void act_on_non_finite(int64_t step, const StepResult& result);
  void validate();
  // A save that fails is reported and tried again when the next one is due.
  void save();
  void save_at_end();

  Parts parts_;
  const config::Run& run_;
  Engine& engine_;
  Telemetry& telemetry_;
  checkpoint::RunState state_;
  data::Batcher batcher_;
  StepMetrics metrics_;
  StopRequest stop_;
  observe::ProfileWindow profile_;
  Progress progress_;
  Summary summary_;
  std::optional<Launched> launched_;
  double mark_ = 0.0;              // where the time of the next report begins
  double checkpoint_stall_ = 0.0;  // seconds that saving held up the loop since the last report
  bool stop_agreed_ = false;
};

}  // namespace megalith::train
