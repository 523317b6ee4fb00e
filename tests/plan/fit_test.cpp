#include "plan/fit.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "expect_error.h"
#include "plan/run_request.h"
#include "train/tiny_run.h"

namespace megalith::plan::testing {

using namespace train::testing;
namespace {

std::string refusal(const engine::StageRequest& request, int64_t available) {
  try {
    require_fit(request, available);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    return error.what();
  }
}

int64_t needs(engine::StageRequest request, int64_t batch, model::Recompute recompute) {
  request.batch = batch;
  request.config.recompute = recompute;
  return memory_of_worst_rank(request).table.total();
}

TEST(Fit, NamesTheCheapestChangeThatFits) {
  using model::Recompute;
  engine::StageRequest request = stage_request(tiny_run(kTinyGpt, "unused"), 257);
  request.device = Device::cuda;
  request.config.layers = 8;
  request.config.hidden = 512;
  request.length = 1024;
  request.config.max_positions = request.length;
  request.batch = 4;
  EXPECT_EQ(refusal(request, needs(request, 4, Recompute::none)), "");

  const std::string smaller = refusal(request, needs(request, 2, Recompute::none));
  EXPECT_NE(smaller.find("it would fit with model.micro_batch_size=2"), std::string::npos) << smaller;
  EXPECT_NE(smaller.find("activations"), std::string::npos) << smaller;
  EXPECT_EQ(smaller.find("granularity"), std::string::npos) << smaller;

  const std::string recomputing = refusal(request, needs(request, 1, Recompute::selective));
  EXPECT_NE(recomputing.find("model.micro_batch_size=1 model.activations_checkpoint_granularity=selective"),
            std::string::npos)
      << recomputing;

  EXPECT_NE(refusal(request, 1 << 20).find("more GPUs"), std::string::npos);
}

TEST(Fit, RanksOnCpusShareTheMemoryOfTheirMachine) {
  const engine::StageRequest request = stage_request(tiny_run(kTinyGpt, "unused", {"trainer.cpu_threads=1"}), 257);
  const int64_t needed = memory_of_worst_rank(request).table.total();
  const HostMemory memory{.available = 3 * needed, .source = "a test"};
  require_fit(request, {.ranks = 1, .saves = true}, memory);
  require_fit(request, {.ranks = 3, .saves = false}, memory);
  const auto refused = [&](const RanksOnHost& ranks) {
    return error_of(ErrorKind::user, [&] { require_fit(request, ranks, memory); });
  };
  const std::string crowded = refused({.ranks = 4, .saves = false});
  EXPECT_NE(crowded.find("for each of the 4 ranks here (a test)"), std::string::npos) << crowded;
  EXPECT_EQ(crowded.find("checkpoint"), std::string::npos) << crowded;
  const std::string saving = refused({.ranks = 3, .saves = true});
  EXPECT_NE(saving.find("a copy of the state while it is written"), std::string::npos) << saving;
}

}  // namespace
}  // namespace megalith::plan::testing
