#include "observe/sinks/tensorboard/tensorboard_rewind.h"

#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>

#include "observe/sinks/log_files.h"
#include "observe/sinks/tensorboard/tensorboard_fields.h"
#include "observe/sinks/tensorboard/tfrecord.h"

namespace megalith::observe {

namespace fs = std::filesystem;

namespace {
struct EventHead {
  int64_t step = 0;
  std::string_view tag;  // of its first value
};

EventHead head_of(std::string_view record) {
  EventHead head;
  ProtoReader event(record);
  while (event.next()) {
    if (event.field() == event_field::kStep) head.step = static_cast<int64_t>(event.number());
    if (event.field() != event_field::kSummary) continue;
    ProtoReader summary(event.bytes());
    if (!summary.next()) continue;
    ProtoReader value(summary.bytes());
    while (value.next()) {
      if (value.field() == value_field::kTag) head.tag = value.bytes();
    }
  }
  return head;
}

bool is_of_later_step(const EventHead& head, int64_t steps, int64_t samples) {
  if (head.tag.empty() || head.tag == kConfigTag) return false;
  if (head.tag.ends_with(kVsSamples)) return head.step > samples;
  return is_megatron_tag(head.tag) ? head.step > steps : head.step >= steps;
}

// Where the file is to end: before the first record of a later step, or one that a crash has torn. Nothing where all of
// it may stay, or it is not ours.
std::optional<int64_t> end_of_kept(const fs::path& path, int64_t steps, int64_t samples) {
  std::ifstream file(path, std::ios::binary);
  std::string record;
  int64_t begin = 0;
  for (int64_t count = 0; read_tf_record(file, record); ++count) {
    const EventHead head = head_of(record);
    // The config follows the version.
    if (count == 1 && head.tag != kConfigTag) return std::nullopt;
    if (is_of_later_step(head, steps, samples)) return begin;
    begin = file.tellg();
  }
  if (begin == 0 || begin == static_cast<int64_t>(fs::file_size(path))) return std::nullopt;
  return begin;
}
}  // namespace

void rewind_tensorboard(const fs::path& directory, int64_t steps, int64_t samples) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.") || !entry.is_regular_file()) continue;
    const auto end = end_of_kept(entry.path(), steps, samples);
    if (end) fs::resize_file(entry.path(), static_cast<uintmax_t>(*end), error);
    if (error)
      log_warning(fmt::format("{} keeps steps that are done again: {}", entry.path().string(), error.message()));
  }
}

}  // namespace megalith::observe
