#include "train/whole_state.h"

#include <cstring>

#include "optim/master_weights.h"

namespace megalith::train {

namespace {

using checkpoint::TensorKind;

int64_t columns_of(const Shape& shape) {
  return shape.rank() == 1 ? 1 : shape[1];
}

Tensor as_matrix(const Tensor& tensor) {
  return tensor.view({tensor.shape[0], columns_of(tensor.shape)});
}

Tensor in_memory(std::vector<std::byte>& memory, DType dtype, const Shape& shape) {
  memory.resize(static_cast<size_t>(shape.elements() * size_of(dtype)));
  return Tensor(memory.data(), dtype, shape);
}

// The box of a whole tensor in host memory.
Tensor box_of(const Tensor& whole, const parallel::Box& box) {
  return as_matrix(whole).slice_rows(box.rows.begin, box.rows.end).slice_cols(box.columns.begin, box.columns.end);
}

std::byte* row_begin(const Tensor& tensor, int64_t row) {
  return static_cast<std::byte*>(tensor.data) + row * tensor.row_stride * size_of(tensor.dtype);
}

// Between matrices in host memory.
void copy_rows(const Tensor& from, const Tensor& to) {
  const auto bytes = static_cast<size_t>(from.cols() * size_of(from.dtype));
  for (int64_t row = 0; row < from.rows(); ++row) std::memcpy(row_begin(to, row), row_begin(from, row), bytes);
}

void upload(Stream& stream, const Tensor& box, const Tensor& held) {
  std::vector<std::byte> packed;
  const Tensor contiguous = in_memory(packed, box.dtype, {box.rows(), box.cols()});
  copy_rows(box, contiguous);
  copy(stream, contiguous, held);
  stream.wait();
}

// visit(begin, end) for as many rows at a time as fit into a message.
template <class Visit>
void for_each_message(int64_t rows, int64_t row_bytes, const Visit& visit) {
  const int64_t at_once = std::max<int64_t>(1, WholeState::kMessageBytes / row_bytes);
  for (int64_t begin = 0; begin < rows; begin += at_once) visit(begin, std::min(rows, begin + at_once));
}

}  // namespace

WholeState::WholeState(const Parts& parts, Device device)
    : parts_(parts),
      rank_(parts.world == nullptr ? 0 : parts.world->rank()),
      owners_(parallel::owners_of_state(parts.request)),
      host_staging_("checkpoint staging", Device::cpu, rank_ == 0 ? kMessageBytes : 0),
      device_staging_("checkpoint transfer", device, rank_ == 0 && device == Device::cuda ? kMessageBytes : 0) {
  if (parts.optimizer == nullptr) return;
  for (const optim::State& state : parts.optimizer->states())
    states_.emplace(parts.store.all()[state.piece.parameter].spec->name, &state);
}

void WholeState::collect(Stream& stream, const Take& take) {
  MEGALITH_CHECK(parts_.optimizer != nullptr, "there is no optimizer whose state could be collected");
  const DType compute = parts_.store.all().front().weight.dtype;
  const DType main = main_dtype(compute);
  const auto give = [&](const std::string& name, TensorKind kind, const Tensor& whole) {
    if (rank_ == 0) take({name, kind, whole});
  };
  for (size_t i = 0; i < owners_.size(); ++i) {
    const parallel::ParameterSpec& spec = parts_.request.table.specs()[i];
    const Tensor weights = assemble(stream, i, &optim::State::weight, compute, whole_);
    give(spec.name, TensorKind::weights, weights);
    if (compute != main) {
      const Tensor remainder = assemble(stream, i, &optim::State::remainder, DType::i16, whole_remainder_);
      if (rank_ == 0) {
        const Tensor master = in_memory(whole_master_, main, spec.shape);
        optim::join_masters(weights, remainder, master);
        give(spec.name, TensorKind::master, master);
      }
    }
    give(spec.name, TensorKind::exp_avg, assemble(stream, i, &optim::State::exp_avg, main, whole_));
    give(spec.name, TensorKind::exp_avg_sq, assemble(stream, i, &optim::State::exp_avg_sq, main, whole_));
  }
}

// On rank 0 the whole tensor, elsewhere none.
Tensor WholeState::assemble(Stream& stream, size_t parameter, Part part, DType dtype, std::vector<std::byte>& memory) {
  const parallel::ParameterSpec& spec = parts_.request.table.specs()[parameter];
  const Tensor whole = rank_ == 0 ? in_memory(memory, dtype, spec.shape) : Tensor();
  for (const parallel::OwnedBox& owned : owners_[parameter]) {
    const Tensor held = owned.rank == rank_ ? held_part(spec, owned.box, part) : Tensor();
    if (rank_ == 0) {
      place_box(stream, owned, held, whole);
    } else if (held) {
      send_box(stream, held);
    }
  }
  return whole;
}

void WholeState::send_box(Stream& stream, const Tensor& held) const {
  for_each_message(held.rows(), held.cols() * size_of(held.dtype), [&](int64_t begin, int64_t end) {
    parts_.world->send(stream, held.slice_rows(begin, end), 0).wait(stream);
  });
}

// `held` is absent where the box comes from another rank.
void WholeState::place_box(Stream& stream, const parallel::OwnedBox& owned, const Tensor& held, const Tensor& whole) {
  const Tensor box = box_of(whole, owned.box);
  for_each_message(box.rows(), box.cols() * size_of(box.dtype), [&](int64_t begin, int64_t end) {
    const ArenaScope host_scope(host_staging_);
    const ArenaScope device_scope(device_staging_);
    const Shape shape{end - begin, box.cols()};
    const Tensor arrived = host_staging_.allocate("message", box.dtype, shape);
    if (held) {
      copy(stream, held.slice_rows(begin, end), arrived);
    } else if (stream.device() == Device::cpu) {
      parts_.world->receive(stream, arrived, owned.rank).wait(stream);
    } else {
      const Tensor on_device = device_staging_.allocate("message", box.dtype, shape);
      parts_.world->receive(stream, on_device, owned.rank).wait(stream);
      copy(stream, on_device, arrived);
    }
    stream.wait();
    copy_rows(arrived, box.slice_rows(begin, end));
  });
}

Tensor WholeState::held_part(const parallel::ParameterSpec& spec, const parallel::Box& box, Part part) const {
  const optim::State& state = *states_.at(spec.name);
  for (const parallel::Piece& piece : state.piece.pieces) {
    if (piece.box != box) continue;
    const parallel::Interval rows = parallel::shifted(piece.local_rows(), -state.piece.local_rows.begin);
    return as_matrix(state.*part).slice_rows(rows.begin, rows.end);
  }
  fail(ErrorKind::internal, "rank {} does not hold the part of '{}' that it owns", rank_, spec.name);
}

void WholeState::distribute(Stream& stream, const checkpoint::NamedTensor& whole) {
  if (!parts_.store.contains(whole.name)) return;
  MEGALITH_CHECK(whole.tensor.shape == parts_.store[whole.name].spec->shape, "'{}' is {}, not {}", whole.name,
                 to_string(whole.tensor.shape), to_string(parts_.store[whole.name].spec->shape));
  switch (whole.kind) {
    case TensorKind::weights:
      return fill_weights(stream, whole.name, whole.tensor);
    case TensorKind::master: {
      const Tensor weights = in_memory(whole_, DType::bf16, whole.tensor.shape);
      const Tensor remainder = in_memory(whole_remainder_, DType::i16, whole.tensor.shape);
      optim::split_masters(whole.tensor, weights, remainder);
      fill_weights(stream, whole.name, weights);
      return fill_state(stream, whole.name, &optim::State::remainder, remainder);
    }
    case TensorKind::exp_avg:
      return fill_state(stream, whole.name, &optim::State::exp_avg, whole.tensor);
    case TensorKind::exp_avg_sq:
      return fill_state(stream, whole.name, &optim::State::exp_avg_sq, whole.tensor);
  }
}

void WholeState::fill_weights(Stream& stream, const std::string& name, const Tensor& whole) const {
  const auto index = static_cast<size_t>(&parts_.store[name] - parts_.store.all().data());
  for (const parallel::HeldPiece& held : parts_.store.held_weights(index))
    upload(stream, box_of(whole, held.piece.box), held.weight);
}

void WholeState::fill_state(Stream& stream, const std::string& name, Part part, const Tensor& whole) const {
  const auto found = states_.find(name);
  if (found == states_.end()) return;
  const optim::State& state = *found->second;
  for (const parallel::Piece& piece : state.piece.pieces) {
    const parallel::Interval rows = parallel::shifted(piece.local_rows(), -state.piece.local_rows.begin);
    upload(stream, box_of(whole, piece.box), as_matrix(state.*part).slice_rows(rows.begin, rows.end));
  }
}

}  // namespace megalith::train
