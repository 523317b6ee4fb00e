#include "observe/tensorboard.h"

#include <fmt/format.h>
#include <unistd.h>

#include "core/clock.h"
#include "observe/host.h"
#include "observe/tfrecord.h"

namespace megalith::observe {

namespace {
// Field numbers of tensorflow's event.proto, summary.proto and tensor.proto.
namespace event_field {
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace summary_field {
constexpr uint32_t kValue = 1;
}
namespace value_field {
constexpr uint32_t kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
namespace metadata_field {
constexpr uint32_t kPluginData = 1;
}
namespace plugin_field {
constexpr uint32_t kName = 1;
}
namespace tensor_field {
constexpr uint32_t kDtype = 1, kShape = 2, kStringVal = 8;
constexpr int64_t kDtString = 7;
}  // namespace tensor_field
namespace shape_field {
constexpr uint32_t kDim = 2, kSize = 1;
}

std::filesystem::path file_name(const std::filesystem::path& directory) {
  return directory /
         fmt::format("events.out.tfevents.{}.{}.{}.0", static_cast<int64_t>(wall_seconds()), host_name(), ::getpid());
}

std::string event_record(int64_t step, uint32_t field, const std::string& content) {
  ProtoMessage event;
  event.real64(event_field::kWallTime, wall_seconds()).integer(event_field::kStep, step).bytes(field, content);
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
}  // namespace

TensorBoardSink::TensorBoardSink(const std::filesystem::path& directory, const std::string& config_text)
    : file_(std::make_unique<AsyncFile>(file_name(directory), AsyncFile::Content::binary)) {
  file_->push(event_record(0, event_field::kFileVersion, "brain.Event:2"));
  // TensorBoard renders text as Markdown.
  ProtoMessage summary;
  summary.message(summary_field::kValue, text_value("config/text_summary", "```yaml\n" + config_text + "\n```"));
  file_->push(event_record(0, event_field::kSummary, summary.text()));
}

void TensorBoardSink::on_metrics(const Metrics& metrics) {
  ProtoMessage summary;
  for (const auto& [name, value] : metrics.values) {
    const auto* real = std::get_if<double>(&value);
    const auto* whole = std::get_if<int64_t>(&value);
    if (real == nullptr && whole == nullptr) continue;
    const double number = real != nullptr ? *real : static_cast<double>(*whole);
    ProtoMessage scalar;
    scalar.bytes(value_field::kTag, name).real32(value_field::kSimpleValue, static_cast<float>(number));
    summary.message(summary_field::kValue, scalar);
  }
  if (!summary.text().empty()) file_->push(event_record(metrics.step, event_field::kSummary, summary.text()));
}

}  // namespace megalith::observe
