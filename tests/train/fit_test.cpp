#include "train/fit.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "tiny_run.h"
#include "train/describe.h"

namespace megalith::train::testing {
namespace {

std::string refusal(const model::StageRequest& request, int64_t available) {
  try {
    require_fit(request, available);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::user);
    return error.what();
  }
}

int64_t needs(model::StageRequest request, int64_t batch, model::Recompute recompute) {
  request.batch = batch;
  request.config.recompute = recompute;
  return model::memory_of_worst_rank(request).table.total();
}

TEST(Fit, NamesTheCheapestChangeThatFits) {
  using model::Recompute;
  model::StageRequest request = stage_request(tiny_run(kTinyGpt, "unused"), 257);
  request.device = Device::cuda;
  request.config.layers = 8;
  request.config.hidden = 512;
  request.length = 1024;
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

}  // namespace
}  // namespace megalith::train::testing
