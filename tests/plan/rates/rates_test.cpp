#include "plan/rates/rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/file.h"
#include "expect_error.h"
#include "plan/search/planned_runs.h"

namespace megalith::plan {
namespace {

const std::string kColumns = "operation,shape,calls,microseconds,flops,bytes\n";

Rates rates_of(const std::string& lines) {
  Rates rates;
  rates.add(kColumns + lines, "mine.csv");
  return rates;
}

TEST(Rates, AShapeThatWasMeasuredTakesItsTime) {
  const Rates rates = rates_of("gemm,bf16 100x200x300 nt,5,10,1e9,1e6\n");
  const OperationTime time = rates.time_of("gemm", {.flops = 1e9, .shape = "bf16 100x200x300 nt"});
  EXPECT_DOUBLE_EQ(time.seconds, 10e-6);
  EXPECT_EQ(time.known, Known::measured);
}

TEST(Rates, AnotherTakesTheRateOfItsNeighbours) {
  const Rates rates = rates_of(
      "gemm,bf16 100x200x300 nt,5,10,1e9,1e6\n"
      "gemm,bf16 9000x9000x9000 nt,5,2000,1e12,1e6\n");
  const OperationTime time = rates.time_of("gemm", {.flops = 1.1e9, .shape = "bf16 110x200x300 nt"});
  EXPECT_NEAR(time.seconds, 1.1e-5, 1e-7);
  EXPECT_EQ(time.known, Known::interpolated);
  EXPECT_EQ(rates.time_of("norm", {.bytes = 1e9, .shape = "bf16 (10, 10)"}).seconds, 0.0);
}

TEST(Rates, SeveralFilesAreAveraged) {
  Rates rates = rates_of("sum,f32 (1),1,10,0,4\n");
  rates.add(kColumns + "sum,f32 (1),1,20,0,4\n", "other.csv");
  EXPECT_DOUBLE_EQ(rates.time_of("sum", {.bytes = 4, .shape = "f32 (1)"}).seconds, 15e-6);
}

TEST(Rates, WrongFiles) {
  const auto expect = [](const std::string& text, const std::string& message) {
    expect_error(ErrorKind::user, {message}, [&] { Rates().add(text, "mine.csv"); });
  };
  expect("operation,shape\n", "mine.csv has no column 'microseconds'");
  expect(kColumns + "gemm,x,1,0,1,1\n", "mine.csv, line 2, column microseconds: a time must be above 0");
  expect(kColumns + "gemm,x,1,-4,1,1\n", "'-4' is not a number from 0");
  expect(kColumns + "gemm,x,1,4,1\n", "line 2: 5 cells");
}

// The models of docs/performance.md, and how long their steps took on an H200.
struct Measured {
  const char* file;
  const char* recipe;
  std::vector<std::string> overrides;
  double seconds;
  double left_out;  // largest error without its own file
};

const std::vector<Measured>& measured_models() {
  static const std::vector<Measured> kModels{
      {"gpt2-124m",
       "gpt3-125m",
       {"model.micro_batch_size=64", "model.global_batch_size=64", "model.encoder_seq_length=1024"},
       0.10622,
       0.12},
      {"gpt3-1.3b", "gpt3-1.3b", {"model.micro_batch_size=16", "model.global_batch_size=16"}, 0.47418, 0.06},
      {"gpt3-6.7b", "gpt3-6.7b", {"model.micro_batch_size=4", "model.global_batch_size=4"}, 0.59163, 0.06},
      {"gpt3-175b-2l",
       "gpt3-175b",
       {"model.micro_batch_size=4", "model.global_batch_size=4", "model.num_layers=2"},
       0.34673,
       0.06},
      {"llama3.1-8b-16l",
       "llama3.1-8b",
       {"model.micro_batch_size=1", "model.global_batch_size=1", "model.num_layers=16",
        "model.activations_checkpoint_granularity=selective"},
       0.40168,
       0.06}};
  return kModels;
}

SearchRequest on_one_h200(const Measured& model) {
  std::vector<std::string> overrides{"model.fp8=false",
                                     "model.hidden_dropout=0",
                                     "model.attention_dropout=0",
                                     "model.wrap_with_zero=false",
                                     "model.sequence_parallel=false",
                                     "model.tensor_model_parallel_size=1",
                                     "model.pipeline_model_parallel_size=1",
                                     "model.virtual_pipeline_model_parallel_size=1",
                                     "model.context_parallel_size=1",
                                     "model.activations_checkpoint_granularity=null"};
  overrides.insert(overrides.end(), model.overrides.begin(), model.overrides.end());
  return megalith::testing::planned_recipe(model.recipe, 1, "h200", overrides);
}

TEST(Rates, ModelsThatWereMeasured) {
  for (const Measured& model : measured_models()) {
    const double error = plan_as_is(on_one_h200(model)).seconds() / model.seconds - 1;
    EXPECT_LT(std::abs(error), 0.03) << model.file;
    RecordProperty(model.file, std::to_string(error));
  }
}

TEST(Rates, ModelsWhoseOwnFileIsLeftOut) {
  for (const Measured& left_out : measured_models()) {
    SearchRequest request = on_one_h200(left_out);
    request.rates = {};
    for (const Measured& other : measured_models()) {
      const std::string file = std::string("bench/results/2026-11-16-h200/") + other.file + ".csv";
      if (other.file != left_out.file) request.rates.add(read_text(in_repository(file)), file);
    }
    const double error = plan_as_is(request).seconds() / left_out.seconds - 1;
    EXPECT_LT(std::abs(error), left_out.left_out) << left_out.file;
  }
}

}  // namespace
}  // namespace megalith::plan
