#include "observe/sinks/tensorboard/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/metric_names.h"
#include "core/process/host.h"
#include "observe/sinks/megatron_line.h"
#include "observe/sinks/tensorboard/tensorboard_fields.h"
#include "observe/sinks/tensorboard/tensorboard_rewind.h"
#include "observe/sinks/tensorboard/tfrecord.h"

namespace megalith::observe {

namespace {
std::filesystem::path new_file(const TensorBoardOptions& options) {
  rewind_tensorboard(options.directory, options.first_step, options.consumed_samples);
  return options.directory /
         fmt::format("events.out.tfevents.{}.{}.{}.0", static_cast<int64_t>(wall_seconds()), host_name(), ::getpid());
}

std::string event_record(double wall, int64_t step, uint32_t field, const std::string& content) {
  ProtoMessage event;
  event.real64(event_field::kWallTime, wall).integer(event_field::kStep, step).bytes(field, content);
  return tf_record(event.text());
}

ProtoMessage text_value(const std::string& tag, const std::string& text) {
  ProtoMessage dim, shape, tensor, plugin, metadata, value;
  dim.integer(shape_field::kSize, 1);
  shape.message(shape_field::kDim, dim);
  tensor.integer(tensor_field::kDtype, tensor_field::kDtString)
      .message(tensor_field::kShape, shape)
      .bytes(tensor_field::kStringVal, text);
  plugin.bytes(plugin_field::kName, "text");
  metadata.message(metadata_field::kPluginData, plugin);
  value.bytes(value_field::kTag, tag).message(value_field::kTensor, tensor).message(value_field::kMetadata, metadata);
  return value;
}

Fields tagged(const Fields& ours, bool vs_samples) {
  Fields theirs;
  for (const MegatronTag& tag : kMegatronTags) {
    const std::optional<double> number = number_in(ours, tag.ours);
    if (!number || (vs_samples && !tag.also_vs_samples)) continue;
    theirs.emplace_back(std::string(tag.tag) + std::string(vs_samples ? kVsSamples : ""), *number);
  }
  return theirs;
}
}  // namespace

TensorBoardSink::TensorBoardSink(const TensorBoardOptions& options)
    : global_batch_size_(options.global_batch_size),
      ranks_(options.ranks),
      consumed_samples_(options.consumed_samples),
      file_(std::make_unique<AsyncFile>(new_file(options), AsyncFile::Content::binary)) {
  file_->push(event_record(wall_seconds(), 0, event_field::kFileVersion, "brain.Event:2"));
  // TensorBoard renders text as Markdown.
  ProtoMessage summary;
  summary.message(summary_field::kValue,
                  text_value(std::string(kConfigTag), "```yaml\n" + options.config_text + "\n```"));
  file_->push(event_record(wall_seconds(), 0, event_field::kSummary, summary.text()));
}

void TensorBoardSink::on_metrics(const Metrics& metrics) {
  if (const auto samples = number_in(metrics.values, metric::kConsumedSamples)) {
    consumed_samples_ = static_cast<int64_t>(*samples);
  }
  const Fields megatron = megatron_scalars(metrics);
  write(metrics.when, metrics.step, metrics.values);
  write(metrics.when, metrics.step + 1, tagged(megatron, false));
  write(metrics.when, consumed_samples_, tagged(megatron, true));
}

// With what Megatron logs beside the numbers of a step.
Fields TensorBoardSink::megatron_scalars(const Metrics& metrics) const {
  Fields scalars = metrics.values;
  if (metrics.kind == metric::kTrain) {
    scalars.emplace_back(
        "batch_size",
        static_cast<int64_t>(
            number_in(metrics.values, metric::kGlobalBatchSize).value_or(static_cast<double>(global_batch_size_))));
    scalars.emplace_back("ranks", ranks_);
  }
  if (const auto loss = number_in(metrics.values, metric::kValidationLoss)) {
    scalars.emplace_back("val_perplexity", megatron_perplexity(*loss));
  }
  return scalars;
}

void TensorBoardSink::write(const Moment& when, int64_t step, const Fields& scalars) {
  ProtoMessage summary;
  for (const auto& [name, value] : scalars) {
    const std::optional<double> number = number_of(value);
    if (!number) continue;
    ProtoMessage scalar;
    scalar.bytes(value_field::kTag, name).real32(value_field::kSimpleValue, static_cast<float>(*number));
    summary.message(summary_field::kValue, scalar);
  }
  if (!summary.text().empty()) {
    file_->push(event_record(when.wall, step, event_field::kSummary, summary.text()));
  }
}

}  // namespace megalith::observe
