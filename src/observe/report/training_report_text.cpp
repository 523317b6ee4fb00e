#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "observe/draw/text_table.h"
#include "observe/report/training_report.h"
#include "observe/sinks/python_json.h"

namespace megalith::observe {

using nlohmann::ordered_json;

namespace {
constexpr const char* kFormulas =
    "TFLOPS/accelerator = FLOPs per sample x batch / step time / accelerators / 1e12; MFU = TFLOPS / peak\n"
    "tokens/s = sequence length x batch / step time; days = tokens / (tokens/s) / 86400\n";
constexpr const char* kAbsent = "-";

std::string or_absent(const std::optional<double>& number, const char* format) {
  return number ? fmt::format(fmt::runtime(format), *number) : kAbsent;
}

std::string or_absent(const std::optional<int64_t>& number) {
  return number ? std::to_string(*number) : kAbsent;
}

std::string with_source(const std::string& text, const std::string& source) {
  return source.empty() ? text : fmt::format("{} ({})", text, source);
}

std::string describe_averaged(const TrainingInputs& inputs) {
  if (!inputs.averaged) return "step time as given";
  const TrainingInputs::Averaged& a = *inputs.averaged;
  return fmt::format("{} to {}, {} records of {}", a.first_step, a.last_step, a.records, a.log);
}

struct Row {
  std::string label;
  std::function<std::string(const TrainingInputs&)> text;
};

// As Google's tool prints them.
std::vector<Row> google_rows() {
  return {{"Average step time", [](const auto& in) { return fmt::format("{:.8f}", in.step_time); }},
          {"TFLOPS/Accelerator", [](const auto& in) { return or_absent(tflops_per_accelerator(in), "{:.8f}"); }},
          {"MFU", [](const auto& in) { return or_absent(model_flops_utilization(in), "{:.8f}"); }}};
}

std::optional<double> causal_mfu(TrainingInputs inputs) {
  inputs.model_flops = inputs.causal_flops;
  return model_flops_utilization(inputs);
}

std::vector<Row> further_rows(std::span<const TrainingInputs> columns) {
  std::vector<Row> rows{
      {"tokens/s", [](const auto& in) { return or_absent(tokens_per_second(in), "{:.2f}"); }},
      {fmt::format("days to train {:.6g} tokens", columns[0].tokens),
       [](const auto& in) { return or_absent(days_to_train(in), "{:.2f}"); }},
      {"steps averaged", describe_averaged},
      {"global batch size", [](const auto& in) { return or_absent(in.batch_size); }},
      {"sequence length", [](const auto& in) { return or_absent(in.sequence_length); }},
      {"accelerators", [](const auto& in) { return or_absent(in.accelerators); }},
      {"FLOPs per sample",
       [](const auto& in) { return with_source(or_absent(in.model_flops, "{:.10g}"), in.model_source); }},
      {"peak TFLOPS", [](const auto& in) { return with_source(or_absent(in.peak_tflops, "{:g}"), in.peak_source); }}};
  for (const TrainingInputs& inputs : columns) {
    if (!inputs.causal_flops) continue;
    rows.push_back({"causal FLOPs per sample", [](const auto& in) { return or_absent(in.causal_flops, "{:.10g}"); }});
    rows.push_back({"causal MFU", [](const auto& in) { return or_absent(causal_mfu(in), "{:.8f}"); }});
    break;
  }
  return rows;
}

std::vector<TextRow> fill(const std::vector<Row>& rows, std::span<const TrainingInputs> columns) {
  std::vector<TextRow> table;
  for (const Row& row : rows) {
    TextRow cells{row.label};
    for (const TrainingInputs& inputs : columns) cells.push_back(row.text(inputs));
    table.push_back(std::move(cells));
  }
  return table;
}

ordered_json or_null(const auto& number) {
  return number ? ordered_json(*number) : ordered_json();
}

ordered_json to_json(const TrainingInputs& inputs) {
  const TrainingInputs::Averaged averaged = inputs.averaged.value_or(TrainingInputs::Averaged{});
  const auto of_log = [&](int64_t number) { return inputs.averaged ? ordered_json(number) : ordered_json(); };
  return {{"name", inputs.name},
          {"average_step_time", inputs.step_time},
          {"tflops_per_accelerator", or_null(tflops_per_accelerator(inputs))},
          {"mfu", or_null(model_flops_utilization(inputs))},
          {"tokens_per_second", or_null(tokens_per_second(inputs))},
          {"tokens", inputs.tokens},
          {"days_to_train", or_null(days_to_train(inputs))},
          {"log", averaged.log},
          {"first_step", of_log(averaged.first_step)},
          {"last_step", of_log(averaged.last_step)},
          {"records", of_log(averaged.records)},
          {"batch_size", or_null(inputs.batch_size)},
          {"sequence_length", or_null(inputs.sequence_length)},
          {"num_accelerators", or_null(inputs.accelerators)},
          {"model_flops", or_null(inputs.model_flops)},
          {"model_source", inputs.model_source},
          {"causal_model_flops", or_null(inputs.causal_flops)},
          {"peak_tflops", or_null(inputs.peak_tflops)},
          {"peak_source", inputs.peak_source}};
}
}  // namespace

std::string training_text(std::span<const TrainingInputs> columns) {
  std::vector<Row> rows = google_rows();
  const std::vector<Row> further = further_rows(columns);
  std::string text;
  if (columns.size() == 1) {
    for (const Row& row : rows) text += fmt::format("{}: {}\n", row.label, row.text(columns[0]));
    text += "\n";
    size_t label_width = 0;
    for (const Row& row : further) label_width = std::max(label_width, row.label.size());
    for (const Row& row : further) text += fmt::format("{:<{}}  {}\n", row.label, label_width, row.text(columns[0]));
  } else {
    rows.insert(rows.end(), further.begin(), further.end());
    TextRow header{""};
    for (const TrainingInputs& inputs : columns) header.push_back(inputs.name);
    text += plain_table(header, fill(rows, columns));
  }
  return text + "\n" + kFormulas;
}

ordered_json training_json(std::span<const TrainingInputs> columns) {
  ordered_json all = ordered_json::array();
  for (const TrainingInputs& inputs : columns) all.push_back(to_json(inputs));
  return all;
}

std::string training_csv(std::span<const TrainingInputs> columns) {
  std::string text;
  for (const TrainingInputs& inputs : columns) {
    const ordered_json values = to_json(inputs);
    TextRow names;
    TextRow cells;
    for (const auto& [name, value] : values.items()) {
      names.push_back(name);
      cells.push_back(value.is_null() ? "" : (value.is_string() ? value.get<std::string>() : value.dump()));
    }
    if (text.empty()) text += csv_line(names);
    text += csv_line(cells);
  }
  return text;
}

}  // namespace megalith::observe
