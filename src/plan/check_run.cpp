#include "plan/check_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/metric_names.h"
#include "core/words.h"
#include "observe/draw/text_table.h"

namespace megalith::plan {

namespace {

// The first steps of a run warm up.
constexpr size_t kWarmUp = 5;

std::optional<double> settled(const observe::Curve& curve) {
  std::vector<observe::Point> points = curve.points();
  if (points.size() > 2 * kWarmUp) points.erase(points.begin(), points.begin() + kWarmUp);
  const std::vector<double> values = observe::sorted_values(points);
  return values.empty() ? std::nullopt : std::optional(observe::quantile(values, 0.5));
}

std::optional<double> stall_of(const observe::Curve& curve) {
  std::vector<double> stalls;
  for (const observe::Point& point : curve.points()) {
    if (point.y > 0) stalls.push_back(point.y);
  }
  std::sort(stalls.begin(), stalls.end());
  return stalls.empty() ? std::nullopt : std::optional(observe::quantile(stalls, 0.5));
}

std::string difference(double predicted, double measured) {
  return measured > 0 ? fmt::format("{:+.1f}", 100 * (predicted / measured - 1)) : "";
}

double backward_seconds(const PlannedLayout& layout) {
  const BlockTimes& blocks = layout.times.blocks;
  const double of_stage = static_cast<double>(layout.features.model.layers) * blocks.layer.backward.total() +
                          blocks.head.backward.total() + blocks.embedding.backward.total();
  return of_stage / static_cast<double>(layout.features.pipeline) *
         static_cast<double>(layout.features.micro_batches());
}

void add_memory(const MemoryTable& memory, const observe::RunHistory& run, std::vector<observe::TextRow>& rows) {
  for (const MemoryRow& row : memory.rows) {
    const auto told = run.memory.find(row.arena);
    if (row.bytes == 0 || told == run.memory.end()) continue;
    rows.push_back({row.arena, bytes_in_words(static_cast<double>(row.bytes)), bytes_in_words(told->second),
                    difference(static_cast<double>(row.bytes), told->second)});
  }
}

std::string table_of(const std::vector<observe::TextRow>& rows) {
  return observe::plain_table({"part", "predicted", "measured", "off by %"}, rows);
}

}  // namespace

std::string compare_memory(const MemoryTable& memory, const observe::RunHistory& run) {
  std::vector<observe::TextRow> rows;
  add_memory(memory, run, rows);
  if (rows.empty()) user_error("the run's logs do not say how much memory it took: check one with events.jsonl");
  return table_of(rows);
}

std::string compare_with_run(const PlannedLayout& predicted, double copy_s, const MemoryTable& memory,
                             const observe::RunHistory& run) {
  const std::optional<double> step = settled(run.curve(metric::kStepTime));
  if (!step) user_error("the run's logs have no step times: check one that trained some steps with events.jsonl");
  std::vector<observe::TextRow> rows;
  const auto add_seconds = [&](const char* name, double seconds, const std::optional<double>& measured) {
    rows.push_back({name, fmt::format("{:.4g} s", seconds),
                    measured ? fmt::format("{:.4g} s", *measured) : "not logged",
                    measured ? difference(seconds, *measured) : ""});
  };
  const StepParts& p = predicted.parts;
  add_seconds("step", predicted.seconds(), step);
  add_seconds("backward", backward_seconds(predicted), settled(run.curve(metric::kBackwardTime)));
  add_seconds("exposed communication", p.tensor + p.context + p.messages + p.data + p.bubble + p.imbalance,
              settled(run.curve(metric::kCommunicationExposed)));
  add_seconds("stall of a checkpoint", copy_s, stall_of(run.curve(metric::kCheckpointStall)));
  add_memory(memory, run, rows);
  return table_of(rows);
}

}  // namespace megalith::plan
