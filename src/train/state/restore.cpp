#include "train/state/restore.h"

#include <algorithm>

#include "config/derived.h"
#include "config/load.h"
#include "core/error.h"
#include "optim/master_weights.h"
#include "train/state/state_boxes.h"

namespace megalith::train {

namespace {

using checkpoint::Loaded;
using checkpoint::TensorInfo;
using checkpoint::TensorKind;

// Where the values of weights are most exact.
TensorKind exact_weights(const Loaded& checkpoint, const std::string& name) {
  return checkpoint.has(TensorKind::master, name) ? TensorKind::master : TensorKind::weights;
}

std::vector<TensorKind> kinds_needed(const Loaded& checkpoint, const RestoreParts& parts, const std::string& name) {
  std::vector<TensorKind> kinds = {exact_weights(checkpoint, name)};
  if (parts.optimizer != nullptr && parts.has_moments)
    kinds.insert(kinds.end(), {TensorKind::exp_avg, TensorKind::exp_avg_sq});
  return kinds;
}

// From bf16 or fp32 to either; everything else only to itself.
bool can_become(DType from, DType to) {
  return from == to || ((from == DType::bf16 || from == DType::f32) && (to == DType::bf16 || to == DType::f32));
}

class Restorer {
 public:
  Restorer(Stream& stream, Loaded& checkpoint, const RestoreParts& parts)
      : stream_(stream), checkpoint_(checkpoint), parts_(parts) {}

  void fill_weights(size_t parameter) {
    const std::string& name = parts_.store.all()[parameter].spec->name;
    for (const parallel::HeldPiece& held : parts_.store.held_weights(parameter)) {
      // Stored weights of this type are the masters' already.
      const TensorInfo* stored = checkpoint_.find(TensorKind::weights, name);
      const bool as_stored = stored != nullptr && stored->dtype == held.weight.dtype;
      const Tensor values =
          read(as_stored ? TensorKind::weights : exact_weights(checkpoint_, name), name, held.piece.box);
      upload(as_type(values, held.weight.dtype), held.weight);
    }
  }

  void fill_state(const optim::State& state) {
    const std::string& name = parts_.store.all()[state.piece.parameter].spec->name;
    for (const parallel::Piece& piece : state.piece.pieces) {
      const auto rows = [&](const Tensor& tensor) { return rows_of_box(state.piece, piece.box, tensor); };
      if (state.remainder) {
        const Tensor master = as_type(read(exact_weights(checkpoint_, name), name, piece.box), DType::f32);
        const Tensor weights = room(weights_, DType::bf16, master.shape);
        const Tensor remainder = room(remainder_, DType::i16, master.shape);
        optim::split_masters(master, weights, remainder);
        upload(weights, rows(state.weight));
        upload(remainder, rows(state.remainder));
      }
      if (!parts_.has_moments) continue;
      upload(as_type(read(TensorKind::exp_avg, name, piece.box), state.exp_avg.dtype), rows(state.exp_avg));
      upload(as_type(read(TensorKind::exp_avg_sq, name, piece.box), state.exp_avg_sq.dtype), rows(state.exp_avg_sq));
    }
  }

 private:
  static Tensor room(std::vector<std::byte>& memory, DType dtype, const Shape& shape) {
    memory.resize(static_cast<size_t>(shape.elements() * size_of(dtype)));
    return Tensor(memory.data(), dtype, shape);
  }

  Tensor read(TensorKind kind, const std::string& name, const parallel::Box& box) {
    const TensorInfo& info = *checkpoint_.find(kind, name);
    const Tensor values = room(read_, info.dtype, {box.rows.size(), box.columns.size()});
    checkpoint_.load_box(kind, name, to_stored(box, info.shape), values);
    return values;
  }

  Tensor as_type(const Tensor& values, DType dtype) {
    if (values.dtype == dtype) return values;
    const Tensor converted = room(converted_, dtype, values.shape);
    for (int64_t i = 0; i < values.elements(); ++i) {
      if (dtype == DType::bf16) {
        converted.as<bfloat16>()[i] = split_float(values.as<float>()[i]).high;
      } else {
        converted.as<float>()[i] = static_cast<float>(values.as<bfloat16>()[i]);
      }
    }
    return converted;
  }

  // The memory of `from` is used again as soon as this returns.
  void upload(const Tensor& from, const Tensor& to) {
    copy(stream_, from, to);
    stream_.wait();
  }

  Stream& stream_;
  Loaded& checkpoint_;
  const RestoreParts& parts_;
  std::vector<std::byte> read_, converted_, weights_, remainder_;
};

}  // namespace

void check_fit(const Loaded& checkpoint, const RestoreParts& parts) {
  const DType compute = parts.store.all().front().weight.dtype;
  for (const TensorInfo& held : checkpoint.manifest().tensors) {
    if (!parts.table.contains(held.name)) {
      user_error("{} does not fit this config: it holds {}, which this model does not have", checkpoint.path().string(),
                 held.name);
    }
  }
  for (const parallel::ParameterSpec& spec : parts.table.specs()) {
    for (const TensorKind kind : kinds_needed(checkpoint, parts, spec.name)) {
      const TensorInfo* held = checkpoint.find(kind, spec.name);
      if (held == nullptr) {
        user_error("{} does not fit this config: it has no {} of {}", checkpoint.path().string(), name_of(kind),
                   spec.name);
      }
      if (held->shape != spec.shape || !can_become(held->dtype, compute)) {
        user_error("{} does not fit this config: {} of {} are {} {} there, {} {} here", checkpoint.path().string(),
                   name_of(kind), spec.name, name_of(held->dtype), to_string(held->shape), name_of(compute),
                   to_string(spec.shape));
      }
    }
  }
}

void check_heads(const Loaded& checkpoint, const config::Model& model) {
  const std::vector<config::Source> sources{{.name = "checkpoint", .text = checkpoint.manifest().state.config}};
  if (sources.front().text.empty()) return;
  const config::Model trained = config::load(sources, {}).model;
  const auto heads = [](const config::Model& of) {
    return fmt::format("{} heads of width {} in {} query groups", of.num_attention_heads, config::kv_channels(of),
                       config::num_query_groups(of));
  };
  if (trained.hidden_size != model.hidden_size || heads(trained) == heads(model)) return;
  user_error("{} does not fit this config: it was trained with {}, the config has {}", checkpoint.path().string(),
             heads(trained), heads(model));
}

bool restore_histories(Stream& stream, Loaded& checkpoint, const model::Precision& precision) {
  if (!precision.has_slots()) return true;
  const auto& extra = checkpoint.manifest().state.extra;
  const auto terms = extra.find(kPrecisionTerms);
  if (terms == extra.end() || terms->second != precision.terms()) return false;
  const auto stored = [&](const std::string& linear) {
    return checkpoint.find(TensorKind::amax_history, linear + ".weight");
  };
  for (const std::string& linear : precision.linears()) {
    if (stored(linear) == nullptr) return false;
  }
  for (size_t i = 0; i < precision.linears().size(); ++i) {
    const TensorInfo& info = *stored(precision.linears()[i]);
    const Tensor history = precision.history_of(i);
    const int64_t steps = std::min(info.shape[1], history.cols());
    const int64_t operands = history.rows();
    std::vector<float> newest(static_cast<size_t>(operands * steps));
    checkpoint.load_box(TensorKind::amax_history, info.name, {.offset = Shape{0, 0}, .extent = Shape{operands, steps}},
                        Tensor(newest.data(), DType::f32, {operands, steps}));
    std::vector<float> whole(static_cast<size_t>(history.elements()), 0.0F);
    for (int64_t operand = 0; operand < operands; ++operand)
      std::copy_n(newest.data() + operand * steps, steps, whole.data() + operand * history.cols());
    copy(stream, Tensor(whole.data(), DType::f32, history.shape), history);
    stream.wait();
  }
  return true;
}

void restore(Stream& stream, Loaded& checkpoint, const RestoreParts& parts) {
  check_fit(checkpoint, parts);
  Restorer restorer(stream, checkpoint, parts);
  for (size_t i = 0; i < parts.store.all().size(); ++i) restorer.fill_weights(i);
  if (parts.optimizer == nullptr) return;
  for (const optim::State& state : parts.optimizer->states()) restorer.fill_state(state);
}

}  // namespace megalith::train
