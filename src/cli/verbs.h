#pragma once

#include <CLI/App.hpp>
#include <functional>

#include "core/process/exit_codes.h"

namespace megalith::cli {

// Each verb adds itself to the program and leaves in `run` what to do when it was chosen; `run` returns the exit code.
using Action = std::function<int()>;

// All of them, in the order of the help.
void add_verbs(CLI::App& program, Action& run);

void add_train(CLI::App& program, Action& run);
void add_generate(CLI::App& program, Action& run);
void add_evaluate(CLI::App& program, Action& run);
void add_data(CLI::App& program, Action& run);
void add_checkpoint(CLI::App& program, Action& run);
void add_checkpoint_convert(CLI::App& checkpoint, Action& run);
void add_report(CLI::App& program, Action& run);
void add_watch(CLI::App& program, Action& run);
void add_bench(CLI::App& program, Action& run);
void add_completion(CLI::App& program, Action& run);
void add_plan(CLI::App& program, Action& run);
void add_launch(CLI::App& program, Action& run);
void add_supervise(CLI::App& program, Action& run);
void add_monitor(CLI::App& program, Action& run);
void add_serve_store(CLI::App& program, Action& run);
void add_bench_checkpoint(CLI::App& bench, Action& run);
void add_bench_comm(CLI::App& bench, Action& run);
void add_bench_data(CLI::App& bench, Action& run);

}  // namespace megalith::cli
