#include "train/summary.h"

#include <fmt/format.h>

#include "core/clock.h"

namespace megalith::train {

std::string describe(const Summary& summary, const RunDirectory& directory) {
  std::string text =
      fmt::format("{} {} steps, {} tokens in {} ({:.0f} tokens/s)",
                  summary.ending == Ending::complete ? "done:" : "stopped early:", summary.steps_done, summary.tokens,
                  format_duration(summary.train_seconds),
                  summary.train_seconds > 0 ? static_cast<double>(summary.tokens) / summary.train_seconds : 0.0);
  if (!summary.stop_reason.empty()) text += fmt::format(", on {}", summary.stop_reason);
  text += '\n';
  if (summary.train_loss) text += fmt::format("  training loss    {:.4f}\n", *summary.train_loss);
  if (summary.validation_loss) text += fmt::format("  validation loss  {:.4f}\n", *summary.validation_loss);
  if (summary.skipped_steps > 0) text += fmt::format("  skipped steps    {}\n", summary.skipped_steps);
  text += fmt::format("  run directory    {}\n", directory.path().string());
  if (std::filesystem::exists(directory.checkpoints()))
    text += fmt::format("  checkpoints      {}\n", directory.checkpoints().string());
  text += fmt::format("  report           {}\n", directory.report().string());
  if (summary.ending == Ending::stopped_early)
    text += "  run the same command with exp_manager.resume_if_exists=true to continue\n";
  return text;
}

}  // namespace megalith::train
