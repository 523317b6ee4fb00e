#include "ops/cuda/cudnn_attention.h"

#include <cudnn_frontend.h>

#include <map>
#include <unordered_map>

namespace megalith::ops::cuda {

namespace {

namespace fe = cudnn_frontend;
using TensorAttributes = fe::graph::Tensor_attributes;
using Symbol = std::shared_ptr<TensorAttributes>;

enum Uid : int64_t { kQ = 1, kK, kV, kOut, kStats, kDOut, kDQ, kDK, kDV };

// Everything a plan depends on.
struct PlanKey {
  bool is_backward = false;
  bool deterministic = false;
  int64_t batch = 0, heads = 0, kv_heads = 0, length = 0, keys = 0, head_dim = 0;
  double scale = 0.0;
  int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0, stats_stride = 0;
  int64_t dout_stride = 0, dq_stride = 0, dk_stride = 0, dv_stride = 0;

  bool is_square() const { return length == keys; }
  auto operator<=>(const PlanKey&) const = default;
};

struct Plan {
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

// Columns of a (batch * length, heads * head_dim) matrix, seen as (batch, heads, length, head_dim).
void describe(TensorAttributes& tensor, const PlanKey& key, Uid uid, int64_t heads, int64_t stride) {
  const bool is_of_keys = uid == kK || uid == kV || uid == kDK || uid == kDV;
  const int64_t length = is_of_keys ? key.keys : key.length;
  tensor.set_uid(uid)
      .set_dim({key.batch, heads, length, key.head_dim})
      .set_stride({length * stride, key.head_dim, stride, 1})
      .set_data_type(fe::DataType_t::BFLOAT16);
}

void describe_stats(TensorAttributes& tensor, const PlanKey& key) {
  tensor.set_uid(kStats)
      .set_dim({key.batch, key.heads, key.length, 1})
      .set_stride({key.heads * key.stats_stride, key.stats_stride, 1, 1})
      .set_data_type(fe::DataType_t::FLOAT);
}

Symbol matrix(fe::graph::Graph& graph, const PlanKey& key, Uid uid, int64_t heads, int64_t stride) {
  TensorAttributes tensor;
  describe(tensor, key, uid, heads, stride);
  return graph.tensor(tensor);
}

void add_forward(fe::graph::Graph& graph, const PlanKey& key) {
  const Symbol q = matrix(graph, key, kQ, key.heads, key.q_stride);
  const Symbol k = matrix(graph, key, kK, key.kv_heads, key.k_stride);
  const Symbol v = matrix(graph, key, kV, key.kv_heads, key.v_stride);
  const auto options = fe::graph::SDPA_attributes()
                           .set_name("attention")
                           .set_generate_stats(true)
                           .set_causal_mask(key.is_square())
                           .set_causal_mask_bottom_right(!key.is_square())
                           .set_attn_scale(static_cast<float>(key.scale));
  const auto [out, stats] = graph.sdpa(q, k, v, options);
  out->set_output(true);
  describe(*out, key, kOut, key.heads, key.out_stride);
  stats->set_output(true);
  describe_stats(*stats, key);
}

void add_backward(fe::graph::Graph& graph, const PlanKey& key) {
  const Symbol q = matrix(graph, key, kQ, key.heads, key.q_stride);
  const Symbol k = matrix(graph, key, kK, key.kv_heads, key.k_stride);
  const Symbol v = matrix(graph, key, kV, key.kv_heads, key.v_stride);
  const Symbol out = matrix(graph, key, kOut, key.heads, key.out_stride);
  const Symbol dout = matrix(graph, key, kDOut, key.heads, key.dout_stride);
  TensorAttributes stats;
  describe_stats(stats, key);
  const auto options = fe::graph::SDPA_backward_attributes()
                           .set_name("attention_backward")
                           .set_causal_mask(key.is_square())
                           .set_causal_mask_bottom_right(!key.is_square())
                           .set_attn_scale(static_cast<float>(key.scale))
                           .set_deterministic_algorithm(key.deterministic);
  const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, graph.tensor(stats), options);
  dq->set_output(true);
  describe(*dq, key, kDQ, key.heads, key.dq_stride);
  dk->set_output(true);
  describe(*dk, key, kDK, key.kv_heads, key.dk_stride);
  dv->set_output(true);
  describe(*dv, key, kDV, key.kv_heads, key.dv_stride);
}

// The first plan of cuDNN's heuristics that builds.
fe::error_t build(fe::graph::Graph& graph, cudnnHandle_t handle, const PlanKey& key) {
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

PlanKey key_of(const AttentionShape& shape, double scale) {
  return {.batch = shape.batch,
          .heads = shape.heads,
          .kv_heads = shape.kv_heads,
          .length = shape.query_length,
          .keys = shape.key_length,
          .head_dim = shape.head_dim,
          .scale = scale};
}

}  // namespace

struct CudnnAttention::State {
  explicit State(Stream& stream) : handle(stream) {}

  const Plan& plan_for(const PlanKey& key) {
    const auto [entry, is_new] = plans.try_emplace(key);
    if (is_new) entry->second = make(key);
    return entry->second;
  }

  Plan make(const PlanKey& key) {
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

  void run(const Plan& plan, std::unordered_map<int64_t, void*> pointers, void* workspace) const {
    fe::error_t status = plan.graph->execute(handle.get(), pointers, workspace);
    if (status.is_bad()) fail(ErrorKind::device, "cuDNN's attention failed: {}", status.get_message());
  }

  Handle handle;
  std::map<PlanKey, Plan> plans;
  int64_t built = 0;
  int64_t refused = 0;
  std::string last_refusal;
};

CudnnAttention::CudnnAttention(Stream& stream) : state_(std::make_unique<State>(stream)) {}
CudnnAttention::~CudnnAttention() = default;

bool CudnnAttention::forward(const AttentionForward& args, const AttentionShape& shape) {
  PlanKey key = key_of(shape, args.scale);
  key.q_stride = args.q.row_stride;
  key.k_stride = args.k.row_stride;
  key.v_stride = args.v.row_stride;
  key.out_stride = args.out.row_stride;
  key.stats_stride = args.log_sum_exp.row_stride;
  const Plan& plan = state_->plan_for(key);
  if (!plan.graph) return false;
  MEGALITH_CHECK(plan.workspace_bytes <= args.scratch.bytes(), "cuDNN's attention needs {} bytes of scratch, it has {}",
                 plan.workspace_bytes, args.scratch.bytes());
  state_->run(
      plan,
      {{kQ, args.q.data}, {kK, args.k.data}, {kV, args.v.data}, {kOut, args.out.data}, {kStats, args.log_sum_exp.data}},
      args.scratch.data);
  return true;
}

bool CudnnAttention::backward(const AttentionBackward& args, const AttentionShape& shape) {
  PlanKey key = key_of(shape, args.scale);
  key.is_backward = true;
  key.deterministic = args.deterministic;
  key.q_stride = args.q.row_stride;
  key.k_stride = args.k.row_stride;
  key.v_stride = args.v.row_stride;
  key.out_stride = args.out.row_stride;
  key.stats_stride = args.log_sum_exp.row_stride;
  key.dout_stride = args.dout.row_stride;
  key.dq_stride = args.dq.row_stride;
  key.dk_stride = args.dk.row_stride;
  key.dv_stride = args.dv.row_stride;
  const Plan& plan = state_->plan_for(key);
  if (!plan.graph) return false;
  // On Hopper the deterministic algorithm keeps the gradients of all weights, heads * length^2 of them.
  const bool fits = plan.workspace_bytes <= args.scratch.bytes();
  if (!fits && args.deterministic) return false;
  MEGALITH_CHECK(fits, "cuDNN's attention needs {} bytes of scratch, it has {}", plan.workspace_bytes,
                 args.scratch.bytes());
  state_->run(plan,
              {{kQ, args.q.data},
               {kK, args.k.data},
               {kV, args.v.data},
               {kOut, args.out.data},
               {kStats, args.log_sum_exp.data},
               {kDOut, args.dout.data},
               {kDQ, args.dq.data},
               {kDK, args.dk.data},
               {kDV, args.dv.data}},
              args.scratch.data);
  return true;
}

int64_t CudnnAttention::plans_built() const {
  return state_->built;
}
int64_t CudnnAttention::plans_failed() const {
  return state_->refused;
}
const std::string& CudnnAttention::last_refusal() const {
  return state_->last_refusal;
}

}  // namespace megalith::ops::cuda
