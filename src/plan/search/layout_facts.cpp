#include "plan/search/layout_facts.h"

#include <fmt/format.h>

#include <algorithm>

namespace megalith::plan {

const std::array<NamedPart, 11> kNamedParts{{{"compute", "part-compute", &StepParts::compute},
                                             {"recompute", "part-recompute", &StepParts::recompute},
                                             {"tensor-parallel collectives", "part-tensor", &StepParts::tensor},
                                             {"context-parallel collectives", "part-context", &StepParts::context},
                                             {"imbalance of stages", "part-imbalance", &StepParts::imbalance},
                                             {"pipeline bubble", "part-bubble", &StepParts::bubble},
                                             {"messages between stages", "part-messages", &StepParts::messages},
                                             {"data-parallel collectives", "part-data", &StepParts::data},
                                             {"optimizer", "part-optimizer", &StepParts::optimizer},
                                             {"host", "part-host", &StepParts::host},
                                             {"jitter", "part-jitter", &StepParts::jitter}}};

std::string_view word_of(config::Granularity granularity) {
  if (granularity == config::Granularity::none) return "none";
  return granularity == config::Granularity::full ? "full" : "selective";
}

std::string short_name(const Candidate& candidate) {
  const parallel::Layout& l = candidate.layout;
  std::string text = fmt::format("t{} p{}", l.tensor, l.pipeline);
  if (l.chunks > 1) text += fmt::format(" v{}", l.chunks);
  if (l.split.counts_embedding || l.split.counts_loss) text += '+';
  if (l.context > 1) text += fmt::format(" c{}", l.context);
  text += fmt::format(" d{}", l.data);
  if (l.shards_weights) text += " fsdp";
  return text + fmt::format(" b{}", candidate.micro_batch);
}

std::string marked_name(const PlannedLayout& layout, const SearchResult& result) {
  const auto ties = [&](const PlannedLayout& other) { return is_tie(other.seconds(), result.least_seconds()); };
  const bool has_ties = result.fastest || std::count_if(result.best.begin(), result.best.end(), ties) > 1;
  return short_name(layout.candidate) + (has_ties && ties(layout) ? " ~" : "");
}

double tokens_of_step(const RunFeatures& run) {
  return static_cast<double>(run.global_batch) * static_cast<double>(run.model.length);
}

double mfu(const RunFeatures& run, double seconds) {
  const double flops = run.model.flops_per_sample() * static_cast<double>(run.global_batch);
  const double peak = (run.fp8 ? *run.gpu.fp8_tflops : run.gpu.bf16_tflops) * 1e12;
  return flops / seconds / static_cast<double>(run.gpus) / peak;
}

double parameters(const ModelShape& m) {
  return static_cast<double>(m.layers) * m.layer_weights() +
         static_cast<double>(m.vocabulary * m.hidden) * (m.tied ? 1 : 2);
}

}  // namespace megalith::plan
