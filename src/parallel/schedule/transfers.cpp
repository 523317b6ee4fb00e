#include "parallel/schedule/transfers.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace megalith::parallel {

namespace {

constexpr int64_t kUnknown = -1;

// A chunk of the model, counted over all stages, and a micro batch.
struct Cell {
  int64_t number = 0;
  int64_t micro_batch = 0;
};

int64_t time_for(const Action& action) {
  return action.kind == ActionKind::backward ? 2 : 1;
}

class TransferOrder {
 public:
  explicit TransferOrder(const std::vector<Schedule>& orders)
      : orders_(orders), stages_(static_cast<int64_t>(orders.size())) {
    for (const Action& action : orders.front()) {
      numbers_ = std::max(numbers_, (action.chunk + 1) * stages_);
      micro_batches_ = std::max(micro_batches_, action.micro_batch + 1);
    }
    activation_times_.assign(static_cast<size_t>(numbers_ * micro_batches_), kUnknown);
    gradient_times_ = activation_times_;
  }

  std::vector<Schedule> make() {
    find_end_times();
    collect_exchanges();
    std::vector<Schedule> schedules;
    for (size_t stage = 0; stage < orders_.size(); ++stage) schedules.push_back(merged(stage));
    return schedules;
  }

 private:
  Cell cell_of(int64_t stage, const Action& action) const {
    return {action.chunk * stages_ + stage, action.micro_batch};
  }
  int64_t& time_of(Payload payload, const Cell& made_by) {
    auto& times = payload == Payload::activation ? activation_times_ : gradient_times_;
    return times[static_cast<size_t>(made_by.number * micro_batches_ + made_by.micro_batch)];
  }

  // What the action makes for others.
  static std::optional<Payload> product(const Action& action) {
    if (action.kind == ActionKind::forward) return Payload::activation;
    if (action.kind == ActionKind::backward_weight) return std::nullopt;
    return Payload::gradient;
  }

  // The chunk to which the product of `number` goes, if there is one.
  std::optional<int64_t> consumer(Payload payload, int64_t number) const {
    const int64_t next = payload == Payload::activation ? number + 1 : number - 1;
    return next >= 0 && next < numbers_ ? std::optional(next) : std::nullopt;
  }

  // When the input of an action has been made; kUnknown: not yet.
  int64_t input_time(int64_t stage, const Action& action) {
    const auto payload = product(action);
    if (!payload) return 0;
    const Cell cell = cell_of(stage, action);
    const int64_t producer = *payload == Payload::activation ? cell.number - 1 : cell.number + 1;
    if (producer < 0 || producer >= numbers_) return 0;
    return time_of(*payload, {producer, cell.micro_batch});
  }

  void find_end_times() {
    end_times_.resize(orders_.size());
    bool moved = true;
    while (moved) {
      moved = false;
      for (size_t stage = 0; stage < orders_.size(); ++stage) moved = run_until_input_lacks(stage) || moved;
    }
    for (size_t stage = 0; stage < orders_.size(); ++stage) {
      MEGALITH_CHECK(end_times_[stage].size() == orders_[stage].size(), "stage {} waits for ever at action {}", stage,
                     end_times_[stage].size());
    }
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
      if (const auto payload = product(action)) time_of(*payload, cell_of(place, action)) = end;
    }
    return ends.size() > before;
  }

  void collect_exchanges() {
    int64_t last = 0;
    for (const std::vector<int64_t>& ends : end_times_) last = std::max(last, ends.empty() ? 0 : ends.back());
    exchanges_.assign(orders_.size(), std::vector<Exchange>(static_cast<size_t>(last + 1)));
    for (size_t stage = 0; stage < orders_.size(); ++stage) {
      for (size_t i = 0; i < orders_[stage].size(); ++i) collect(stage, orders_[stage][i], end_times_[stage][i]);
    }
  }

  void collect(size_t stage, const Action& action, int64_t time) {
    const auto payload = product(action);
    if (!payload) return;
    const auto from = static_cast<int64_t>(stage);
    const auto taker = consumer(*payload, cell_of(from, action).number);
    if (!taker) return;
    const int64_t to = *taker % stages_;
    const auto at = static_cast<size_t>(time);
    exchanges_[stage][at].sends.push_back({*payload, to, action.chunk, action.micro_batch});
    exchanges_[static_cast<size_t>(to)][at].receives.push_back({*payload, from, *taker / stages_, action.micro_batch});
  }

  // Takes the stage's exchanges.
  Schedule merged(size_t stage) {
    const Schedule& order = orders_[stage];
    std::vector<Exchange>& exchanges = exchanges_[stage];
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
      add_exchanges_before(static_cast<size_t>(end_times_[stage][i]));
      schedule.push_back(order[i]);
    }
    add_exchanges_before(exchanges.size());
    return schedule;
  }

  struct Exchange {
    std::vector<Transfer> sends;
    std::vector<Transfer> receives;
  };

  const std::vector<Schedule>& orders_;
  int64_t stages_;
  int64_t numbers_ = 0;
  int64_t micro_batches_ = 0;
  std::vector<int64_t> activation_times_;  // by the cell that makes them
  std::vector<int64_t> gradient_times_;
  std::vector<std::vector<int64_t>> end_times_;
  std::vector<std::vector<Exchange>> exchanges_;  // of each stage, by time; mostly empty
};

}  // namespace

std::vector<Schedule> with_transfers(const std::vector<Schedule>& orders) {
  return TransferOrder(orders).make();
}

}  // namespace megalith::parallel
