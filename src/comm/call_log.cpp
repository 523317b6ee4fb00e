#include "comm/call_log.h"

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"

namespace megalith::comm {

int64_t CallLog::asked(Operation operation, int64_t sequence, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int64_t ticket = count_++;
  entry(ticket) = {.operation = operation, .sequence = sequence, .bytes = bytes, .asked = monotonic_seconds()};
  return ticket;
}

void CallLog::started(int64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (ticket >= count_ - kKept) entry(ticket).started = monotonic_seconds();
}

void CallLog::finished(int64_t ticket) {
  const std::lock_guard lock(mutex_);
  if (ticket >= count_ - kKept) entry(ticket).finished = monotonic_seconds();
}

namespace {
std::string state_of(const CallLog::Entry& entry) {
  if (entry.started == 0.0) return "waiting for its turn";
  if (entry.finished == 0.0) return fmt::format("running for {:.3f} s", monotonic_seconds() - entry.started);
  return fmt::format("done in {:.3f} s", entry.finished - entry.started);
}
}  // namespace

std::string CallLog::describe() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (int64_t ticket = std::max<int64_t>(0, count_ - kKept); ticket < count_; ++ticket) {
    const Entry& entry = entries_[static_cast<size_t>(ticket % kKept)];
    text += fmt::format("{}{} #{}, {} bytes, {}", text.empty() ? "" : "; ", name_of(entry.operation), entry.sequence,
                        entry.bytes, state_of(entry));
  }
  return text;
}

}  // namespace megalith::comm
