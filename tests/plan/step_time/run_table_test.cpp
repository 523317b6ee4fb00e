#include "plan/step_time/run_table.h"

#include <gtest/gtest.h>

#include "expect_error.h"
#include "plan/step_time/csv.h"
#include "plan/step_time/predictions.h"

namespace megalith::plan {
namespace {

const std::string kColumns =
    "id,layers,hidden,heads,vocab,seq_len,gpu,gpus,micro_batch,global_batch,tp,pp,vp,stage_layers,precision,note\n";
const std::string kGood = "a,24,2048,16,51200,2048,h100,16,1,64,2,4,1,,,\"said, so\"\n";

std::vector<TableRun> parse(const std::string& lines) {
  return parse_run_table(kColumns + lines, "runs.csv", cost::Hardware());
}

TEST(RunTable, Defaults) {
  const RunFeatures run = parse(kGood).at(0).features;
  EXPECT_EQ(run.model.kv_heads, 16);
  EXPECT_EQ(run.model.head_dim, 128);
  EXPECT_EQ(run.model.ffn, 8192);
  EXPECT_EQ(run.data, 2);
  EXPECT_EQ(run.shard_group, 2);
  EXPECT_EQ(run.gpus_per_node, 8);
  EXPECT_EQ(run.network.name, "ndr-8x400");
  EXPECT_EQ(run.sharding, Sharding::zero1);
  EXPECT_EQ(run.micro_batches(), 32);
  EXPECT_FALSE(run.fp8);
}

TEST(RunTable, StageLayers) {
  const auto runs = parse("a,24,2048,16,51200,2048,h100,16,1,64,2,4,1,\"5,7x2,5\",fp8,\n");
  EXPECT_EQ(runs[0].features.stage_layers, (std::vector<int64_t>{5, 7, 7, 5}));
  EXPECT_EQ(runs[0].problem, "");
  EXPECT_TRUE(runs[0].features.fp8);
}

TEST(RunTable, WrongCellsAreNamed) {
  const auto expect = [](const std::string& line, const std::string& message) {
    expect_error(ErrorKind::user, {message}, [&] { parse(kGood + line); });
  };
  expect("b,24,2048,16,51200,2048,h100,16,1,64,0,4,1,,,\n", "runs.csv, line 3, column tp: '0' is not a whole number");
  expect("b,24,2048,16,51200,2048,h1000,16,1,64,2,4,1,,,\n", "line 3, column gpu: 'h1000' is not one of a100");
  expect("b,24,2048,16,51200,2048,h100,16,1,64,2,4,1,\"5,\",,\n", "column stage_layers");
  expect("b,24,2048,16,51200,2048,h100,16,1,64,2,4,1,\"1x9999999999\",,\n", "column stage_layers");
  expect("b,24,2048,16,51200,2048,h100,16,1,64,2,4,1,,int4,\n", "column precision: 'int4' is not one of bf16, fp16");
  expect("a,24,2048,16,51200,2048,h100,16,1,64,2,4,1,,,\n", "column id: 'a' is not a text that no other line has");
  expect("b,24,2048\n", "runs.csv, line 3: 3 cells, and the first line names 16 columns");
  expect("b,\"24\n", "line 3: a quote is opened and not closed");
  expect_error(ErrorKind::user, {"has no column 'layers'"},
               [] { parse_run_table("id,hidden\n", "runs.csv", cost::Hardware()); });
  expect_error(ErrorKind::user, {"is empty"}, [] { parse_run_table("", "runs.csv", cost::Hardware()); });
}

TEST(RunTable, LayoutsThatCannotBeAreRefusedAlone) {
  const auto runs = parse(
      "a,24,2048,16,51200,2048,h100,12,1,64,2,4,1,,,\n"
      "b,24,2048,16,51200,2048,h100,16,3,64,2,4,1,,,\n"
      "c,24,2048,16,51200,2048,h100,16,1,64,2,4,4,,,\n"
      "d,24,2048,16,51200,2048,a100,16,1,64,2,4,1,,fp8,\n" +
      std::string("e,24,2048,16,51200,2048,h100,16,1,64,2,4,1,,,\n"));
  EXPECT_EQ(runs[0].problem, "tensor 2 x pipeline 4 x context 1 x data 1 are not 12 GPUs");
  EXPECT_EQ(runs[1].problem, "global batch 64 does not divide into micro batches of 3 on 2 data-parallel ranks");
  EXPECT_EQ(runs[2].problem, "24 layers do not divide into 4 stages of 4 chunks");
  EXPECT_EQ(runs[3].problem, "a100 has no fp8");
  EXPECT_EQ(runs[4].problem, "");
  const std::string csv = predictions_csv(runs, predict(runs, fitted_constants()));
  EXPECT_NE(csv.find("d,refused,a100 has no fp8,,,"), std::string::npos);
  EXPECT_NE(csv.find("e,ok,,"), std::string::npos);
}

TEST(RunTable, PartsAddUpInWhatIsWritten) {
  const auto runs = parse(kGood);
  const Csv csv = parse_csv(predictions_csv(runs, predict(runs, fitted_constants())), "predictions.csv");
  ASSERT_EQ(csv.columns.size(), 20U);
  const std::vector<std::string>& cells = csv.records.at(0).cells;
  double sum = 0.0;
  for (size_t i = 7; i < 18; ++i) sum += std::stod(cells[i]);
  EXPECT_NEAR(sum / std::stod(cells[3]), 1.0, 1e-5);
}

}  // namespace
}  // namespace megalith::plan
