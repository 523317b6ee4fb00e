#include "observe/goodput/attempts.h"

namespace megalith::observe {

namespace {
bool is_start(RunEventKind kind) {
  return kind == RunEventKind::scheduled || kind == RunEventKind::started;
}

bool is_end(RunEventKind kind) {
  return kind == RunEventKind::stopped || kind == RunEventKind::terminated;
}

bool is_work(RunEventKind kind) {
  return !is_start(kind) && !is_end(kind);
}

bool is_loading(RunEventKind kind) {
  return kind == RunEventKind::load || kind == RunEventKind::loaded;
}

// A start in the midst of work is one of a node whose clock is ahead, unless loading or an end comes next.
bool is_stray_start(const std::vector<RunEvent>& events, size_t at) {
  while (at < events.size() && is_start(events[at].kind)) ++at;
  return at < events.size() && is_work(events[at].kind) && !is_loading(events[at].kind);
}

std::vector<Attempt> cut(const std::vector<RunEvent>& events) {
  std::vector<Attempt> attempts;
  bool past_start = true;
  bool past_loading = false;
  for (size_t i = 0; i < events.size(); ++i) {
    const RunEventKind kind = events[i].kind;
    const bool starts = is_start(kind) && past_start && !is_stray_start(events, i);
    // Its start was not told.
    const bool loads_again = is_loading(kind) && past_loading;
    if (attempts.empty() || starts || loads_again) {
      attempts.push_back({.begin = i});
      past_start = false;
      past_loading = false;
    }
    if (!is_start(kind)) past_start = true;
    if (is_work(kind) && !is_loading(kind)) past_loading = true;
    attempts.back().end = i + 1;
  }
  return attempts;
}

void describe(const std::vector<RunEvent>& events, Attempt& attempt) {
  attempt.began = events[attempt.begin].micros;
  attempt.all_started = attempt.began;
  attempt.last_sign = attempt.began;
  for (size_t i = attempt.begin; i < attempt.end; ++i) {
    const RunEvent& event = events[i];
    if (is_end(event.kind)) {
      if (!attempt.ending) attempt.ending = event;
      continue;
    }
    if (!attempt.worked) {
      attempt.last_sign = event.micros;
      if (is_start(event.kind)) attempt.all_started = event.micros;
    }
    if (is_start(event.kind)) continue;
    // Nodes end one by one; as long as work goes on it was not the end.
    attempt.ending.reset();
    attempt.worked = true;
    attempt.last_sign = event.micros;
    attempt.in_flight = event.open ? std::optional(event) : std::nullopt;
    if (event.kind == RunEventKind::train_step) attempt.logs_steps = true;
    if (event.kind == RunEventKind::loaded) attempt.loaded_step = event.step;
  }
}

double median(std::vector<float>& values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return static_cast<double>(*middle);
}

float seconds_of(const Activity& activity) {
  return static_cast<float>(activity.end - activity.begin) / 1e6F;
}

struct Samples {
  std::vector<float> step;
  std::vector<float> stretch;
  std::vector<float> load;
  std::vector<float> validation;
  std::vector<float> save;
  std::vector<Activity> first;  // of each attempt
};

void collect(const RunEvents& log, const Attempt& attempt, Samples& samples) {
  bool first = true;
  for_each_activity(log, attempt, [&](const Activity& activity) {
    if (activity.kind == RunEventKind::load) samples.load.push_back(seconds_of(activity));
    if (activity.kind == RunEventKind::validation) samples.validation.push_back(seconds_of(activity));
    if (activity.kind == RunEventKind::save) samples.save.push_back(seconds_of(activity));
    if (activity.kind != RunEventKind::train_step || activity.steps == 0) return;
    if (first) {
      samples.first.push_back(activity);
      first = false;
      return;
    }
    samples.step.push_back(seconds_of(activity) / static_cast<float>(activity.steps));
    samples.stretch.push_back(seconds_of(activity));
  });
}
}  // namespace

std::vector<Attempt> split_attempts(const RunEvents& log) {
  std::vector<Attempt> attempts = cut(log.events);
  for (Attempt& attempt : attempts) describe(log.events, attempt);
  int64_t lowest = std::numeric_limits<int64_t>::max();
  for (size_t i = attempts.size(); i-- > 0;) {
    attempts[i].kept_until = lowest;
    if (attempts[i].loaded_step >= 0) lowest = std::min(lowest, attempts[i].loaded_step);
  }
  return attempts;
}

Pace pace_of(const RunEvents& log, const std::vector<Attempt>& attempts) {
  Samples samples;
  for (const Attempt& attempt : attempts) collect(log, attempt, samples);
  const bool only_first = samples.step.empty();
  for (const Activity& activity : samples.first) {
    if (!only_first) break;
    samples.step.push_back(seconds_of(activity) / static_cast<float>(activity.steps));
    samples.stretch.push_back(seconds_of(activity));
  }
  Pace pace{.step = median(samples.step),
            .stretch = median(samples.stretch),
            .load = median(samples.load),
            .validation = median(samples.validation),
            .save = median(samples.save)};
  std::vector<float> warm_up;
  for (const Activity& activity : samples.first) {
    const double usual = pace.step * static_cast<double>(activity.steps);
    warm_up.push_back(std::max(0.0F, seconds_of(activity) - static_cast<float>(usual)));
  }
  pace.warm_up = median(warm_up);
  return pace;
}

}  // namespace megalith::observe
