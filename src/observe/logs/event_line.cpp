#include "observe/logs/event_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/hash/digest.h"
#include "observe/logs/timestamp.h"

namespace megalith::observe {

namespace {
// The end of a line: ,"crc":"0123456789abcdef"}
constexpr std::string_view kCrcKey = ",\"crc\":\"";
constexpr std::string_view kEnd = "\"}";
constexpr size_t kTail = kCrcKey.size() + Digest::kHexLength + kEnd.size();
constexpr double kLongestUptime = 1e9;  // seconds; what claims more is no measurement

bool crc_fits(std::string_view line) {
  const size_t covered = line.size() - kTail;
  return line.substr(covered + kCrcKey.size(), Digest::kHexLength) == digest_of(line.substr(0, covered));
}

constexpr std::array<std::string_view, 14> kKeys = {"time", "mono", "boot",     "run",   "generation",
                                                    "node", "rank", "seq",      "event", "phase",
                                                    "id",   "step", "duration", "reason"};

// In the order of kKeys; null where one is missing. The last one of a name counts, as with every reader of JSON.
std::array<const JsonMember*, kKeys.size()> find_members(const std::vector<JsonMember>& members) {
  std::array<const JsonMember*, kKeys.size()> found{};
  for (const JsonMember& member : members) {
    if (!member.parent.empty()) continue;
    const auto* const key = std::find(kKeys.begin(), kKeys.end(), member.key);
    if (key != kKeys.end()) found[static_cast<size_t>(key - kKeys.begin())] = &member;
  }
  return found;
}

Phase phase_of(std::string_view text) {
  if (text == "begin") return Phase::begin;
  return text == "end" ? Phase::end : Phase::instant;
}
}  // namespace

const JsonMember* EventLine::field(std::string_view name) const {
  const auto found = std::find_if(members.rbegin(), members.rend(),
                                  [&](const JsonMember& m) { return m.key == name && m.parent == kEventFields; });
  return found == members.rend() ? nullptr : &*found;
}

std::optional<double> EventLine::number(std::string_view name) const {
  const JsonMember* const member = field(name);
  return member == nullptr ? std::nullopt : number_of(*member);
}

std::optional<EventLine> parse_event_line(std::string_view line, std::vector<JsonMember>& scratch) {
  if (!has_crc(line) || !crc_fits(line) || !scan_json_object(line, scratch)) return std::nullopt;
  const auto found = find_members(scratch);
  if (std::find(found.begin(), found.end(), nullptr) != found.end()) return std::nullopt;
  const auto& [time, mono, boot, run, generation, node, rank, seq, event, phase, id, step, duration, reason] = found;
  const std::optional<int64_t> wall = parse_timestamp(time->text);
  const std::optional<double> monotonic = number_of(*mono);
  const std::optional<double> seconds = number_of(*duration);
  const std::optional<int64_t> starts = whole_number_of(*generation);
  const std::optional<int64_t> writer = whole_number_of(*rank);
  const std::optional<int64_t> sequence = whole_number_of(*seq);
  const std::optional<int64_t> span = whole_number_of(*id);
  const std::optional<int64_t> steps = whole_number_of(*step);
  const bool whole = wall && monotonic && seconds && starts && writer && sequence && span && steps;
  if (!whole || !(std::abs(*monotonic) < kLongestUptime) || *steps < -1) return std::nullopt;
  return EventLine{.wall = *wall,
                   .monotonic = *monotonic,
                   .boot = boot->text,
                   .run = *run,
                   .generation = *starts,
                   .node = *node,
                   .rank = *writer,
                   .sequence = *sequence,
                   .event = event->text,
                   .phase = phase_of(phase->text),
                   .id = *span,
                   .step = *steps,
                   .duration = std::isfinite(*seconds) ? *seconds : 0.0,
                   .reason = *reason,
                   .members = scratch};
}

bool has_crc(std::string_view line) {
  return line.size() > kTail && line.substr(line.size() - kTail).starts_with(kCrcKey) && line.ends_with(kEnd);
}

std::string with_crc(std::string_view object) {
  return fmt::format("{}{}{}{}", object, kCrcKey, digest_of(object), kEnd);
}

}  // namespace megalith::observe
