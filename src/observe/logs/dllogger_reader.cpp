#include "observe/logs/dllogger_reader.h"

#include "core/metric_names.h"

namespace megalith::observe {

namespace {
constexpr std::string_view kPrefix = "DLLL";

// Of NeMo's config, and of Megalith's own, whose keys carry the section they stand in.
bool is_key(std::string_view key, std::string_view name) {
  return key.ends_with(name) && (key.size() == name.size() || key[key.size() - name.size() - 1] == '/');
}

void take_parameter(const JsonMember& member, DlloggerRecord& record) {
  if (is_key(member.key, "global_batch_size")) record.global_batch_size = whole_number_of(member);
  if (is_key(member.key, "encoder_seq_length")) record.sequence_length = whole_number_of(member);
  if (is_key(member.key, "fp8")) record.fp8 = member.text == "true";
}
}  // namespace

bool is_dllogger_line(std::string_view line) {
  return line.starts_with(kPrefix);
}

std::optional<DlloggerRecord> read_dllogger_line(std::string_view line, std::vector<JsonMember>& scratch) {
  if (!is_dllogger_line(line) || !scan_json_object(line.substr(kPrefix.size()), scratch)) return std::nullopt;
  DlloggerRecord record;
  for (const JsonMember& member : scratch) {
    if (member.parent.empty() && member.key == "step") {
      record.is_parameters = member.text == "PARAMETER";
      record.step = whole_number_of(member);
    }
    if (member.parent == "data" && member.key == metric::kMeanStepTime) record.step_seconds = number_of(member);
  }
  if (!record.is_parameters) return record;
  for (const JsonMember& member : scratch) {
    if (member.parent == "data") take_parameter(member, record);
  }
  return record;
}

}  // namespace megalith::observe
