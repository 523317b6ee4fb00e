#include "parallel/schedule/transfers.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace megalith::parallel {

namespace {

constexpr int64_t kUnknown = -1;

int64_t time_for(const Action& action) {
  return action.kind == ActionKind::backward ? 2 : 1;
}

// What the action makes for others.
std::optional<Payload> product(const Action& action) {
  if (action.kind == ActionKind::forward) return Payload::activation;
  if (action.kind == ActionKind::backward_weight) return std::nullopt;
  return Payload::gradient;
}

// Runs the orders of all stages on the clock.
class Clock {
 public:
  explicit Clock(const std::vector<Schedule>& orders)
      : orders_(orders), stages_(static_cast<int64_t>(orders.size())), end_times_(orders.size()) {
    for (const Action& action : orders.front()) {
      numbers_ = std::max(numbers_, (action.chunk + 1) * stages_);
      micro_batches_ = std::max(micro_batches_, action.micro_batch + 1);
    }
    activation_times_.assign(static_cast<size_t>(numbers_ * micro_batches_), kUnknown);
    gradient_times_ = activation_times_;
  }

  std::vector<std::vector<int64_t>> end_times() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t stage = 0; stage < orders_.size(); ++stage) moved = run_until_input_lacks(stage) || moved;
    }
    for (size_t stage = 0; stage < orders_.size(); ++stage) {
      MEGALITH_CHECK(end_times_[stage].size() == orders_[stage].size(), "stage {} waits for ever at action {}", stage,
                     end_times_[stage].size());
    }
    return std::move(end_times_);
  }

 private:
  // By the chunk of the model, counted over all stages, that makes it.
  int64_t& time_of(Payload payload, int64_t number, int64_t micro_batch) {
    auto& times = payload == Payload::activation ? activation_times_ : gradient_times_;
    return times[static_cast<size_t>(number * micro_batches_ + micro_batch)];
  }

  // When the input of an action has been made; kUnknown: not yet.
  int64_t input_time(int64_t stage, const Action& action) {
    const auto payload = product(action);
    if (!payload) return 0;
    const int64_t number = action.chunk * stages_ + stage;
    const int64_t producer = *payload == Payload::activation ? number - 1 : number + 1;
    if (producer < 0 || producer >= numbers_) return 0;
    return time_of(*payload, producer, action.micro_batch);
  }

  bool run_until_input_lacks(size_t stage) {
    std::vector<int64_t>& ends = end_times_[stage];
    const size_t before = ends.size();
    while (ends.size() < orders_[stage].size()) {
      const Action& action = orders_[stage][ends.size()];
      const auto place = static_cast<int64_t>(stage);
      const int64_t input = input_time(place, action);
      if (input == kUnknown) break;
      const int64_t end = std::max(input, ends.empty() ? 0 : ends.back()) + time_for(action);
      ends.push_back(end);
      if (const auto payload = product(action))
        time_of(*payload, action.chunk * stages_ + place, action.micro_batch) = end;
    }
    return ends.size() > before;
  }

  const std::vector<Schedule>& orders_;
  int64_t stages_;
  int64_t numbers_ = 0;
  int64_t micro_batches_ = 0;
  std::vector<int64_t> activation_times_;
  std::vector<int64_t> gradient_times_;
  std::vector<std::vector<int64_t>> end_times_;
};

}  // namespace

StageSchedules::StageSchedules(std::vector<Schedule> orders)
    : orders_(std::move(orders)), stages_(static_cast<int64_t>(orders_.size())) {
  if (stages_ > 1) end_times_ = Clock(orders_).end_times();
}

std::vector<StageSchedules::Exchange> StageSchedules::exchanges_of(int64_t stage) const {
  int64_t chunks = 0;
  for (const Action& action : orders_.front()) chunks = std::max(chunks, action.chunk + 1);
  int64_t last = 0;
  // The stages before and after it, in a circle, are all that it works with.
  const std::set<int64_t> involved = {(stage + stages_ - 1) % stages_, stage, (stage + 1) % stages_};
  for (const int64_t from : involved) last = std::max(last, end_times_[static_cast<size_t>(from)].back());
  std::vector<Exchange> exchanges(static_cast<size_t>(last + 1));
  for (const int64_t from : involved) {
    const Schedule& order = orders_[static_cast<size_t>(from)];
    for (size_t i = 0; i < order.size(); ++i) {
      const Action& action = order[i];
      const auto payload = product(action);
      if (!payload) continue;
      const int64_t number = action.chunk * stages_ + from;
      const int64_t taker = *payload == Payload::activation ? number + 1 : number - 1;
      if (taker < 0 || taker >= chunks * stages_) continue;
      const int64_t to = taker % stages_;
      Exchange& exchange = exchanges[static_cast<size_t>(end_times_[static_cast<size_t>(from)][i])];
      if (from == stage) exchange.sends.push_back({*payload, to, action.chunk, action.micro_batch});
      if (to == stage) exchange.receives.push_back({*payload, from, taker / stages_, action.micro_batch});
    }
  }
  return exchanges;
}

Schedule StageSchedules::of_stage(int64_t stage) const {
  const Schedule& order = orders_[static_cast<size_t>(stage)];
  if (stages_ == 1) return order;
  const std::vector<int64_t>& ends = end_times_[static_cast<size_t>(stage)];
  std::vector<Exchange> exchanges = exchanges_of(stage);
  Schedule schedule;
  schedule.reserve(2 * order.size());
  size_t next = 0;
  const auto add_exchanges_before = [&](size_t time) {
    for (; next < time; ++next) {
      Exchange& exchange = exchanges[next];
      if (exchange.sends.empty() && exchange.receives.empty()) continue;
      schedule.push_back({.kind = ActionKind::send_receive,
                          .sends = std::move(exchange.sends),
                          .receives = std::move(exchange.receives)});
    }
  };
  for (size_t i = 0; i < order.size(); ++i) {
    add_exchanges_before(static_cast<size_t>(ends[i]));
    schedule.push_back(order[i]);
  }
  add_exchanges_before(exchanges.size());
  return schedule;
}

std::vector<Schedule> StageSchedules::all() const {
  std::vector<Schedule> schedules;
  for (int64_t stage = 0; stage < stages_; ++stage) schedules.push_back(of_stage(stage));
  return schedules;
}

}  // namespace megalith::parallel
