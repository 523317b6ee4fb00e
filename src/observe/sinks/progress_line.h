#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace megalith::observe {

// How far a run is, and its latest numbers by name.
struct Progress {
  int64_t epoch = 0;
  int64_t done = 0;
  int64_t max_steps = 0;
  double elapsed = 0.0;             // seconds
  std::optional<double> remaining;  // seconds; none: unknown
  std::string phase;                // what is being done beside steps: "making the weights"; empty: nothing
  std::vector<std::pair<std::string, double>> numbers;

  std::optional<double> number(std::string_view name) const;
};

// In the words of NeMo and tqdm:
//   Epoch 0:  10%|█         | 5/50 [00:12<01:50, reduced_train_loss=6.130, ..., val_loss=6.250, tokens/s=8192.0]
std::string progress_line(const Progress& progress);

// The same within so many columns: in short words, and of these the more important ones where not all have room. No
// word is cut unless there is no room for the first of them.
std::string progress_line(const Progress& progress, int64_t columns);

// Whole cells, then one in eighths, then `empty`.
std::string progress_bar(double fraction, int64_t cells, std::string_view empty);

// As Lightning shows numbers beside tqdm's bar: 6.1302 is "6.130", 1280.0 is "1280.0".
std::string console_number(double number);

}  // namespace megalith::observe
