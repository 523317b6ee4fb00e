#pragma once

#include <vector>

#include "parallel/schedule/schedule.h"

namespace megalith::parallel {

// What an action of a schedule works on, as numbers of buffers; -1 where it needs none.
struct Operands {
  int64_t slot = -1;         // of the chunk: what forward keeps for backward
  int64_t batch = -1;        // where the tokens of the micro batch lie
  bool loads_batch = false;  // it is the first to use them: they are put there before it
  // Pieces of the residual stream.
  int64_t input = -1;          // before the chunk
  int64_t output = -1;         // behind it
  int64_t gradient = -1;       // of the output; backward turns it into that of the input
  std::vector<int64_t> sends;  // of a send_receive, in the order of its lists
  std::vector<int64_t> receives;
  std::vector<size_t> waits_for;  // send_receives that must be complete before: they bring its input or empty a buffer
};

// A rank's schedule with memory: who uses which buffer follows from the lifetimes of tensors in the schedule, so that
// their number is known before the first step and nobody asks for memory while training.
struct StepProgram {
  Schedule schedule;
  std::vector<Operands> operands;  // one per action
  std::vector<int64_t> slots;      // of each chunk
  int64_t buffers = 0;             // of the residual stream
  int64_t batches = 0;
};

// Where a stage stands.
struct PipelinePosition {
  int64_t stage = 0;
  int64_t stages = 1;
  int64_t chunks = 1;  // of each stage
};

StepProgram make_step_program(Schedule schedule, const PipelinePosition& position);

}  // namespace megalith::parallel
