#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/telemetry.h"
#include "observe/sinks/dllogger.h"
#include "observe/sinks/events.h"

namespace megalith::test {

// Forty steps with one that is not finite, four validations, a run that is not ended and names that need escaping.
inline void write_example_run(const std::filesystem::path& directory, int64_t first_step = 0, int64_t steps = 40) {
  using namespace observe;
  std::filesystem::create_directories(directory / "dllogger/rank-0");
  std::ofstream(directory / "hparams.yaml")
      << "trainer:\n  name: <b>bold</b>\n  max_steps: 100\nmodel:\n  global_batch_size: 4\n  encoder_seq_length: 32\n";
  Telemetry telemetry;
  telemetry.add(std::make_shared<DlloggerSink>(directory / "dllogger/rank-0/dllogger.json",
                                               nlohmann::ordered_json{{"cfg/a", 1}}));
  telemetry.add(
      std::make_shared<EventsSink>(directory / "events.jsonl", EventOrigin{.run_id = "my <run>", .node = "h"}));
  telemetry.emit(Event{.name = "job_started", .step = first_step});
  for (int64_t step = first_step; step < first_step + steps; ++step) {
    const Span span(telemetry, "step", step);
    const double loss = step == 7 ? std::nan("") : 10.0 - 0.1 * static_cast<double>(step);
    telemetry.emit(Metrics{.kind = "train",
                           .step = step,
                           .values = {{"reduced_train_loss", loss},
                                      {"train_step_timing in s", 1.0},
                                      {"step_time", 0.5},
                                      {"tokens_per_second", 12345.0},
                                      {"slowest_rank", int64_t{3}},
                                      {"memory.weights", 3.0 * 1024 * 1024}}});
    if (step % 10 == 9)
      telemetry.emit(Metrics{.kind = "validation", .step = step, .values = {{"val_loss", loss + 0.5}}});
  }
  telemetry.emit(Event{.name = "run", .phase = Phase::begin, .id = 1000});
}

}  // namespace megalith::test
