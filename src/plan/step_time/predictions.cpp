#include "plan/step_time/predictions.h"

#include <fmt/format.h>

#include "observe/draw/text_table.h"

namespace megalith::plan {

Prediction predict(const TableRun& run, const Constants& constants) {
  if (!run.problem.empty()) return {.problem = run.problem, .parts = {}};
  const RunFeatures& f = run.features;
  Prediction prediction{.problem = {}, .parts = step_time(f, constants)};
  const double samples_per_s = static_cast<double>(f.global_batch) / prediction.parts.total();
  prediction.tokens_per_s = samples_per_s * static_cast<double>(f.model.length);
  prediction.tflops = samples_per_s * f.model.flops_per_sample() / static_cast<double>(f.gpus) / 1e12;
  prediction.mfu = prediction.tflops / (f.fp8 ? *f.gpu.fp8_tflops : f.gpu.bf16_tflops);
  return prediction;
}

std::vector<Prediction> predict(const std::vector<TableRun>& runs, const Constants& constants) {
  std::vector<Prediction> predictions;
  predictions.reserve(runs.size());
  for (const TableRun& run : runs) predictions.push_back(predict(run, constants));
  return predictions;
}

namespace {

std::string six_digits(double number) {
  return fmt::format("{:.6g}", number);
}

// As texts of six digits that still add up to the step's within a millionth: a part of less than a tenth of it has the
// digits for what rounding the others left.
observe::TextRow texts_of(const StepParts& p) {
  std::vector<double> parts{p.compute,  p.recompute, p.tensor,    p.context, p.imbalance, p.bubble,
                            p.messages, p.data,      p.optimizer, p.host,    p.jitter};
  const double step = std::stod(six_digits(p.total()));
  size_t small = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i] < step / 10 && (small == parts.size() || parts[i] > parts[small])) small = i;
  }
  double rest = step;
  observe::TextRow texts;
  for (size_t i = 0; i < parts.size(); ++i) {
    texts.push_back(six_digits(parts[i]));
    if (i != small) rest -= std::stod(texts.back());
  }
  if (small < parts.size() && parts[small] > 0 && rest > 0) texts[small] = six_digits(rest);
  return texts;
}

}  // namespace

std::string predictions_csv(const std::vector<TableRun>& runs, const std::vector<Prediction>& predictions) {
  const observe::TextRow columns{
      "id",        "status",      "reason", "step_s",   "tokens_per_s", "tflops_per_gpu", "mfu_pct",
      "compute_s", "recompute_s", "tp_s",   "cp_s",     "imbalance_s",  "bubble_s",       "p2p_s",
      "dp_s",      "optimizer_s", "host_s", "jitter_s", "mem_gib",      "mem_stage"};
  std::string text = observe::csv_line(columns);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Prediction& prediction = predictions[i];
    observe::TextRow row{runs[i].id, prediction.problem.empty() ? "ok" : "refused", prediction.problem};
    if (prediction.problem.empty()) {
      for (const double number :
           {prediction.parts.total(), prediction.tokens_per_s, prediction.tflops, 100 * prediction.mfu})
        row.push_back(six_digits(number));
      const observe::TextRow parts = texts_of(prediction.parts);
      row.insert(row.end(), parts.begin(), parts.end());
    }
    row.resize(columns.size());
    text += observe::csv_line(row);
  }
  return text;
}

}  // namespace megalith::plan
