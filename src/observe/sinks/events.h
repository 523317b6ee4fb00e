#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/telemetry.h"
#include "observe/sinks/async_file.h"
#include "observe/sinks/event_text.h"

namespace megalith::observe {

// events.jsonl, the log from which a run's story is told: append-only, one writer per process, one JSON object per
// line:
//
//   {"time":"2026-01-31T12:34:56.789012Z","mono":81.25,"boot":"<boot
//   id>","run":"...","generation":1,"node":"...","rank":0,
//    "seq":7,"event":"step","phase":"begin|end|instant","id":3,"step":4,"duration":0.25,"reason":"","fields":{...},
//    "crc":"0123456789abcdef"}
//
// `crc` is always the last field. It is the XXH3-64, as 16 hexadecimal digits, of the bytes of the line from its first
// brace up to but not including `,"crc":`. A reader takes a line whose crc fits and reports the others: the last line
// of a process that was killed may be torn, and the next process starts on a new line. `mono` orders lines of one
// `boot`; `time` may step. `seq` counts what came to this file, so a gap is a loss; losses are also told by an event
// `events_lost`, those before the file included. `step` is -1 where none applies. Numbers of a step come as event
// `metrics` with a field `kind`; a number that is not finite is the string "nan", "inf" or "-inf".
class EventsSink : public Sink {
 public:
  EventsSink(const std::filesystem::path& path, EventOrigin origin, size_t capacity = AsyncFile::kCapacity);
  ~EventsSink() override;

  void on_event(const Event& event) override;
  void on_metrics(const Metrics& metrics) override;
  void flush() override;

  int64_t lost() const { return file_.lost(); }

 private:
  std::string line_of(const Event& event);
  void report_losses(const Moment& when);

  EventOrigin origin_;
  std::string boot_;
  int64_t sequence_ = 0;
  int64_t lost_reported_ = 0;
  AsyncFile file_;
};

}  // namespace megalith::observe
