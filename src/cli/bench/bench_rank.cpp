#include "cli/bench/bench_rank.h"

#include "config/derived.h"
#include "core/words.h"

namespace megalith::cli {

namespace {

std::string share_line(const char* name, double seconds, double whole) {
  return fmt::format("  {:<14} {:>10.2f} ms {:>6.1f} %\n", name, seconds * 1e3, 100.0 * seconds / whole);
}

std::string describe_shares(const train::StepShares& shares) {
  const double whole = shares.total();
  return share_line("compute", shares.compute, whole) + share_line("tensor calls", shares.tensor, whole) +
         share_line("context calls", shares.context, whole) + share_line("data calls", shares.data, whole) +
         share_line("idle", shares.idle, whole) + share_line("update", shares.update, whole);
}

std::string describe_rank(const train::MeasuredRank& rank) {
  std::string text = fmt::format("rank {}, stage {}: ", rank.rank, rank.times.stage);
  double forward = 0.0;
  double backward = 0.0;
  for (const plan::MeasuredStage::Chunk& chunk : rank.times.chunks) {
    forward += chunk.forward;
    backward += chunk.backward + chunk.backward_input + chunk.backward_weight;
  }
  text +=
      fmt::format("a micro batch forward {:.2f} ms, backward {:.2f} ms; step begins with {:.2f}, ends with {:.2f} ms\n",
                  forward * 1e3, backward * 1e3, rank.times.begin * 1e3, rank.times.end * 1e3);
  text += fmt::format("  memory {} of the {} that the table counts; the host asks for {:.1f} % of the time\n",
                      bytes_in_words(static_cast<double>(rank.peak_bytes)),
                      bytes_in_words(static_cast<double>(rank.planned_bytes)),
                      100.0 * rank.host_seconds / rank.step_seconds);
  return text + fmt::format("  with messages as simulated {:.2f} ms to the last pass, simulated {:.2f} ({:+.2f} %)\n",
                            rank.arrived_seconds * 1e3, rank.simulated_seconds * 1e3,
                            100.0 * (rank.arrived_seconds / rank.simulated_seconds - 1.0));
}

}  // namespace

std::string describe(const config::Run& run, const train::RankBenchResult& result) {
  const double seconds = result.step.seconds();
  std::string text =
      fmt::format("device           {}, as ranks of {} on an emulated wire, {}: no loss means anything\n",
                  result.device, config::world_size(run.trainer), result.wire) +
      fmt::format("step             {:.2f} ms: {} micro batches, simulated from measured steps of {}\n", seconds * 1e3,
                  result.step_micro_batches, result.micro_batches) +
      describe_shares(result.shares) + fmt::format("tokens/s         {:.1f} of all ranks\n", result.tokens_per_second) +
      fmt::format("TFLOPS           {:.1f} a rank\n", result.flops_per_second / 1e12);
  if (result.peak_tflops) {
    text += fmt::format("MFU              {:.1f} % of {} TFLOPS\n",
                        result.flops_per_second / *result.peak_tflops / 1e10, *result.peak_tflops);
  }
  for (const train::MeasuredRank& rank : result.ranks) text += describe_rank(rank);
  if (static_cast<int64_t>(result.ranks.size()) < run.model.pipeline_model_parallel_size)
    text += "stages that were not measured count as the measured one most like them\n";
  return text + fmt::format("measured in {:.0f} s\n", result.seconds);
}

}  // namespace megalith::cli
