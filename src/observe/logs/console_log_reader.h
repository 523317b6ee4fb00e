#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace megalith::observe {

// What a progress line on a console tells about speed.
struct ConsoleStep {
  int64_t step = 0;
  double seconds = 0.0;
  std::optional<int64_t> global_batch_size;
};

// NeMo's, of both generations:
//   Epoch 0: : 100%|███| 50/50 [31:51<00:00, reduced_train_loss=6.130, global_step=50.0, train_step_timing in s=5.900]
//   Training epoch 0, iteration 12/49 | lr: 1e-05 | global_batch_size: 2048 | global_step: 12 | train_step_timing in
//   s: 9.05
std::optional<ConsoleStep> read_nemo_line(std::string_view line);

// Megatron's, a mean over its log interval:
//   [2025-05-22 10:00:00] iteration      100/  500000 | ... | elapsed time per iteration (ms): 6012.3 | ...
std::optional<ConsoleStep> read_megatron_line(std::string_view line);

}  // namespace megalith::observe
