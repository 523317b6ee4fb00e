#include "plan/simulate.h"

#include <algorithm>
#include <optional>

#include "parallel/schedule/message_matching.h"

namespace megalith::plan {

using parallel::Action;
using parallel::ActionIndex;
using parallel::ActionKind;
using parallel::MessageMatching;
using parallel::Payload;
using parallel::Schedule;
using parallel::Transfer;

namespace {

constexpr double kUnknown = -1.0;

// What a compute needs that another stage or an earlier action of its own stage must have brought.
struct Needs {
  std::optional<size_t> transfer;  // index of the send_receive with its input
  std::optional<size_t> gather;
};

// Follows a stage's list once: what each compute needs, and how much is held.
class ListReader {
 public:
  ListReader(const Schedule& schedule, size_t stage, size_t stages) : schedule_(schedule), stage_(stage) {
    for (const Action& action : schedule) {
      chunks_ = std::max(chunks_, action.chunk + 1);
      micro_batches_ = std::max(micro_batches_, action.micro_batch + 1);
    }
    last_number_ = chunks_ * static_cast<int64_t>(stages) - 1;
    stages_ = static_cast<int64_t>(stages);
    const auto cells = static_cast<size_t>(chunks_ * micro_batches_);
    activations_.resize(cells);
    gradients_.resize(cells);
    went_forward_.resize(cells);
    gathers_.resize(static_cast<size_t>(chunks_));
    alive_.resize(static_cast<size_t>(chunks_));
    timeline_.chunk_alive.resize(static_cast<size_t>(chunks_));
  }

  void read() {
    needs_.resize(schedule_.size());
    for (size_t i = 0; i < schedule_.size(); ++i) {
      const Action& action = schedule_[i];
      if (action.kind == ActionKind::send_receive) note_received(action, i);
      if (action.kind == ActionKind::gather_weights) gathers_[static_cast<size_t>(action.chunk)] = i;
      if (!is_compute(action)) continue;
      needs_[i] = {.transfer = take_input(action), .gather = gathers_[static_cast<size_t>(action.chunk)]};
      count_alive(action);
    }
  }

  std::vector<Needs> needs() { return std::move(needs_); }
  StageTimeline timeline() { return std::move(timeline_); }

 private:
  using Arrivals = std::vector<std::optional<size_t>>;

  size_t cell(int64_t chunk, int64_t micro_batch) const {
    return static_cast<size_t>(chunk * micro_batches_ + micro_batch);
  }

  void note_received(const Action& action, size_t index) {
    for (const Transfer& transfer : action.receives) {
      Arrivals& arrivals = transfer.payload == Payload::activation ? activations_ : gradients_;
      arrivals[cell(transfer.chunk, transfer.micro_batch)] = index;
    }
  }

  std::optional<size_t> take_input(const Action& action) {
    const size_t here = cell(action.chunk, action.micro_batch);
    if (action.kind == ActionKind::forward) {
      went_forward_[here] = true;
      return number_of(action) == 0 ? std::nullopt : arrived(activations_, action);
    }
    MEGALITH_CHECK(went_forward_[here], "stage {}: backward before forward of chunk {}, micro batch {}", stage_,
                   action.chunk, action.micro_batch);
    if (action.kind == ActionKind::backward_weight || number_of(action) == last_number_) return std::nullopt;
    return arrived(gradients_, action);
  }

  std::optional<size_t> arrived(const Arrivals& arrivals, const Action& action) const {
    if (stages_ == 1) return std::nullopt;
    const std::optional<size_t> arrival = arrivals[cell(action.chunk, action.micro_batch)];
    MEGALITH_CHECK(arrival.has_value(), "stage {}: chunk {} of micro batch {} is computed before its input is received",
                   stage_, action.chunk, action.micro_batch);
    return arrival;
  }

  void count_alive(const Action& action) {
    const auto chunk = static_cast<size_t>(action.chunk);
    const int64_t change = action.kind == ActionKind::forward ? 1 : ends_backward(action) ? -1 : 0;
    alive_[chunk] += change;
    all_alive_ += change;
    timeline_.chunk_alive[chunk] = std::max(timeline_.chunk_alive[chunk], alive_[chunk]);
    timeline_.alive = std::max(timeline_.alive, all_alive_);
  }

  int64_t number_of(const Action& action) const { return action.chunk * stages_ + static_cast<int64_t>(stage_); }

  const Schedule& schedule_;
  size_t stage_;
  int64_t stages_ = 1;
  int64_t chunks_ = 1;
  int64_t micro_batches_ = 1;
  int64_t last_number_ = 0;
  Arrivals activations_;
  Arrivals gradients_;
  std::vector<bool> went_forward_;
  Arrivals gathers_;
  std::vector<int64_t> alive_;
  int64_t all_alive_ = 0;
  std::vector<Needs> needs_;
  StageTimeline timeline_;
};

// Actions of one kind on one stage, which run one after the other.
struct Lane {
  std::vector<size_t> actions;
  size_t next = 0;
  double end = 0.0;

  bool done() const { return next == actions.size(); }
  size_t current() const { return actions[next]; }
  bool has_passed(size_t action) const { return done() || current() > action; }
};

struct StageState {
  const Schedule* schedule = nullptr;
  std::vector<Needs> needs;
  StageTimeline timeline;
  Lane compute;
  Lane transfers;
  Lane collectives;            // gathers, releases, reductions
  std::vector<double> posted;  // when a send_receive was ready on this side

  bool done() const { return compute.done() && transfers.done() && collectives.done(); }
  double end_of(const std::optional<size_t>& action) const { return action ? timeline.spans[*action].end : 0.0; }
};

class Simulator {
 public:
  Simulator(const std::vector<Schedule>& schedules, const SimulationOptions& options)
      : matching_(schedules), options_(options) {
    for (size_t stage = 0; stage < schedules.size(); ++stage) stages_.push_back(prepare(schedules, stage));
  }

  Simulation run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t stage = 0; stage < stages_.size(); ++stage) {
        while (step_compute(stage) || step_transfers(stage) || step_collectives(stage)) moved = true;
      }
    }
    Simulation result;
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      StageState& state = stages_[stage];
      MEGALITH_CHECK(state.done(), "{}", describe_circle());
      result.duration = std::max({result.duration, state.compute.end, state.transfers.end, state.collectives.end});
    }
    for (StageState& state : stages_) result.stages.push_back(std::move(state.timeline));
    return result;
  }

 private:
  static StageState prepare(const std::vector<Schedule>& schedules, size_t stage) {
    const Schedule& schedule = schedules[stage];
    ListReader reader(schedule, stage, schedules.size());
    reader.read();
    StageState state{.schedule = &schedule, .needs = reader.needs(), .timeline = reader.timeline()};
    for (size_t i = 0; i < schedule.size(); ++i) {
      lane_of(state, schedule[i]).actions.push_back(i);
      state.timeline.spans.push_back({.action = i, .start = kUnknown, .end = kUnknown});
    }
    state.posted.assign(schedule.size(), kUnknown);
    return state;
  }

  static Lane& lane_of(StageState& state, const Action& action) {
    if (is_compute(action)) return state.compute;
    return action.kind == ActionKind::send_receive ? state.transfers : state.collectives;
  }

  double duration(size_t stage, size_t action) const {
    return options_.duration(static_cast<int64_t>(stage), (*stages_[stage].schedule)[action]);
  }

  void finish(size_t stage, Lane& lane, double start) {
    Span& span = stages_[stage].timeline.spans[lane.current()];
    span.start = start;
    span.end = start + duration(stage, lane.current());
    lane.end = span.end;
    ++lane.next;
  }

  bool step_compute(size_t stage) {
    StageState& state = stages_[stage];
    if (state.compute.done()) return false;
    const size_t action = state.compute.current();
    if (options_.transfers_block && !state.transfers.has_passed(action)) return false;
    const Needs& needs = state.needs[action];
    const double input = state.end_of(needs.transfer);
    const double weights = state.end_of(needs.gather);
    if (input == kUnknown || weights == kUnknown) return false;
    const double blocked = options_.transfers_block ? state.transfers.end : 0.0;
    finish(stage, state.compute, std::max({state.compute.end, input, weights, blocked}));
    state.timeline.busy += duration(stage, action);
    return true;
  }

  bool step_collectives(size_t stage) {
    StageState& state = stages_[stage];
    if (state.collectives.done() || !state.compute.has_passed(state.collectives.current())) return false;
    finish(stage, state.collectives, std::max(state.collectives.end, compute_end_before(stage, state.collectives)));
    return true;
  }

  bool step_transfers(size_t stage) {
    StageState& state = stages_[stage];
    if (state.transfers.done()) return false;
    const size_t action = state.transfers.current();
    const bool is_new = state.posted[action] == kUnknown;
    if (is_new) {
      if (!state.compute.has_passed(action)) return false;
      state.posted[action] = std::max(state.transfers.end, compute_end_before(stage, state.transfers));
    }
    double start = state.posted[action];
    for (const ActionIndex& partner : matching_.partners({stage, action})) {
      const double ready = stages_[partner.stage].posted[partner.action];
      if (ready == kUnknown) return is_new;
      start = std::max(start, ready);
    }
    finish(stage, state.transfers, start);
    return true;
  }

  // When the compute that stands before the lane's current action in the list is done.
  double compute_end_before(size_t stage, const Lane& lane) const {
    const StageState& state = stages_[stage];
    const std::vector<size_t>& computes = state.compute.actions;
    const auto after = std::lower_bound(computes.begin(), computes.end(), lane.current());
    return after == computes.begin() ? 0.0 : state.timeline.spans[*std::prev(after)].end;
  }

  std::string describe_circle() const {
    std::string text = "the stages wait for each other:";
    for (size_t stage = 0; stage < stages_.size(); ++stage) {
      const StageState& state = stages_[stage];
      if (state.done()) continue;
      const auto place = [](const Lane& lane) {
        return lane.done() ? std::string("end") : std::to_string(lane.current());
      };
      text += fmt::format(" stage {} at compute {}, transfer {};", stage, place(state.compute), place(state.transfers));
    }
    return text;
  }

  MessageMatching matching_;
  const SimulationOptions& options_;
  std::vector<StageState> stages_;
};

}  // namespace

double Simulation::bubble_fraction() const {
  double busy = 0.0;
  for (const StageTimeline& stage : stages) busy += stage.busy;
  return 1.0 - busy / (duration * static_cast<double>(stages.size()));
}

Simulation simulate(const std::vector<Schedule>& schedules, const SimulationOptions& options) {
  return Simulator(schedules, options).run();
}

}  // namespace megalith::plan
