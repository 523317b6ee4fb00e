#include "train/summary.h"

#include <fmt/format.h>

#include "core/words.h"
#include "train/run/run_files.h"
#include "train/run/tiers.h"

namespace megalith::train {

std::string describe(const Summary& summary, const config::Run& run, const RunDirectory& directory) {
  std::string text = summary.ending == Ending::complete ? "done: " : "stopped early: ";
  text += counted(summary.steps_done, "step");
  text += summary.first_step > 0 ? fmt::format(", {} of them in this start: ", summary.steps_done - summary.first_step)
                                 : ", ";
  text += fmt::format("{} tokens in {} ({:.0f} tokens/s)", summary.tokens, format_duration(summary.train_seconds),
                      summary.train_seconds > 0 ? static_cast<double>(summary.tokens) / summary.train_seconds : 0.0);
  if (!summary.stop_reason.empty()) text += fmt::format(", on {}", summary.stop_reason);
  text += '\n';
  if (summary.train_loss) text += fmt::format("  training loss    {:.4f}\n", *summary.train_loss);
  if (summary.validation_loss) text += fmt::format("  validation loss  {:.4f}\n", *summary.validation_loss);
  if (summary.skipped_steps > 0) text += fmt::format("  skipped steps    {}\n", summary.skipped_steps);
  if (learns_made_up_tokens(run.model.data)) text += fmt::format("  data             {}\n", kMadeUpTokens);
  text += fmt::format("  run directory    {}\n", directory.path().string());
  const std::filesystem::path checkpoints = tiers_of(run, 0).persistent;
  if (std::filesystem::exists(checkpoints)) text += fmt::format("  checkpoints      {}\n", checkpoints.string());
  if (std::filesystem::exists(directory.report()))
    text += fmt::format("  report           {}\n", directory.report().string());
  if (summary.ending == Ending::stopped_early) {
    text += fmt::format("  run the same command{} to continue\n",
                        run.exp_manager.resume_if_exists ? "" : " with exp_manager.resume_if_exists=true");
  }
  return text;
}

}  // namespace megalith::train
