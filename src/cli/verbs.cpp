#include "cli/verbs.h"

namespace megalith::cli {

void add_verbs(CLI::App& program, Action& run) {
  for (const auto add :
       {add_train, add_generate, add_evaluate, add_data, add_checkpoint, add_report, add_watch, add_bench, add_plan,
        add_launch, add_supervise, add_monitor, add_serve_store, add_completion}) {
    add(program, run);
  }
}

}  // namespace megalith::cli
