#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "checkpoint/store.h"
#include "comm/communicator.h"
#include "optim/optimizer.h"
#include "parallel/state_owners.h"

namespace megalith::train {

// Between what ranks hold and what a checkpoint holds: whole logical tensors in host memory. It works tensor by tensor,
// so that it needs memory for one at a time.
class WholeState {
 public:
  struct Parts {
    parallel::PlacementRequest request;  // of all ranks
    const parallel::ParameterStore& store;
    const optim::Optimizer* optimizer = nullptr;  // absent: weights alone, which can only be distributed
    comm::Communicator* world = nullptr;          // absent: one rank
  };
  // What the parts refer to must outlive it.
  WholeState(const Parts& parts, Device device);

  // Gathers weights, masters (where weights are bf16) and moments on rank 0 and hands them to `take` there, parameter
  // by parameter in the order of the table; a tensor is gone when `take` returns. Every rank calls it; the host waits.
  using Take = std::function<void(const checkpoint::NamedTensor& whole)>;
  void collect(Stream& stream, const Take& take);

  // Fills what this rank holds of a whole tensor, from a checkpoint of any layout. Weights follow from their masters.
  // The host waits. No other rank is asked.
  void distribute(Stream& stream, const checkpoint::NamedTensor& whole);

  // Of the memory of a GPU, on rank 0.
  static constexpr int64_t kMessageBytes = int64_t{16} << 20;

 private:
  using Part = Tensor optim::State::*;

  Tensor assemble(Stream& stream, size_t parameter, Part part, DType dtype, std::vector<std::byte>& memory);
  void send_box(Stream& stream, const Tensor& held) const;
  void place_box(Stream& stream, const parallel::OwnedBox& owned, const Tensor& held, const Tensor& whole);
  Tensor held_part(const parallel::ParameterSpec& spec, const parallel::Box& box, Part part) const;
  void fill_weights(Stream& stream, const std::string& name, const Tensor& whole) const;
  void fill_state(Stream& stream, const std::string& name, Part part, const Tensor& whole) const;

  Parts parts_;
  int rank_;
  std::vector<std::vector<parallel::OwnedBox>> owners_;          // of the parameters of the table
  std::unordered_map<std::string, const optim::State*> states_;  // by logical name
  Arena host_staging_;
  Arena device_staging_;
  std::vector<std::byte> whole_, whole_remainder_, whole_master_;
};

}  // namespace megalith::train
