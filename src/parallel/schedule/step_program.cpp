#include "parallel/schedule/step_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace megalith::parallel {

namespace {

// A chunk of this rank and a micro batch.
using Cell = std::pair<int64_t, int64_t>;

// Numbers that are taken and given back; the lowest free one is taken.
class Numbers {
 public:
  int64_t take() {
    const auto found = std::find(taken_.begin(), taken_.end(), false);
    const auto number = found - taken_.begin();
    if (found == taken_.end()) taken_.push_back(false);
    taken_[static_cast<size_t>(number)] = true;
    return number;
  }
  void give_back(int64_t number) { taken_[static_cast<size_t>(number)] = false; }
  int64_t count() const { return std::ssize(taken_); }

 private:
  std::vector<bool> taken_;
};

// Buffers of the residual stream. The lowest free one is taken, so that micro batches that go the same way use the same
// memory. One that was given to a send is free, but whoever takes it next waits for the send: so it is taken only when
// a later exchange has been started, and otherwise there is one buffer more.
class StreamBuffers {
 public:
  int64_t take(std::vector<size_t>& waits_for) {
    if (!free_.empty()) {
      const int64_t number = *free_.begin();
      free_.erase(free_.begin());
      return number;
    }
    if (sent_.empty() || exchanges_ <= sent_.front().exchanges_before + 1) return count_++;
    const Sent oldest = sent_.front();
    sent_.erase(sent_.begin());
    waits_for.push_back(oldest.sent_by);
    return oldest.number;
  }
  void give_back(int64_t number) { free_.insert(number); }
  void give_to_send(int64_t number, size_t action) {
    sent_.push_back({.number = number, .sent_by = action, .exchanges_before = exchanges_});
  }
  void count_exchange() { ++exchanges_; }
  int64_t count() const { return count_; }

 private:
  struct Sent {
    int64_t number = 0;
    size_t sent_by = 0;
    int64_t exchanges_before = 0;
  };
  std::set<int64_t> free_;
  std::vector<Sent> sent_;
  int64_t count_ = 0;
  int64_t exchanges_ = 0;
};

class ProgramMaker {
 public:
  ProgramMaker(Schedule schedule, const PipelinePosition& position)
      : position_(position), slots_(static_cast<size_t>(position.chunks)) {
    program_.schedule = std::move(schedule);
    program_.operands.resize(program_.schedule.size());
    for (size_t i = 0; i < program_.schedule.size(); ++i) {
      const Action& action = program_.schedule[i];
      if (!is_compute(action)) continue;
      last_use_of_batch_[action.micro_batch] = i;
      has_backward_ = has_backward_ || action.kind != ActionKind::forward;
    }
  }

  StepProgram make() {
    for (size_t i = 0; i < program_.schedule.size(); ++i) follow(i);
    for (const Numbers& slots : slots_) program_.slots.push_back(slots.count());
    program_.buffers = buffers_.count();
    program_.batches = batches_.count();
    return std::move(program_);
  }

 private:
  struct Held {
    int64_t buffer = -1;
    std::optional<size_t> brought_by = std::nullopt;
  };

  bool is_first(int64_t chunk) const { return position_.stage == 0 && chunk == 0; }
  bool is_last(int64_t chunk) const { return position_.stage == position_.stages - 1 && chunk == position_.chunks - 1; }
  // The neighbouring chunks of the model are on this rank too.
  bool is_alone() const { return position_.stages == 1; }

  void follow(size_t index) {
    const Action& action = program_.schedule[index];
    Operands& operands = program_.operands[index];
    if (action.kind == ActionKind::send_receive) exchange(index, action, operands);
    if (!is_compute(action)) return;
    use_batch(index, action, operands);
    switch (action.kind) {
      case ActionKind::forward:
        forward(action, operands);
        break;
      case ActionKind::backward_weight:
        operands.slot = slot_of_.at({action.chunk, action.micro_batch});
        break;
      default:
        backward(action, operands);
    }
    if (ends_backward(action)) free_activations({action.chunk, action.micro_batch});
  }

  void use_batch(size_t index, const Action& action, Operands& operands) {
    const auto [entry, is_new] = batch_of_.try_emplace(action.micro_batch, 0);
    if (is_new) entry->second = batches_.take();
    operands.batch = entry->second;
    operands.loads_batch = is_new;
    if (last_use_of_batch_.at(action.micro_batch) == index) batches_.give_back(entry->second);
  }

  void forward(const Action& action, Operands& operands) {
    const Cell cell{action.chunk, action.micro_batch};
    if (is_first(action.chunk)) inputs_[cell] = {.buffer = buffers_.take(operands.waits_for)};
    operands.input = arrived(inputs_.at(cell), operands);
    operands.output = buffers_.take(operands.waits_for);
    if (has_backward_) {
      operands.slot = slots_[static_cast<size_t>(action.chunk)].take();
      slot_of_[cell] = operands.slot;
    } else {
      if (slots_[static_cast<size_t>(action.chunk)].count() == 0) slots_[static_cast<size_t>(action.chunk)].take();
      operands.slot = 0;
    }
    if (is_last(action.chunk)) {
      // The head has made of it the gradient with which backward begins.
      if (has_backward_) {
        operands.gradient = buffers_.take(operands.waits_for);
        gradients_[cell] = {.buffer = operands.gradient};
      }
      buffers_.give_back(operands.output);
    } else if (is_alone()) {
      inputs_[{action.chunk + 1, action.micro_batch}] = {.buffer = operands.output};
    } else {
      made_[{Payload::activation, cell}] = operands.output;
    }
    if (!has_backward_) buffers_.give_back(operands.input);
  }

  void backward(const Action& action, Operands& operands) {
    const Cell cell{action.chunk, action.micro_batch};
    operands.slot = slot_of_.at(cell);
    operands.input = inputs_.at(cell).buffer;
    operands.gradient = arrived(gradients_.at(cell), operands);
    gradients_.erase(cell);
    if (is_first(action.chunk)) {
      buffers_.give_back(operands.gradient);
    } else if (is_alone()) {
      gradients_[{action.chunk - 1, action.micro_batch}] = {.buffer = operands.gradient};
    } else {
      made_[{Payload::gradient, cell}] = operands.gradient;
    }
  }

  void free_activations(const Cell& cell) {
    slots_[static_cast<size_t>(cell.first)].give_back(slot_of_.at(cell));
    slot_of_.erase(cell);
    buffers_.give_back(inputs_.at(cell).buffer);
    inputs_.erase(cell);
  }

  void exchange(size_t index, const Action& action, Operands& operands) {
    for (const Transfer& transfer : action.receives) {
      const int64_t buffer = buffers_.take(operands.waits_for);
      operands.receives.push_back(buffer);
      auto& arriving = transfer.payload == Payload::activation ? inputs_ : gradients_;
      arriving[{transfer.chunk, transfer.micro_batch}] = {.buffer = buffer, .brought_by = index};
    }
    for (const Transfer& transfer : action.sends) {
      const auto made = made_.find({transfer.payload, {transfer.chunk, transfer.micro_batch}});
      MEGALITH_CHECK(made != made_.end(), "action {} sends what was not made", index);
      operands.sends.push_back(made->second);
      buffers_.give_to_send(made->second, index);
      made_.erase(made);
    }
    buffers_.count_exchange();
  }

  static int64_t arrived(const Held& held, Operands& operands) {
    if (held.brought_by) operands.waits_for.push_back(*held.brought_by);
    return held.buffer;
  }

  PipelinePosition position_;
  StepProgram program_;
  bool has_backward_ = false;
  std::map<int64_t, size_t> last_use_of_batch_;
  std::map<int64_t, int64_t> batch_of_;
  std::map<Cell, int64_t> slot_of_;
  std::map<Cell, Held> inputs_;
  std::map<Cell, Held> gradients_;
  std::map<std::pair<Payload, Cell>, int64_t> made_;  // to be sent
  std::vector<Numbers> slots_;
  Numbers batches_;
  StreamBuffers buffers_;
};

}  // namespace

StepProgram make_step_program(Schedule schedule, const PipelinePosition& position) {
  return ProgramMaker(std::move(schedule), position).make();
}

}  // namespace megalith::parallel
