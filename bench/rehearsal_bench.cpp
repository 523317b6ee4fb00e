#include <benchmark/benchmark.h>

#include "config/load.h"
#include "config/validate.h"
#include "data/tokenizer/tokenizer.h"
#include "plan/rehearsal.h"
#include "plan/run_request.h"

// How long it takes to know the memory and the work of ranks that do not exist (plan/rehearsal.h):
//
//   rehearsal_bench recipes/llama3.1-405b.yaml
//
// Each recipe is rehearsed as for a GPU, whatever this machine has.
namespace megalith::plan {
namespace {

engine::StageRequest request_of(const std::string& recipe) {
  config::Run run = config::load(std::vector<std::filesystem::path>{recipe}, {"trainer.accelerator=gpu"});
  config::validate(run);
  return stage_request(run, data::vocabulary_of(run.model.tokenizer).size);
}

void memory_of_one_rank(benchmark::State& state, const engine::StageRequest& request) {
  for (auto _ : state) benchmark::DoNotOptimize(memory_of_rank(request, 0));
}

void memory_of_all_stages(benchmark::State& state, const engine::StageRequest& request) {
  for (auto _ : state) benchmark::DoNotOptimize(memory_of_worst_rank(request));
}

void work_of_one_rank(benchmark::State& state, const engine::StageRequest& request) {
  for (auto _ : state) benchmark::DoNotOptimize(Rehearsal(request).work_of(0));
}

void add(const std::string& recipe) {
  const engine::StageRequest request = request_of(recipe);
  const auto add_one = [&](const char* what, auto* body) {
    benchmark::RegisterBenchmark(fmt::format("{}: {}", recipe, what).c_str(), body, request)
        ->Unit(benchmark::kMillisecond);
  };
  add_one("memory of one rank", memory_of_one_rank);
  add_one(fmt::format("memory of {} stages", request.layout.pipeline).c_str(), memory_of_all_stages);
  add_one("work of one rank", work_of_one_rank);
}

}  // namespace
}  // namespace megalith::plan

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) megalith::plan::add(argv[i]);
  benchmark::RunSpecifiedBenchmarks();
}
