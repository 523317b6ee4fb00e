#include "train/state/state_snapshot.h"

#include "core/error.h"
#include "optim/master_weights.h"
#include "train/state/state_boxes.h"

namespace megalith::train {

using checkpoint::ShardContent;
using checkpoint::TensorKind;

StateSnapshot::StateSnapshot(const Parts& parts) : device_(parts.device), pool_(1), stream_(pool_, parts.device) {
  checkpoint::ShardImage image(list_pieces(parts));
  std::unique_ptr<SharedMemory> memory = acquire_memory(parts, image.bytes());
  add_image(std::move(image), std::move(memory));
}

void StateSnapshot::add_image(const std::filesystem::path& memory_file) {
  checkpoint::ShardImage image(images_.front().image.pieces());
  auto memory = std::make_unique<SharedMemory>(memory_file, image.bytes(), device_);
  add_image(std::move(image), std::move(memory));
}

void StateSnapshot::add_image(checkpoint::ShardImage image, std::unique_ptr<SharedMemory> memory) {
  image.place_in(memory->bytes());
  images_.push_back({std::move(image), std::move(memory)});
}

std::vector<ShardContent::Piece> StateSnapshot::list_pieces(const Parts& parts) {
  std::unordered_map<std::string_view, const optim::State*> states;
  for (const optim::State& state : parts.optimizer.states())
    states.emplace(parts.store.all()[state.piece.parameter].spec->name, &state);
  std::vector<ShardContent::Piece> pieces;
  const std::vector<std::vector<parallel::OwnedBox>> owners = parallel::owners_of_state(parts.request);
  for (size_t i = 0; i < owners.size(); ++i) {
    const parallel::ParameterSpec& spec = parts.request.table.specs()[i];
    for (const parallel::OwnedBox& owned : owners[i]) {
      if (owned.rank == parts.rank) add_box(spec, owned.box, *states.at(spec.name), pieces);
    }
  }
  if (parts.histories != nullptr && parts.histories->has_slots()) add_histories(*parts.histories, pieces);
  return pieces;
}

void StateSnapshot::add_histories(const model::Precision& precision, std::vector<ShardContent::Piece>& pieces) {
  for (size_t i = 0; i < precision.linears().size(); ++i) {
    const Tensor history = precision.history_of(i);
    copies_.push_back({history, pieces.size()});
    pieces.push_back({precision.linears()[i] + ".weight", TensorKind::amax_history, DType::f32, history.shape,
                      checkpoint::whole_box(history.shape)});
  }
}

void StateSnapshot::add_box(const parallel::ParameterSpec& spec, const parallel::Box& box, const optim::State& state,
                            std::vector<ShardContent::Piece>& pieces) {
  const checkpoint::Box stored = to_stored(box, spec.shape);
  const auto add = [&](TensorKind kind, DType dtype, const Tensor& from) {
    copies_.push_back({rows_of_box(state.piece, box, from), pieces.size()});
    pieces.push_back({spec.name, kind, dtype, spec.shape, stored});
    return pieces.size() - 1;
  };
  const size_t weights = add(TensorKind::weights, state.weight.dtype, state.weight);
  if (state.remainder)
    masters_.push_back({.weights = weights, .master = add(TensorKind::master, DType::f32, state.remainder)});
  add(TensorKind::exp_avg, state.exp_avg.dtype, state.exp_avg);
  add(TensorKind::exp_avg_sq, state.exp_avg_sq.dtype, state.exp_avg_sq);
}

std::unique_ptr<SharedMemory> StateSnapshot::acquire_memory(const Parts& parts, int64_t bytes) {
  if (!parts.memory_file.empty()) {
    try {
      return std::make_unique<SharedMemory>(parts.memory_file, bytes, parts.device);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      why_not_shared_ = error.what();
    }
  }
  return std::make_unique<SharedMemory>("", bytes, parts.device);
}

// Of a master weight the half that is not in the weight itself arrives first, in the back of its place.
Tensor StateSnapshot::destination(const Copy& copy) const {
  const Tensor whole = image().tensor(copy.piece);
  auto* end = static_cast<std::byte*>(whole.data) + whole.bytes();
  return Tensor(end - copy.from.bytes(), copy.from.dtype, copy.from.shape);
}

void StateSnapshot::take(Stream& stream) {
  ready_.record(stream);
  ready_.hold(stream_);
  std::vector<TensorCopy> copies;
  for (const Copy& each : copies_) copies.push_back({.from = each.from, .to = destination(each)});
  copy(stream_, copies);
  copied_.record(stream_);
}

void StateSnapshot::finish(ThreadPool& pool) {
  copied_.wait();
  pool.run(std::ssize(masters_), [&](int64_t i) {
    const Master& each = masters_[static_cast<size_t>(i)];
    optim::join_masters_in_place(image().tensor(each.weights), image().tensor(each.master));
  });
}

}  // namespace megalith::train
