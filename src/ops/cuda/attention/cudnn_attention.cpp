#include "ops/cuda/attention/cudnn_attention.h"

#include <cudnn_frontend.h>

#include <map>
#include <optional>
#include <unordered_map>

#include "core/cuda/check.h"
#include "ops/cuda/attention/cudnn_inputs.h"

namespace megalith::ops::cuda {

namespace {

namespace fe = cudnn_frontend;
using TensorAttributes = fe::graph::Tensor_attributes;
using Symbol = std::shared_ptr<TensorAttributes>;

enum Uid : int64_t { kQ = 1, kK, kV, kOut, kStats, kDOut, kDQ, kDK, kDV, kQueryLengths, kKeyLengths };
// Of the table that says where each document begins in a tensor, and in its gradient, which is laid out alike.
constexpr int64_t kOffsetsUid = 100;

using Pointers = std::unordered_map<int64_t, void*>;

// Of queries, and of keys.
constexpr int64_t kTile = 128;

// Everything a graph depends on.
struct GraphKey {
  bool is_backward = false;
  bool deterministic = false;
  int64_t documents = 0;  // 0: a sample is one document
  int64_t batch = 0, heads = 0, kv_heads = 0, length = 0, keys = 0, head_dim = 0;
  double scale = 0.0;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0, stats_stride = 0;
  int64_t dout_stride = 0, dq_stride = 0, dk_stride = 0, dv_stride = 0;

  bool is_square() const { return length == keys; }
  // Such samples are computed with a mask of their lengths. Without it cuDNN 9.19 makes the mask itself, from memory of
  // the host that is gone when a recorded graph runs again: NaN, kernels that never end, a crash.
  bool ends_inside_a_tile() const { return documents == 0 && (length % kTile != 0 || keys % kTile != 0); }
  auto operator<=>(const GraphKey&) const = default;
};

struct BuiltGraph {
  std::unique_ptr<fe::graph::Graph> graph;  // null: cuDNN refused the shape
  int64_t workspace_bytes = 0;
};

void check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) fail(ErrorKind::device, "{}: {}", call, cudnnGetErrorString(status));
}

class Handle {
 public:
  explicit Handle(Stream& stream) {
    check(cudnnCreate(&handle_), "cudnnCreate");
    check(cudnnSetStream(handle_, static_cast<cudaStream_t>(stream.native())), "cudnnSetStream");
  }
  ~Handle() { cudnnDestroy(handle_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

// With documents, these are cuDNN's batch: sequences of at most `length` rows, each somewhere in the matrices.
int64_t sequences(const GraphKey& key) {
  return key.documents > 0 ? key.documents : key.batch;
}

Symbol vector(fe::graph::Graph& graph, int64_t uid, int64_t elements, fe::DataType_t type) {
  return graph.tensor(
      TensorAttributes().set_uid(uid).set_dim({elements, 1, 1, 1}).set_stride({1, 1, 1, 1}).set_data_type(type));
}

// Where each document begins; absent where a sample is one.
struct Offsets {
  Symbol q, k, v, out, stats;
};

Offsets add_offsets(fe::graph::Graph& graph, const GraphKey& key) {
  if (key.documents == 0) return {};
  const auto table = [&](Uid uid) {
    return vector(graph, kOffsetsUid + uid, key.documents + 1, fe::DataType_t::INT64);
  };
  return {.q = table(kQ), .k = table(kK), .v = table(kV), .out = table(kOut), .stats = table(kStats)};
}

// Columns of a (batch * length, heads * head_dim) matrix, seen as (batch, heads, length, head_dim).
void describe(TensorAttributes& tensor, const GraphKey& key, Uid uid, int64_t heads, int64_t stride,
              const Symbol& offsets) {
  const bool is_of_keys = uid == kK || uid == kV || uid == kDK || uid == kDV;
  const int64_t length = is_of_keys ? key.keys : key.length;
  tensor.set_uid(uid)
      .set_dim({sequences(key), heads, length, key.head_dim})
      .set_stride({length * stride, key.head_dim, stride, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
  if (offsets) tensor.set_ragged_offset(offsets);
}

// The backward pass of documents takes statistics by token: from others its frontend makes gradients of zero
// (NVIDIA/cudnn-frontend, pull request 462).
bool has_stats_by_token(const GraphKey& key) {
  return key.is_backward && key.documents > 0;
}

void describe_stats(TensorAttributes& tensor, const GraphKey& key, const Symbol& offsets) {
  tensor.set_uid(kStats).set_dim({sequences(key), key.heads, key.length, 1}).set_data_type(fe::DataType_t::FLOAT);
  if (has_stats_by_token(key)) {
    tensor.set_stride({key.heads * key.length, 1, key.heads, 1});
  } else {
    tensor.set_stride({key.heads * key.stats_stride, key.stats_stride, 1, 1});
  }
  if (offsets) tensor.set_ragged_offset(offsets);
}

Symbol matrix(fe::graph::Graph& graph, const GraphKey& key, Uid uid, int64_t heads, int64_t stride,
              const Symbol& offsets) {
  TensorAttributes tensor;
  describe(tensor, key, uid, heads, stride, offsets);
  return graph.tensor(tensor);
}

template <class Options>
void add_lengths(fe::graph::Graph& graph, const GraphKey& key, Options& options) {
  if (key.documents == 0 && !key.ends_inside_a_tile()) return;
  options.set_padding_mask(true)
      .set_seq_len_q(vector(graph, kQueryLengths, sequences(key), fe::DataType_t::INT32))
      .set_seq_len_kv(vector(graph, kKeyLengths, sequences(key), fe::DataType_t::INT32));
}

void add_forward(fe::graph::Graph& graph, const GraphKey& key) {
  const Offsets offsets = add_offsets(graph, key);
  const Symbol q = matrix(graph, key, kQ, key.heads, key.q_stride, offsets.q);
  const Symbol k = matrix(graph, key, kK, key.kv_heads, key.k_stride, offsets.k);
  const Symbol v = matrix(graph, key, kV, key.kv_heads, key.v_stride, offsets.v);
  auto options = fe::graph::SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(true)
                     .set_causal_mask(key.is_square())
                     .set_causal_mask_bottom_right(!key.is_square())
                     .set_attn_scale(static_cast<float>(key.scale));
  add_lengths(graph, key, options);
  const auto [out, stats] = graph.sdpa(q, k, v, options);
  out->set_output(true);
  describe(*out, key, kOut, key.heads, key.out_stride, offsets.out);
  stats->set_output(true);
  describe_stats(*stats, key, offsets.stats);
}

void add_backward(fe::graph::Graph& graph, const GraphKey& key) {
  const Offsets offsets = add_offsets(graph, key);
  const Symbol q = matrix(graph, key, kQ, key.heads, key.q_stride, offsets.q);
  const Symbol k = matrix(graph, key, kK, key.kv_heads, key.k_stride, offsets.k);
  const Symbol v = matrix(graph, key, kV, key.kv_heads, key.v_stride, offsets.v);
  const Symbol out = matrix(graph, key, kOut, key.heads, key.out_stride, offsets.out);
  const Symbol dout = matrix(graph, key, kDOut, key.heads, key.dout_stride, offsets.out);
  TensorAttributes stats;
  describe_stats(stats, key, offsets.stats);
  auto options = fe::graph::SDPA_backward_attributes()
                     .set_name("attention_backward")
                     .set_causal_mask(key.is_square())
                     .set_causal_mask_bottom_right(!key.is_square())
                     .set_attn_scale(static_cast<float>(key.scale))
                     .set_deterministic_algorithm(key.deterministic);
  add_lengths(graph, key, options);
  if (key.documents > 0) {
    options.set_max_total_seq_len_q(key.batch * key.length).set_max_total_seq_len_kv(key.batch * key.length);
  }
  const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, graph.tensor(stats), options);
  dq->set_output(true);
  describe(*dq, key, kDQ, key.heads, key.dq_stride, offsets.q);
  dk->set_output(true);
  describe(*dk, key, kDK, key.kv_heads, key.dk_stride, offsets.k);
  dv->set_output(true);
  describe(*dv, key, kDV, key.kv_heads, key.dv_stride, offsets.v);
}

// The first plan of cuDNN's heuristics that builds.
fe::error_t build(fe::graph::Graph& graph, cudnnHandle_t handle, const GraphKey& key) {
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  key.is_backward ? add_backward(graph, key) : add_forward(graph, key);
  fe::error_t status = graph.validate();
  if (status.is_good()) status = graph.build_operation_graph(handle);
  if (status.is_good()) status = graph.create_execution_plans({fe::HeurMode_t::A});
  if (status.is_good()) status = graph.check_support(handle);
  if (status.is_good()) status = graph.build_plans(handle, fe::BuildPlanPolicy_t::HEURISTICS_CHOICE);
  return status;
}

GraphKey key_of(const AttentionForward& args, const AttentionShape& shape) {
  return {.documents = shape.documents,
          .batch = shape.batch,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .length = shape.query_length,
          .keys = shape.key_length,
          .head_dim = shape.head_dim,
          .scale = args.scale,
          .q_stride = args.q.row_stride,
          .k_stride = args.k.row_stride,
          .v_stride = args.v.row_stride,
          .out_stride = args.out.row_stride,
          .stats_stride = args.log_sum_exp.row_stride};
}

GraphKey key_of(const AttentionBackward& args, const AttentionShape& shape) {
  GraphKey key = key_of(args.forward, shape);
  key.is_backward = true;
  // Statistics are read by whole tiles, also beyond the end of a row.
  if (key.documents == 0 && key.length % kTile != 0) key.stats_stride = round_up(key.length, kTile);
  key.deterministic = args.deterministic;
  key.dout_stride = args.dout.row_stride;
  key.dq_stride = args.dq.row_stride;
  key.dk_stride = args.dk.row_stride;
  key.dv_stride = args.dv.row_stride;
  return key;
}

Pointers pointers_of(const AttentionForward& args) {
  return {
      {kQ, args.q.data}, {kK, args.k.data}, {kV, args.v.data}, {kOut, args.out.data}, {kStats, args.log_sum_exp.data}};
}

// Memory for one call, piece by piece.
class Workspace {
 public:
  explicit Workspace(const Tensor& scratch) : next_(static_cast<std::byte*>(scratch.data)), left_(scratch.bytes()) {}

  template <class T>
  T* take(int64_t count) {
    constexpr int64_t kAlignment = 256;
    const int64_t bytes = round_up(count * static_cast<int64_t>(sizeof(T)), kAlignment);
    MEGALITH_CHECK(bytes <= left_, "cuDNN's attention needs {} bytes of scratch, {} are left", bytes, left_);
    T* piece = reinterpret_cast<T*>(next_);
    next_ += bytes;
    left_ -= bytes;
    return piece;
  }
  std::byte* rest() const { return next_; }
  int64_t left() const { return left_; }

 private:
  std::byte* next_;
  int64_t left_;
};

// The tables with which cuDNN finds the documents, made on the device out of their bounds.
class DocumentFinder {
 public:
  DocumentFinder(const GraphKey& key, const Tensor& bounds, Workspace& space, Pointers& pointers)
      : key_(key), space_(space), pointers_(pointers) {
    tables_.bounds = bounds.as<int32_t>();
    tables_.documents = static_cast<int32_t>(key.documents);
    tables_.length = static_cast<int32_t>(key.length);
    tables_.heads = static_cast<int32_t>(key.heads);
    tables_.lengths = space.take<int32_t>(key.documents);
    pointers[kQueryLengths] = pointers[kKeyLengths] = tables_.lengths;
  }

  void add(Uid uid, int64_t row_elements, bool by_head = false) {
    auto* offsets = space_.take<int64_t>(key_.documents + 1);
    tables_.tables[tables_.count++] = {offsets, row_elements, by_head};
    pointers_[kOffsetsUid + uid] = offsets;
  }

  void add_matrices() {
    add(kQ, key_.q_stride);
    add(kK, key_.k_stride);
    add(kV, key_.v_stride);
    add(kOut, key_.out_stride);
  }

  void launch(cudaStream_t stream) const {
    megalith::cuda::check(launch_document_tables(tables_, stream), "launching the tables of documents");
  }

 private:
  const GraphKey& key_;
  Workspace& space_;
  Pointers& pointers_;
  DocumentTables tables_;
};

void give_lengths(const GraphKey& key, Workspace& space, Pointers& pointers, cudaStream_t stream) {
  const SampleLengths lengths{.queries = space.take<int32_t>(key.batch),
                              .keys = space.take<int32_t>(key.batch),
                              .batch = static_cast<int32_t>(key.batch),
                              .query_length = static_cast<int32_t>(key.length),
                              .key_length = static_cast<int32_t>(key.keys)};
  pointers[kQueryLengths] = lengths.queries;
  pointers[kKeyLengths] = lengths.keys;
  megalith::cuda::check(launch_sample_lengths(lengths, stream), "launching the lengths of samples");
}

void pad_statistics(const GraphKey& key, const Tensor& statistics, Workspace& space, Pointers& pointers,
                    cudaStream_t stream) {
  const PaddedStatistics copy{.rows = statistics.as<float>(),
                              .stride = statistics.row_stride,
                              .padded = space.take<float>(key.batch * key.heads * key.stats_stride),
                              .padded_length = key.stats_stride,
                              .count = static_cast<int32_t>(key.batch * key.heads),
                              .length = static_cast<int32_t>(key.length)};
  pointers[kStats] = copy.padded;
  megalith::cuda::check(launch_padded_statistics(copy, stream), "launching the copy of statistics");
}

// Documents begin at the same elements of a matrix and of its gradient.
bool gradients_are_laid_out_alike(const GraphKey& key) {
  return key.q_stride == key.dq_stride && key.k_stride == key.dk_stride && key.v_stride == key.dv_stride &&
         key.out_stride == key.dout_stride;
}

}  // namespace

struct CudnnAttention::State {
  explicit State(Stream& stream) : handle(stream), native(static_cast<cudaStream_t>(stream.native())) {}

  const BuiltGraph& graph_for(const GraphKey& key) {
    const auto [entry, is_new] = graphs.try_emplace(key);
    if (is_new) entry->second = make(key);
    return entry->second;
  }

  BuiltGraph make(const GraphKey& key) {
    auto graph = std::make_unique<fe::graph::Graph>();
    int64_t bytes = 0;
    try {
      fe::error_t status = build(*graph, handle.get(), key);
      if (status.is_good()) status = graph->get_workspace_size(bytes);
      if (status.is_good()) {
        ++built;
        return {.graph = std::move(graph), .workspace_bytes = bytes};
      }
      refuse(status.get_message());
    } catch (const std::exception& error) {  // parts of the frontend throw instead
      refuse(error.what());
    }
    return {};
  }

  void refuse(std::string reason) {
    ++refused;
    last_refusal = std::move(reason);
  }

  void run(const BuiltGraph& graph, Pointers& pointers, void* workspace) const {
    fe::error_t status = graph.graph->execute(handle.get(), pointers, workspace);
    if (status.is_bad()) fail(ErrorKind::device, "cuDNN failed: {}", status.get_message());
  }

  Handle handle;
  cudaStream_t native;
  std::map<GraphKey, BuiltGraph> graphs;
  int64_t built = 0;
  int64_t refused = 0;
  std::string last_refusal;
};

CudnnAttention::CudnnAttention(Stream& stream) : state_(std::make_unique<State>(stream)) {}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::run(const AttentionForward& args, const AttentionShape& shape) {
  const GraphKey key = key_of(args, shape);
  const BuiltGraph& built = state_->graph_for(key);
  if (!built.graph) return false;
  Pointers pointers = pointers_of(args);
  Workspace space(args.scratch);
  if (key.documents > 0) {
    DocumentFinder finder(key, args.document_bounds, space, pointers);
    finder.add_matrices();
    finder.add(kStats, key.stats_stride, true);
    finder.launch(state_->native);
  }
  if (key.ends_inside_a_tile()) give_lengths(key, space, pointers, state_->native);
  MEGALITH_CHECK(built.workspace_bytes <= space.left(), "cuDNN's attention needs {} bytes of scratch, it has {}",
                 built.workspace_bytes, space.left());
  state_->run(built, pointers, space.rest());
  return true;
}

bool CudnnAttention::run(const AttentionBackward& args, const AttentionShape& shape) {
  const AttentionForward& forward = args.forward;
  const GraphKey key = key_of(args, shape);
  const bool has_documents = key.documents > 0;
  if (has_documents && !gradients_are_laid_out_alike(key)) return false;
  const BuiltGraph& built = state_->graph_for(key);
  if (!built.graph) return false;
  Pointers pointers = pointers_of(forward);
  pointers.insert({{kDOut, args.dout.data}, {kDQ, args.dq.data}, {kDK, args.dk.data}, {kDV, args.dv.data}});
  Workspace space(forward.scratch);
  std::optional<DocumentFinder> finder;
  if (has_documents) {
    pointers[kStats] = space.take<float>(forward.q.rows() * key.heads);
    finder.emplace(key, forward.document_bounds, space, pointers);
    finder->add_matrices();
    finder->add(kStats, key.heads);
  }
  if (key.ends_inside_a_tile()) give_lengths(key, space, pointers, state_->native);
  if (key.stats_stride != forward.log_sum_exp.row_stride) {
    pad_statistics(key, forward.log_sum_exp, space, pointers, state_->native);
  }
  // On Hopper the deterministic algorithm keeps the gradients of all weights, heads * length^2 of them.
  const bool fits = built.workspace_bytes <= space.left();
  if (!fits && (args.deterministic || has_documents)) return false;
  MEGALITH_CHECK(fits, "cuDNN's attention needs {} bytes of scratch, it has {}", built.workspace_bytes, space.left());
  if (has_documents) {
    finder->launch(state_->native);
    megalith::cuda::check(launch_statistics_by_token({.by_head = forward.log_sum_exp.as<float>(),
                                                      .by_head_stride = forward.log_sum_exp.row_stride,
                                                      .by_token = static_cast<float*>(pointers[kStats]),
                                                      .batch = static_cast<int32_t>(key.batch),
                                                      .heads = static_cast<int32_t>(key.heads),
                                                      .length = static_cast<int32_t>(key.length)},
                                                     state_->native),
                          "launching the transpose of statistics");
  }
  state_->run(built, pointers, space.rest());
  return true;
}

int64_t CudnnAttention::graphs_built() const {
  return state_->built;
}
int64_t CudnnAttention::graphs_failed() const {
  return state_->refused;
}
const std::string& CudnnAttention::last_refusal() const {
  return state_->last_refusal;
}

}  // namespace megalith::ops::cuda
