#include "plan/step_time/wire_time.h"

#include <algorithm>
#include <cmath>

#include "comm/communicator.h"

namespace megalith::plan {

namespace {

constexpr double kGiga = 1e9;
constexpr double kBytesPerGbit = kGiga / 8;
// Of a message and of a collective beyond the node.
constexpr double kMessageLatency = 15e-6;
constexpr double kNetworkCallLatency = 60e-6;
// A ring's messages hide behind attention, but not all of them.
constexpr double kExposedRing = 0.3;
// Megatron's buckets.
constexpr double kBucketElements = 40e6;
constexpr double kBucketElementsPerReplica = 1e6;

double link_bandwidth(const RunFeatures& run, const Constants& constants) {
  return run.gpu.link_gb_s * kGiga * constants.link_share;
}

// Of a group with this many ranks on each node.
double network_bandwidth(const RunFeatures& run, const Constants& constants, double ranks_on_node) {
  return std::min(link_bandwidth(run, constants),
                  ranks_on_node * run.network.gbit_per_gpu * kBytesPerGbit * constants.network_share);
}

// Of an all-gather or reduce-scatter of the tensor group.
double tensor_call(const RunFeatures& run, const Constants& constants) {
  const auto t = static_cast<double>(run.tensor);
  const double bytes = 2 * run.tokens() * static_cast<double>(run.model.hidden) * (t - 1) / t;
  if (run.tensor <= run.scale_up()) return bytes / link_bandwidth(run, constants) + constants.call_latency_s;
  const auto nics = static_cast<double>(std::min(run.scale_up(), run.tensor));
  return bytes / network_bandwidth(run, constants, nics) + kNetworkCallLatency;
}

double ring_bytes(const RunFeatures& run) {
  const double kv = static_cast<double>(run.model.kv_width()) / static_cast<double>(run.tensor);
  return static_cast<double>(run.context - 1) * 4 * run.tokens() * kv;
}

// As `bench comm` measured them: a call of ranks that are `stride` apart, each of which puts so many bytes into it.
double measured_call(const RunFeatures& run, comm::Operation operation, int64_t members, int64_t stride, double bytes) {
  const Tensor tensor(nullptr, DType::e4m3, {std::max<int64_t>(1, std::llround(bytes))});
  comm::Group group{.name = "planned"};
  for (int64_t member = 0; member < members; ++member) group.ranks.push_back(static_cast<int>(member * stride));
  comm::Call call{.operation = operation, .input = tensor};
  if (operation == comm::Operation::exchange) {
    call.sends = {{1, tensor}};
    call.receives = {{1, tensor}};
  }
  return comm::seconds_alone(*run.wire, comm::cost_of(*run.wire, group, call));
}

// What Megalith calls in a layer (`plan --explain` lists it): gathers before GEMMs and reductions after them, inputs
// gathered again in backward; keys and values gathered in both passes, and the sum of their gradients.
BothPasses measured_calls_of_layer(const RunFeatures& run) {
  using comm::Operation;
  BothPasses calls;
  if (run.tensor > 1) {
    const double whole = 2 * run.tokens() * static_cast<double>(run.model.hidden);
    const auto call = [&](Operation operation, double bytes) {
      return measured_call(run, operation, run.tensor, 1, bytes);
    };
    if (run.sequence_parallel) {
      const double gather = call(Operation::all_gather, whole / static_cast<double>(run.tensor));
      const double reduce = call(Operation::reduce_scatter, whole);
      calls.forward.tensor = 2 * gather + 2 * reduce;
      calls.backward.tensor = 4 * gather + 2 * reduce;
    } else {
      calls.forward.tensor = calls.backward.tensor = 2 * call(Operation::all_reduce, whole);
    }
  }
  if (run.context > 1) {
    const double own = 4 * run.tokens() * static_cast<double>(run.model.kv_width()) / static_cast<double>(run.tensor);
    const double gather = measured_call(run, Operation::all_gather, run.context, run.tensor, own);
    calls.forward.context = gather;
    calls.backward.context = gather + measured_call(run, Operation::reduce_scatter, run.context, run.tensor,
                                                    own * static_cast<double>(run.context));
  }
  return calls;
}

double exposed_ring(double wire, double attention) {
  return std::max(kExposedRing * wire, wire - attention);
}

}  // namespace

BothPasses exposed_calls_of_layer(const RunFeatures& run, const Constants& constants, const BothPasses& attention) {
  if (run.wire) return measured_calls_of_layer(run);
  BothPasses calls;
  if (run.tensor > 1) {
    // Four gathers and reductions each way; with sequence parallelism backward gathers two inputs again.
    const double exposed = tensor_call(run, constants) * (run.tensor_overlaps ? constants.overlapped_tensor : 1.0);
    calls.forward.tensor = 4 * exposed;
    calls.backward.tensor = (run.sequence_parallel ? 6 : 4) * exposed;
  }
  if (run.context > 1) {
    const bool in_node = run.tensor * run.context <= run.scale_up();
    const double bandwidth = in_node ? link_bandwidth(run, constants) : network_bandwidth(run, constants, 1);
    const double wire = ring_bytes(run) / bandwidth;
    calls.forward.context = run.context_overlaps ? exposed_ring(wire, attention.forward.compute) : wire;
    calls.backward.context = run.context_overlaps ? exposed_ring(2 * wire, attention.backward.compute) : 2 * wire;
  }
  return calls;
}

double message_time(const RunFeatures& run, const Constants& constants) {
  const double bytes = 2 * run.tokens() * static_cast<double>(run.model.hidden) / static_cast<double>(run.tensor);
  if (run.wire) return measured_call(run, comm::Operation::exchange, 2, run.gpus / run.pipeline, bytes);
  const bool in_node = run.gpus <= run.scale_up();
  return bytes / (in_node ? link_bandwidth(run, constants) : network_bandwidth(run, constants, 1)) + kMessageLatency;
}

DataCalls data_calls(const RunFeatures& run, const Constants& constants, double weights) {
  const bool fsdp = run.sharding == Sharding::fsdp;
  const auto n = static_cast<double>(fsdp ? run.shard_group * run.context : run.replicas());
  if (n <= 1) return {};
  const double on_node =
      std::min(n, std::max(1.0, std::floor(static_cast<double>(run.scale_up()) / static_cast<double>(run.tensor))));
  const bool in_node = n <= on_node;
  const double bandwidth = in_node ? link_bandwidth(run, constants) : network_bandwidth(run, constants, on_node);
  const double nodes = std::ceil(n / on_node);
  const double bucket = std::max(kBucketElements, kBucketElementsPerReplica * n);
  const double buckets = std::ceil(weights / bucket);
  const double hops = in_node ? constants.call_latency_s : constants.network_hop_s * nodes;
  const double share = (n - 1) / n;
  DataCalls calls;
  if (run.wire) {
    const auto all = [&](comm::Operation operation, double bytes) {
      return buckets * measured_call(run, operation, static_cast<int64_t>(n), run.tensor, bytes / buckets);
    };
    const double gradients = static_cast<double>(run.gradient_bytes) * weights;
    const bool sums = run.sharding == Sharding::none;
    calls.reduce = all(sums ? comm::Operation::all_reduce : comm::Operation::reduce_scatter, gradients);
    calls.gather = sums ? 0.0 : all(comm::Operation::all_gather, 2.0 * weights / n);
    calls.last_bucket = calls.reduce / std::max(1.0, buckets);
    return calls;
  }
  calls.reduce = static_cast<double>(run.gradient_bytes) * weights * share / bandwidth + hops * buckets;
  calls.gather = 2.0 * weights * share / bandwidth + hops * buckets;
  // An all-reduce is both, of the gradients.
  if (run.sharding == Sharding::none) {
    calls.reduce *= 2;
    calls.gather = 0;
  }
  calls.last_bucket = calls.reduce / std::max(1.0, buckets);
  return calls;
}

}  // namespace megalith::plan
