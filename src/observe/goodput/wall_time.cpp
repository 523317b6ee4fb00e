#include "observe/goodput/wall_time.h"

#include <algorithm>

#include "core/event_names.h"
#include "observe/goodput/attempts.h"
#include "observe/goodput/timeline.h"

namespace megalith::observe {

namespace {
constexpr double kMicros = 1e6;
constexpr int64_t kSlices = 2000;
// Microseconds between two activities that belong to the second one: a log takes as long to write a line.
constexpr int64_t kRounding = 1000;

TimeUse use_of(RunEventKind span) {
  if (span == RunEventKind::load) return TimeUse::checkpoint_load;
  return span == RunEventKind::save ? TimeUse::checkpoint_save : TimeUse::validation;
}

double usual_seconds(const Pace& pace, RunEventKind span) {
  if (span == RunEventKind::load) return pace.load;
  return span == RunEventKind::save ? pace.save : pace.validation;
}

class Explainer {
 public:
  Explainer(const RunEvents& log, std::optional<double> reference)
      : log_(log),
        attempts_(split_attempts(log)),
        pace_(pace_of(log, attempts_)),
        reference_(reference.value_or(pace_.step)),
        end_(log.events.back().micros),
        timeline_(log.events.front().micros, (end_ - log.events.front().micros) / kSlices),
        kept_(timeline_.mark()) {}

  WallTime explain() {
    for (size_t i = 0; i < attempts_.size(); ++i) {
      const int64_t next = i + 1 < attempts_.size() ? attempts_[i + 1].began : end_;
      if (attempts_[i].worked) {
        explain_work(attempts_[i], i == 0);
        explain_end(attempts_[i], next, i + 1 == attempts_.size());
      } else {
        // It brought nothing: one long restart, or at the first a long start.
        const TimeUse use = kept_steps_ == 0 && !incident_ ? TimeUse::start_up : TimeUse::restart;
        explain_recoveries(use, next);
        timeline_.add(use, next);
      }
    }
    if (incident_) close_incident(-1);
    WallTime wall = std::move(timeline_).finish();
    wall.incidents = std::move(incidents_);
    wall.kept_steps = kept_steps_;
    wall.reference_step_time = reference_;
    return wall;
  }

 private:
  void explain_work(const Attempt& attempt, bool is_first) {
    timeline_.add(is_first ? TimeUse::start_up : TimeUse::restart, attempt.all_started);
    ready_ = false;
    loses_ = false;
    if (attempt.loaded_step >= 0) last_step_ = attempt.loaded_step;
    for_each_activity(log_, attempt, [&](const Activity& activity) {
      if (activity.begin > timeline_.now() + kRounding)
        timeline_.add(ready_ ? TimeUse::unknown : TimeUse::start_up, activity.begin);
      if (activity.kind == RunEventKind::train_step) {
        if (!ready_) warm_up(attempt, activity);
        explain_steps(attempt, activity);
      } else if (activity.kind == RunEventKind::loaded) {
        timeline_.add(TimeUse::start_up, activity.end);
      } else {
        timeline_.add(use_of(activity.kind), activity.end, activity.step);
      }
      if (ready_ && !loses_) kept_ = timeline_.mark();
    });
  }

  void warm_up(const Attempt& attempt, const Activity& activity) {
    const double usual = pace_.step * static_cast<double>(activity.steps) * kMicros;
    const double longer = static_cast<double>(activity.end - activity.begin) - usual;
    if (activity.steps > 0 && longer > 0.0) timeline_.add_for(TimeUse::start_up, longer, activity.end);
    become_ready(attempt);
  }

  void become_ready(const Attempt& attempt) {
    ready_ = true;
    if (incident_) close_incident(attempt.loaded_step);
    kept_ = timeline_.mark();
  }

  void explain_steps(const Attempt& attempt, const Activity& activity) {
    if (activity.steps == 0) {
      timeline_.add(TimeUse::unknown, activity.end);
      return;
    }
    const int64_t kept = std::clamp<int64_t>(attempt.kept_until - activity.step, 0, activity.steps);
    const double share = static_cast<double>(kept) / static_cast<double>(activity.steps);
    const auto micros = static_cast<double>(std::max<int64_t>(0, activity.end - timeline_.now())) * share;
    const int64_t kept_end = timeline_.now() + static_cast<int64_t>(micros);
    const double productive = std::min(micros, static_cast<double>(kept) * reference_ * kMicros);
    timeline_.add_for(TimeUse::productive, productive, kept_end, activity.step);
    timeline_.add_for(TimeUse::data_wait, activity.data_wait * share * kMicros, kept_end, activity.step);
    timeline_.add(TimeUse::slowdown, kept_end, activity.step);
    if (kept < activity.steps) {
      if (!loses_) kept_ = timeline_.mark();
      loses_ = true;
      timeline_.add(TimeUse::wasted_steps, activity.end, activity.step + kept);
    }
    kept_steps_ += kept;
    last_step_ = activity.step + activity.steps;
  }

  // From the attempt's last sign of life to the next start.
  void explain_end(const Attempt& attempt, int64_t next, bool is_last) {
    if (is_last && !attempt.ending) {
      timeline_.add(TimeUse::unknown, next);
      return;
    }
    const bool by_user = attempt.ending && attempt.ending->kind == RunEventKind::stopped;
    const bool planned = attempt.ending && (attempt.ending->planned || by_user);
    const bool stopped_at_once = planned && attempt.logs_steps;
    const Recovery* const recovery = next_recovery(attempt.began, next);
    const int64_t ended = attempt.ending ? attempt.ending->micros : next;
    const int64_t noticed = recovery == nullptr ? ended : recovery->noticed;
    if (!stopped_at_once) explain_in_flight(attempt, noticed);
    if (!incident_ && !(planned && is_last)) open_incident(attempt, planned, recovery);
    if (planned && is_last && log_.reasons[attempt.ending->reason].empty() && !by_user) {
      // All was done: nobody stopped it.
      timeline_.add(next - timeline_.now() <= kRounding ? timeline_.last_use() : TimeUse::unknown, next);
      return;
    }
    if (planned) {
      timeline_.add(TimeUse::planned_stop, next);
      return;
    }
    if (attempt.ending || recovery != nullptr) timeline_.add(TimeUse::detection, noticed);
    explain_recoveries(TimeUse::restart, next);
    timeline_.add(TimeUse::restart, next);
  }

  // The first that was noticed in this time and is not explained yet.
  const Recovery* next_recovery(int64_t from, int64_t until) {
    const std::vector<Recovery>& all = log_.recoveries;
    while (recovery_ < all.size() && all[recovery_].noticed < from) ++recovery_;
    return recovery_ < all.size() && all[recovery_].noticed <= until ? &all[recovery_] : nullptr;
  }

  // What a supervisor did before the next start; between two recoveries it started ranks in vain.
  void explain_recoveries(TimeUse between, int64_t until) {
    while (const Recovery* const recovery = next_recovery(0, until)) {
      timeline_.add(between, recovery->noticed);
      timeline_.add(TimeUse::decision, std::min(recovery->decided, until));
      timeline_.add(TimeUse::teardown, std::min(recovery->stopped, until));
      timeline_.add(TimeUse::node_check, std::min(recovery->checked, until));
      timeline_.add(TimeUse::waiting, std::min(recovery->placed, until));
      ++recovery_;
    }
  }

  // The log does not tell when a fault struck. What was in flight is taken to have gone on for as long as it usually
  // does, since it would have been told by then.
  void explain_in_flight(const Attempt& attempt, int64_t noticed) {
    if (attempt.in_flight) {
      const RunEventKind span = attempt.in_flight->kind;
      timeline_.add_for(use_of(span), usual_seconds(pace_, span) * kMicros, noticed, attempt.in_flight->step);
      return;
    }
    if (!ready_) {
      timeline_.add_for(TimeUse::start_up, pace_.warm_up * kMicros, noticed);
      become_ready(attempt);
    }
    timeline_.add_for(TimeUse::wasted_steps, pace_.stretch * kMicros, noticed, last_step_);
  }

  void open_incident(const Attempt& attempt, bool planned, const Recovery* recovery) {
    std::string reason = "the log does not tell its end";
    if (recovery != nullptr) {
      reason = log_.reasons[recovery->reason];
    } else if (attempt.ending) {
      reason = log_.reasons[attempt.ending->reason];
      const bool by_user = attempt.ending->kind == RunEventKind::stopped;
      if (reason.empty()) reason = by_user ? event::kUserTerminated : (planned ? "complete" : event::kJobTerminated);
    }
    incident_ = Incident{.begin = kept_.time, .reason = std::move(reason), .last_step = last_step_};
    incident_begin_ = kept_;
  }

  void close_incident(int64_t resumed_step) {
    const Timeline::Mark now = timeline_.mark();
    incident_->end = now.time;
    incident_->resumed_step = resumed_step;
    for (size_t use = 0; use < kTimeUses; ++use) {
      incident_->seconds[use] = static_cast<double>(now.totals[use] - incident_begin_.totals[use]) / kMicros;
    }
    incidents_.push_back(std::move(*incident_));
    incident_.reset();
  }

  const RunEvents& log_;
  std::vector<Attempt> attempts_;
  Pace pace_;
  double reference_;
  int64_t end_;
  Timeline timeline_;

  size_t recovery_ = 0;  // the next one
  bool ready_ = false;   // the attempt's steps run at their usual pace
  bool loses_ = false;   // the attempt's steps are lost from here on
  int64_t last_step_ = -1;
  int64_t kept_steps_ = 0;
  Timeline::Mark kept_;  // the last moment whose work was kept
  std::optional<Incident> incident_;
  Timeline::Mark incident_begin_;
  std::vector<Incident> incidents_;
};

struct UseName {
  std::string_view name;
  std::string_view label;
};
constexpr std::array<UseName, kTimeUses> kNames{{{"productive", "productive"},
                                                 {"slowdown", "slowdown"},
                                                 {"wasted_steps", "wasted steps"},
                                                 {"checkpoint_save", "checkpoint save"},
                                                 {"checkpoint_load", "checkpoint load"},
                                                 {"validation", "validation"},
                                                 {"detection", "detection"},
                                                 {"decision", "decision"},
                                                 {"teardown", "teardown"},
                                                 {"node_check", "node check"},
                                                 {"waiting", "waiting for nodes"},
                                                 {"restart", "restart"},
                                                 {"start_up", "start-up and warm-up"},
                                                 {"data_wait", "data wait"},
                                                 {"planned_stop", "planned stop"},
                                                 {"unknown", "unknown"}}};
}  // namespace

std::string_view name_of(TimeUse use) {
  return kNames[static_cast<size_t>(use)].name;
}

std::string_view label_of(TimeUse use) {
  return kNames[static_cast<size_t>(use)].label;
}

WallTime explain_wall_time(const RunEvents& log, std::optional<double> reference_step_time) {
  if (log.events.empty()) return {};
  return Explainer(log, reference_step_time).explain();
}

}  // namespace megalith::observe
