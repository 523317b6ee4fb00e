#include "parallel/schedule/step_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "parallel/recipe_layouts.h"
#include "parallel/schedule/data_parallel_actions.h"
#include "parallel/schedule_bounds.h"

namespace megalith::parallel::testing {
namespace {

// What a piece of memory holds at a moment. Chunks are counted over the whole model, so that what a chunk gives and
// what the next one takes have the same name.
struct Content {
  enum class Kind { nothing, activation, gradient, saved, half_used, tokens };
  Kind kind = Kind::nothing;
  int64_t chunk = 0;  // an activation enters it; a gradient is that of what enters it
  int64_t micro_batch = 0;

  bool operator==(const Content&) const = default;
};

// Buffers of one kind. Memory that a message still reads or writes is nobody else's.
class Memory {
 public:
  Memory(const char* name, int64_t count) : name_(name), cells_(static_cast<size_t>(count)) {}

  void write(int64_t number, const Content& content) {
    Cell& cell = at(number);
    MEGALITH_CHECK(!cell.sent_by && !cell.received_by, "{} {} is overwritten while a message uses it", name_, number);
    cell.content = content;
  }
  void read(int64_t number, const Content& expected) {
    const Cell& cell = at(number);
    MEGALITH_CHECK(!cell.received_by, "{} {} is read before its message has come", name_, number);
    MEGALITH_CHECK(cell.content == expected, "{} {} holds something else", name_, number);
  }
  void send(int64_t number, const Content& expected, size_t action) {
    read(number, expected);
    at(number).sent_by = action;
  }
  void receive(int64_t number, const Content& content, size_t action) {
    write(number, content);
    at(number).received_by = action;
  }
  void complete(size_t action) {
    for (Cell& cell : cells_) {
      if (cell.sent_by == action) cell.sent_by.reset();
      if (cell.received_by == action) cell.received_by.reset();
    }
  }
  void clear(int64_t number) { write(number, {}); }

 private:
  struct Cell {
    Content content;
    std::optional<size_t> sent_by;
    std::optional<size_t> received_by;
  };

  Cell& at(int64_t number) {
    MEGALITH_CHECK(number >= 0 && number < std::ssize(cells_), "there is no {} {}", name_, number);
    return cells_[static_cast<size_t>(number)];
  }

  const char* name_;
  std::vector<Cell> cells_;
};

// Carries out a program with names instead of tensors: every action must find what it reads, as no other has
// overwritten it, and messages are over only when somebody has waited for them.
class Replay {
 public:
  Replay(const StepProgram& program, const PipelinePosition& position)
      : program_(program),
        position_(position),
        buffers_("buffer", program.buffers),
        batches_("batch", program.batches) {
    for (const int64_t count : program.slots) slots_.emplace_back("slot", count);
    alive_.resize(slots_.size());
    most_alive_of_chunk.resize(slots_.size());
    for (const Action& action : program.schedule)
      trains_ = trains_ || action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
  }

  void run() {
    for (size_t i = 0; i < program_.schedule.size(); ++i) act(i);
  }

  int64_t most_alive = 0;  // slots in use at once
  std::vector<int64_t> most_alive_of_chunk;

 private:
  using Kind = Content::Kind;

  int64_t number_of(int64_t chunk) const { return chunk * position_.stages + position_.stage; }
  int64_t last_number() const { return position_.chunks * position_.stages - 1; }

  void act(size_t index) {
    const Action& action = program_.schedule[index];
    const Operands& operands = program_.operands[index];
    for (const size_t message : operands.waits_for) {
      MEGALITH_CHECK(message < index, "action {} waits for one to come", index);
      buffers_.complete(message);
    }
    if (action.kind == ActionKind::send_receive) exchange(index, action, operands);
    if (!is_compute(action)) return;
    const Content tokens{Kind::tokens, 0, action.micro_batch};
    if (operands.loads_batch) batches_.write(operands.batch, tokens);
    batches_.read(operands.batch, tokens);
    if (action.kind == ActionKind::forward) {
      forward(action, operands);
    } else {
      backward(action, operands);
    }
  }

  void exchange(size_t index, const Action& action, const Operands& operands) {
    for (size_t i = 0; i < action.sends.size(); ++i) {
      const Transfer& sent = action.sends[i];
      buffers_.send(operands.sends[i], content_of(sent, sent.payload == Payload::activation ? 1 : 0), index);
    }
    for (size_t i = 0; i < action.receives.size(); ++i) {
      const Transfer& received = action.receives[i];
      buffers_.receive(operands.receives[i], content_of(received, received.payload == Payload::activation ? 0 : 1),
                       index);
    }
  }

  Content content_of(const Transfer& transfer, int64_t chunks_further) const {
    return {transfer.payload == Payload::activation ? Kind::activation : Kind::gradient,
            number_of(transfer.chunk) + chunks_further, transfer.micro_batch};
  }

  void forward(const Action& action, const Operands& operands) {
    const int64_t number = number_of(action.chunk);
    const Content input{Kind::activation, number, action.micro_batch};
    if (number == 0) buffers_.write(operands.input, input);  // the embedding makes it
    keep(action, operands);
    buffers_.write(operands.output, {Kind::activation, number + 1, action.micro_batch});
    // The head reads what the last block has made and begins backward.
    if (number == last_number() && trains_)
      buffers_.write(operands.gradient, {Kind::gradient, number + 1, action.micro_batch});
    buffers_.read(operands.input, input);
    buffers_.read(operands.output, {Kind::activation, number + 1, action.micro_batch});
  }

  // Blocks write what backward reads.
  void keep(const Action& action, const Operands& operands) {
    const auto chunk = static_cast<size_t>(action.chunk);
    Memory& slots = slots_[chunk];
    if (!trains_) {
      slots.write(operands.slot, {Kind::saved, action.chunk, action.micro_batch});
      return;
    }
    slots.read(operands.slot, {});
    slots.write(operands.slot, {Kind::saved, action.chunk, action.micro_batch});
    most_alive_of_chunk[chunk] = std::max(most_alive_of_chunk[chunk], ++alive_[chunk]);
    most_alive = std::max(most_alive, ++all_alive_);
  }

  void backward(const Action& action, const Operands& operands) {
    const int64_t number = number_of(action.chunk);
    Memory& slots = slots_[static_cast<size_t>(action.chunk)];
    const bool is_second_half = action.kind == ActionKind::backward_weight;
    slots.read(operands.slot, {is_second_half ? Kind::half_used : Kind::saved, action.chunk, action.micro_batch});
    if (!is_second_half) {
      buffers_.read(operands.input, {Kind::activation, number, action.micro_batch});
      buffers_.read(operands.gradient, {Kind::gradient, number + 1, action.micro_batch});
      buffers_.write(operands.gradient, {Kind::gradient, number, action.micro_batch});
      buffers_.read(operands.input, {Kind::activation, number, action.micro_batch});
      slots.write(operands.slot, {Kind::half_used, action.chunk, action.micro_batch});
    }
    if (!ends_backward(action)) return;
    slots.clear(operands.slot);
    --alive_[static_cast<size_t>(action.chunk)];
    --all_alive_;
  }

  const StepProgram& program_;
  PipelinePosition position_;
  bool trains_ = false;
  Memory buffers_;
  Memory batches_;
  std::vector<Memory> slots_;
  std::vector<int64_t> alive_;
  int64_t all_alive_ = 0;
};

// Pieces of the residual stream beside those that wait for a backward or were received: what is being made or sent.
constexpr int64_t kBuffersAtWork = 3;
constexpr int64_t kBuffersReceived = 8;

std::vector<int64_t> one_bucket_per_chunk(int64_t chunks) {
  std::vector<int64_t> buckets;
  for (int64_t chunk = chunks - 1; chunk >= 0; --chunk) buckets.push_back(chunk);
  return buckets;
}

void expect_good_training(const Layout& layout, int64_t micro_batches, const std::vector<Schedule>& schedules) {
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    const PipelinePosition position{.stage = stage, .stages = layout.pipeline, .chunks = layout.chunks};
    const StepProgram program =
        make_step_program(with_data_parallel(schedules[static_cast<size_t>(stage)], WeightLife::step,
                                             one_bucket_per_chunk(layout.chunks)),
                          position);
    Replay replay(program, position);
    ASSERT_NO_THROW(replay.run()) << "stage " << stage;
    ASSERT_EQ(program.slots, replay.most_alive_of_chunk) << "stage " << stage;
    ASSERT_LE(replay.most_alive, chunks_alive(layout, stage, micro_batches)) << "stage " << stage;
    ASSERT_LE(program.buffers, replay.most_alive + receive_buffers(program.schedule) + kBuffersAtWork)
        << "stage " << stage;
    ASSERT_LE(receive_buffers(program.schedule), kBuffersReceived) << "stage " << stage;
    ASSERT_LE(program.batches, std::min(micro_batches, replay.most_alive)) << "stage " << stage;
  }
}

void expect_good_evaluation(const Layout& layout, int64_t micro_batches) {
  const std::vector<Schedule> schedules = evaluation_schedules(layout, micro_batches);
  for (int64_t stage = 0; stage < layout.pipeline; ++stage) {
    const PipelinePosition position{.stage = stage, .stages = layout.pipeline, .chunks = layout.chunks};
    const StepProgram program =
        make_step_program(with_data_parallel(schedules[static_cast<size_t>(stage)], WeightLife::step, {}), position);
    Replay replay(program, position);
    ASSERT_NO_THROW(replay.run()) << "evaluation, stage " << stage;
    ASSERT_EQ(program.slots, std::vector<int64_t>(static_cast<size_t>(layout.chunks), 1));
    ASSERT_LE(program.buffers, receive_buffers(program.schedule) + kBuffersAtWork) << "stage " << stage;
    ASSERT_LE(program.batches, std::min(micro_batches, layout.pipeline));
  }
}

void expect_good(const Layout& layout, int64_t micro_batches) {
  SCOPED_TRACE(fmt::format("{}, {} micro batches", to_string(layout), micro_batches));
  expect_good_training(layout, micro_batches, pipeline_schedules(layout, micro_batches));
  if (::testing::Test::HasFatalFailure()) return;
  expect_good_evaluation(layout, micro_batches);
}

// All of them with MEGALITH_LONG_TESTS set; otherwise those beside the places where something changes.
bool is_tested(const Layout& layout, int64_t micro_batches) {
  if (std::getenv("MEGALITH_LONG_TESTS") != nullptr) return true;
  const bool few_or_many = layout.chunks <= 3 || layout.chunks == 12;
  const bool at_an_edge = (micro_batches + 1) % layout.pipeline <= 2;
  return few_or_many && at_an_edge && (micro_batches <= 2 * layout.pipeline + 1 || micro_batches == 64);
}

TEST(StepProgram, EveryActionOfEveryScheduleFindsItsMemory) {
  for (int64_t pipeline = 1; pipeline <= 16; ++pipeline) {
    for (int64_t chunks = 1; chunks <= 12; ++chunks) {
      for (int64_t micro_batches = 1; micro_batches <= 64; ++micro_batches) {
        for (const PipelineSchedule kind :
             {PipelineSchedule::one_forward_one_backward, PipelineSchedule::zero_bubble}) {
          const Layout layout{.pipeline = pipeline, .chunks = chunks, .schedule = kind};
          if (!schedule_problem(layout, micro_batches).empty() || !is_tested(layout, micro_batches)) continue;
          expect_good(layout, micro_batches);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(StepProgram, RecipesFindTheirMemory) {
  for (const RecipeLayout& recipe : recipe_layouts()) {
    expect_good(recipe.layout, recipe.micro_batches);
    if (HasFatalFailure()) return;
  }
}

// A recording of one micro batch serves the others: they use the same memory.
TEST(StepProgram, MicroBatchesOfOneStageUseTheSameMemory) {
  for (const int64_t chunks : {1, 2, 5}) {
    const PipelinePosition position{.chunks = chunks};
    const auto expect_repeats = [&](const StepProgram& program, int64_t actions) {
      for (size_t i = static_cast<size_t>(actions); i < program.operands.size(); ++i) {
        const Operands& first = program.operands[i % static_cast<size_t>(actions)];
        const Operands& other = program.operands[i];
        EXPECT_EQ(other.slot, first.slot);
        EXPECT_EQ(other.batch, first.batch);
        EXPECT_EQ(other.loads_batch, first.loads_batch);
        EXPECT_EQ(other.input, first.input);
        EXPECT_EQ(other.output, first.output);
        EXPECT_EQ(other.gradient, first.gradient);
        EXPECT_TRUE(other.waits_for.empty());
      }
    };
    expect_repeats(make_step_program(single_stage_schedule(6, chunks), position), 2 * chunks);
    expect_repeats(make_step_program(evaluation_schedules({.chunks = chunks}, 6)[0], position), chunks);
  }
}

TEST(StepProgram, OfOneStageIsSmall) {
  const StepProgram program = make_step_program(single_stage_schedule(6), {});
  EXPECT_EQ(program.slots, std::vector<int64_t>{1});
  EXPECT_EQ(program.buffers, 3);  // input, output, gradient
  EXPECT_EQ(program.batches, 1);
}

// The replay finds what a program must not do.
TEST(StepProgram, ReplayFindsMemoryThatIsUsedTwice) {
  const PipelinePosition position{.stage = 1, .stages = 2};
  const StepProgram good = make_step_program(pipeline_schedules({.pipeline = 2}, 4)[1], position);
  const auto expect_found = [&](const StepProgram& broken) { EXPECT_THROW(Replay(broken, position).run(), Error); };
  EXPECT_NO_THROW(Replay(good, position).run());

  StepProgram nobody_waits = good;
  for (Operands& operands : nobody_waits.operands) operands.waits_for.clear();
  expect_found(nobody_waits);

  StepProgram one_buffer = good;
  for (Operands& operands : one_buffer.operands) {
    if (operands.output >= 0) operands.output = operands.input;
  }
  expect_found(one_buffer);

  StepProgram one_slot = make_step_program(pipeline_schedules({.pipeline = 2}, 4)[0], {.stages = 2});
  for (Operands& operands : one_slot.operands) operands.slot = std::min<int64_t>(operands.slot, 0);
  EXPECT_THROW(Replay(one_slot, {.stages = 2}).run(), Error);
}

}  // namespace
}  // namespace megalith::parallel::testing
