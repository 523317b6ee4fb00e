#pragma once

#include "comm/communicator.h"
#include "core/arena.h"

namespace megalith::parallel {

// The ranks that share each matrix. Between parallel regions the residual stream is (rows, C): all tokens on every rank
// or, under sequence parallelism, some on each. Inside of one every rank has all tokens and some of the channels.
struct TensorRegion {
  comm::Communicator* group = &comm::lone_group();
  bool sequence_parallel = false;
  comm::Communicator* kv_heads = &comm::lone_group();  // ranks among them with the same key and value heads

  bool is_divided() const { return !group->is_alone(); }
  bool divides_tokens() const { return is_divided() && sequence_parallel; }
  int64_t ranks() const { return group->size(); }
  int64_t rank() const { return group->rank(); }
  int64_t rows_of(int64_t tokens) const { return divides_tokens() ? div_exact(tokens, ranks()) : tokens; }
  // The first row of this rank among those of the micro batch.
  int64_t first_row_of(int64_t tokens) const { return divides_tokens() ? rank() * rows_of(tokens) : 0; }

  // Rows that ranks make together while the stream goes on: complete once finished.
  struct Started {
    Tensor rows;
    comm::Pending call = {};

    Tensor finish(Stream& stream) const {
      call.wait(stream);
      return rows;
    }
  };

  // On the way in: all tokens, in memory from `arena` where ranks divide them and `rows` itself otherwise.
  Tensor gather(Stream& stream, Arena& arena, const Tensor& rows) const;
  // On the way out: this rank's rows of the sum of the ranks' `partial` (tokens, C), in its memory.
  Tensor reduce(Stream& stream, const Tensor& partial) const { return start_reduce(stream, partial).finish(stream); }
  Started start_reduce(Stream& stream, const Tensor& partial) const;
};

}  // namespace megalith::parallel
