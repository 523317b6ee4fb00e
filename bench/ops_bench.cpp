#include <benchmark/benchmark.h>

#include "core/device.h"
#include "ops/cases/op_case.h"
#include "ops/op.h"

// The large cases of every operation (tests/ops/cases), at the shapes of GPT-3 125M and of the demo, on all cores and,
// where there is one, on a GPU. GFLOP/s of "gemm/2048x2048x2048 nn" is what to compare the others with; attention
// counts the FLOPs of the causal half only. Names are operation/shape/dtype/device.

namespace megalith::ops {
namespace {

using testing::OpCase;

void report(benchmark::State& state, const OpCost& cost) {
  const bool computes = cost.flops > 0.0;
  state.counters[computes ? "GFLOP/s" : "GB/s"] =
      benchmark::Counter((computes ? cost.flops : cost.bytes) / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

// Runs the case once, and the first call of its operation as often as it takes to time it: then all of its tensors are
// there.
void time_case(benchmark::State& state, const OpCase& c, DType dtype, Device device) {
  ThreadPool pool(available_cores());
  Stream stream(pool, device);
  const testing::MadeOn made_on(stream);
  bool is_timed = false;
  const OpObservation observation(stream, [&](const OpCall& call) {
    if (is_timed || call.name != c.operation) return;
    is_timed = true;
    call.run(stream);
    for (auto _ : state) {
      StreamMark begin, end;
      begin.record(stream);
      call.run(stream);
      end.record(stream);
      end.wait();
      state.SetIterationTime(StreamMark::seconds_between(begin, end));
    }
    report(state, call.cost);
  });
  c.run(stream, dtype, c.inputs());
}

void add_all(Device device) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const OpCase& c : testing::all_cases(testing::Size::large)) {
      const std::string name =
          fmt::format("{}/{}/{}/{}", c.operation, c.shape, name_of(dtype), device == Device::cpu ? "cpu" : "gpu");
      benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { time_case(state, c, dtype, device); })
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
}

}  // namespace
}  // namespace megalith::ops

int main(int argc, char** argv) {
  megalith::ops::add_all(megalith::Device::cpu);
  if (!megalith::find_accelerators().empty()) megalith::ops::add_all(megalith::Device::cuda);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
