#include "data/order/blend_order.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace megalith::data {

namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kLanes = 8;

struct TopTwo {
  double first = -kInfinity;
  double second = -kInfinity;
};

// Four doubles, in one register where the machine has such.
typedef double Vector __attribute__((vector_size(32)));

// error[i] = weight[i] x step - taken[i], and the two largest of them. `count` is a multiple of kLanes. Comparisons do
// not round, so the order in which they are made does not matter.
TopTwo compute_errors(const double* weight, const double* taken, double step, size_t count, double* error) {
  constexpr size_t kHalves = 2;
  constexpr size_t kWidth = kLanes / kHalves;
  Vector first[kHalves];
  Vector second[kHalves];
  for (size_t half = 0; half < kHalves; ++half) first[half] = second[half] = Vector{} - kInfinity;
  for (size_t i = 0; i < count; i += kLanes) {
    for (size_t half = 0; half < kHalves; ++half) {
      const size_t at = i + half * kWidth;
      Vector weights;
      Vector counts;
      std::memcpy(&weights, weight + at, sizeof(weights));
      std::memcpy(&counts, taken + at, sizeof(counts));
      const Vector value = weights * step - counts;
      std::memcpy(error + at, &value, sizeof(value));
      const Vector smaller = value < first[half] ? value : first[half];
      second[half] = smaller > second[half] ? smaller : second[half];
      first[half] = value > first[half] ? value : first[half];
    }
  }
  TopTwo top;
  for (size_t half = 0; half < kHalves; ++half) {
    for (size_t lane = 0; lane < kWidth; ++lane) {
      const double largest = first[half][lane];
      const double smaller = std::min(top.first, largest);
      top.second = std::max(top.second, std::max(second[half][lane], smaller));
      top.first = std::max(top.first, largest);
    }
  }
  return top;
}

// Of the places whose error is the largest, the one whose dataset has the lowest number.
size_t place_of_top(const std::vector<double>& error, const std::vector<int32_t>& front, size_t begin, size_t end,
                    const TopTwo& top) {
  size_t best = end;
  for (size_t i = begin; i < end; ++i) {
    if (error[i] != top.first) continue;
    if (best == end || front[i] < front[best]) best = i;
    if (top.second < top.first) break;  // there is only one
  }
  return best;
}

size_t padded(size_t count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}
}  // namespace

BlendOrder::BlendOrder(std::span<const double> weights, std::span<const int64_t> limits)
    : datasets_(std::ssize(weights)) {
  MEGALITH_CHECK(!weights.empty() && weights.size() <= size_t{INT32_MAX}, "a blend of {} datasets", weights.size());
  MEGALITH_CHECK(limits.empty() || limits.size() == weights.size(), "{} weights, {} limits", weights.size(),
                 limits.size());
  std::map<std::pair<double, int64_t>, std::vector<int32_t>> by_weight;  // similar weights become neighbours
  per_round_ = std::numeric_limits<int64_t>::max();
  if (!limits.empty()) per_round_ = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t limit = limits.empty() ? 0 : limits[i];
    MEGALITH_CHECK(weights[i] > 0 && weights[i] <= 1, "weight {} of dataset {}", weights[i], i);
    MEGALITH_CHECK(limits.empty() || limit > 0, "limit {} of dataset {}", limit, i);
    if (!limits.empty()) per_round_ += limit;
    by_weight[{weights[i], limit}].push_back(static_cast<int32_t>(i));
  }
  const double most = std::ceil(std::sqrt(static_cast<double>(by_weight.size())));
  double share = 0.0;
  group_begin_.push_back(0);
  for (const auto& [key, members] : by_weight) {
    const auto [weight, limit] = key;
    const auto count = static_cast<double>(lines_.size() - group_begin_.back());
    if (count > 0 && (count >= most || share + weight * static_cast<double>(members.size()) > 2.0 / most)) {
      end_group();
      share = 0.0;
    }
    share += weight * static_cast<double>(members.size());
    add_line(weight, limit, members);
  }
  end_group();
  const size_t groups = padded(leader_.size());
  leader_weight_.assign(groups, 0.0);
  leader_taken_.assign(groups, kInfinity);
  leader_front_.assign(groups, 0);
  leader_error_.assign(groups, 0.0);
  error_.assign(lines_.size(), 0.0);
  restart();
}

void BlendOrder::add_line(double weight, int64_t limit, std::span<const int32_t> members) {
  const size_t begin = members_.size();
  members_.insert(members_.end(), members.begin(), members.end());
  lines_.push_back({.begin = begin, .end = members_.size(), .front = begin, .limit = limit});
  weight_.push_back(weight);
  taken_.push_back(kInfinity);
  front_.push_back(0);
}

void BlendOrder::end_group() {
  heaviest_.push_back(weight_.back());  // they come in rising order
  while (lines_.size() % kLanes != 0) add_line(0.0, 0, {});
  group_begin_.push_back(lines_.size());
  leader_.push_back(0);
  expiry_.push_back(0.0);
}

void BlendOrder::restart() {
  step_ = 0;
  for (size_t i = 0; i < lines_.size(); ++i) {
    lines_[i].turn = 0;
    lines_[i].front = lines_[i].begin;
    show(i);
  }
  std::fill(expiry_.begin(), expiry_.end(), 0.0);
  earliest_expiry_ = 0.0;
}

// Copies what a line has come to into the arrays that steps look at.
void BlendOrder::show(size_t line) {
  const Line& state = lines_[line];
  if (state.begin == state.end) return;
  const bool spent = state.limit > 0 && state.turn >= state.limit;
  taken_[line] = spent ? kInfinity : static_cast<double>(state.turn);
  front_[line] = members_[state.front];
}

void BlendOrder::advance(size_t line) {
  Line& state = lines_[line];
  if (++state.front == state.end) {
    state.front = state.begin;
    ++state.turn;
  }
  show(line);
}

void BlendOrder::look_again(size_t group, double step) {
  const size_t begin = group_begin_[group];
  const size_t end = group_begin_[group + 1];
  const TopTwo top =
      compute_errors(weight_.data() + begin, taken_.data() + begin, step, end - begin, error_.data() + begin);
  if (top.first == -kInfinity) {  // all spent
    leader_taken_[group] = kInfinity;
    expiry_[group] = kInfinity;
    return;
  }
  const size_t place = place_of_top(error_, front_, begin, end, top);
  leader_[group] = place;
  leader_weight_[group] = weight_[place];
  leader_taken_[group] = taken_[place];
  leader_front_[group] = front_[place];
  // The others gain at most (heaviest - leader's weight) per step. An error is off by at most half a unit in the last
  // place of weight x step, and another half of the difference: `rounding` is more than that for two of them, for all
  // steps up to twice this one.
  const double horizon = 2.0 * step + 1024.0;
  const double rounding = 0x1p-50 * (heaviest_[group] * horizon + std::abs(top.first) + 4.0);
  const double room = top.first - top.second - rounding;
  if (room <= 0.0) {
    expiry_[group] = step + 1.0;
  } else {
    const double gain = heaviest_[group] - weight_[place];
    const double steps = gain > 0.0 ? std::floor(room / gain * (1.0 - 0x1p-40)) : horizon;
    expiry_[group] = std::min(step + std::max(steps, 1.0), horizon);
  }
  earliest_expiry_ = std::min(earliest_expiry_, expiry_[group]);
}

void BlendOrder::renew_expired(double step) {
  earliest_expiry_ = kInfinity;
  for (size_t group = 0; group < expiry_.size(); ++group) {
    if (expiry_[group] <= step) look_again(group, step);
    earliest_expiry_ = std::min(earliest_expiry_, expiry_[group]);
  }
}

BlendEntry BlendOrder::step_once() {
  if (step_ == per_round_) {
    ++round_;
    restart();
  }
  const double step = std::max(static_cast<double>(step_), 1.0);
  if (earliest_expiry_ <= step) renew_expired(step);
  const TopTwo top =
      compute_errors(leader_weight_.data(), leader_taken_.data(), step, leader_weight_.size(), leader_error_.data());
  const size_t group = place_of_top(leader_error_, leader_front_, 0, leader_error_.size(), top);
  const size_t line = leader_[group];
  const Line& state = lines_[line];
  const BlendEntry entry{members_[state.front], round_ * state.limit + state.turn};
  advance(line);
  ++step_;
  look_again(group, step);
  return entry;
}

void BlendOrder::next(std::span<BlendEntry> out) {
  for (BlendEntry& entry : out) entry = step_once();
}

std::vector<int64_t> BlendOrder::taken() const {
  std::vector<int64_t> taken(static_cast<size_t>(datasets_));
  for (const Line& line : lines_) {
    for (size_t i = line.begin; i < line.end; ++i) {
      taken[static_cast<size_t>(members_[i])] = line.turn + (i < line.front ? 1 : 0);
    }
  }
  return taken;
}

void BlendOrder::seek(int64_t position, std::span<const int64_t> taken) {
  MEGALITH_CHECK(position >= 0 && std::ssize(taken) == datasets_, "position {}, {} counts of {} datasets", position,
                 taken.size(), datasets_);
  // The end of a round is where it stands when it was reached: a new round begins with the next step.
  const int64_t step = position % per_round_;
  const int64_t sum = std::accumulate(taken.begin(), taken.end(), int64_t{0});
  const bool at_end = step == 0 && position > 0 && sum == per_round_;
  bool fits = sum == step || at_end;
  const auto count_of = [&](size_t member) { return taken[static_cast<size_t>(members_[member])]; };
  for (Line& line : lines_) {
    if (line.begin == line.end) continue;
    line.turn = count_of(line.end - 1);
    line.front = line.begin;
    while (line.front + 1 < line.end && count_of(line.front) == line.turn + 1) ++line.front;
    fits = fits && line.turn >= 0 && (line.limit == 0 || line.turn + (line.front > line.begin ? 1 : 0) <= line.limit);
    for (size_t i = line.front; i < line.end; ++i) fits = fits && count_of(i) == line.turn;
  }
  if (!fits) data_error("a blend cannot have taken these {} samples before sample {}", sum, position);
  round_ = position / per_round_ - (at_end ? 1 : 0);
  step_ = at_end ? per_round_ : step;
  for (size_t i = 0; i < lines_.size(); ++i) show(i);
  std::fill(expiry_.begin(), expiry_.end(), 0.0);
  earliest_expiry_ = 0.0;
}

}  // namespace megalith::data
