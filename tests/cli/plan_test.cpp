#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "repository.h"
#include "run_program.h"
#include "temp_dir.h"

namespace megalith::cli::testing {
namespace {

using ::megalith::testing::TempDir;

class Plan : public ::testing::Test {
 protected:
  Outcome plan(const std::string& arguments) { return run_program("plan " + arguments, dir_.path().string()); }
  static std::string recipe(const std::string& name) {
    return "-c " + in_repository("recipes/" + name + ".yaml").string() + " ";
  }
  void expect_refused(const std::string& arguments, const std::string& said) {
    const Outcome outcome = plan(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(said), std::string::npos) << "no '" << said << "' in: " << outcome.output;
  }

  TempDir dir_;
};

TEST_F(Plan, WhatItFindsCanBeTrained) {
  const Outcome found = plan(recipe("gpt3-13b") + "--gpus 64 --gpu h100 --write best.yaml --explain");
  ASSERT_EQ(found.exit_code, 0) << found.output;
  EXPECT_NE(found.output.find("part of a step"), std::string::npos);
  const Outcome trained = run_program("train " + recipe("gpt3-13b") + "-c best.yaml --dry-run", dir_.path().string());
  EXPECT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_NE(trained.output.find("64 ranks"), std::string::npos) << trained.output;
}

TEST_F(Plan, MemoryIsThatOfTheDryRun) {
  const Outcome planned = plan(recipe("llama3.1-70b") + "--as-is --gpu h200");
  const Outcome trained = run_program("train " + recipe("llama3.1-70b") + "--dry-run", dir_.path().string());
  const auto total = [](const std::string& text) {
    const size_t at = text.rfind("  total ");
    return text.substr(at, text.find('\n', at) - at);
  };
  ASSERT_EQ(planned.exit_code, 0) << planned.output;
  EXPECT_EQ(total(planned.output), total(trained.output));
}

TEST_F(Plan, Page) {
  const Outcome found = plan(recipe("gpt3-13b") + "--gpus 64 --gpu h100 --html plan.html");
  ASSERT_EQ(found.exit_code, 0) << found.output;
  const Outcome own = plan(recipe("gpt3-13b") + "--as-is --gpus 64 --gpu h100 --html own.html");
  ASSERT_EQ(own.exit_code, 0) << own.output;
  for (const char* file : {"plan.html", "own.html"}) {
    std::ifstream page(dir_ / file);
    const std::string html{std::istreambuf_iterator<char>(page), {}};
    EXPECT_NE(html.find("gpt3-13b on 64 h100"), std::string::npos) << file;
    EXPECT_NE(html.find("id=\"parts\""), std::string::npos) << file;
    EXPECT_NE(html.find("</html>"), std::string::npos) << file;
  }
}

TEST_F(Plan, Clusters) {
  const Outcome outcome = plan(recipe("gpt3-6.7b") + "--gpus 8,16 --gpu h100,a100 --top 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* cluster : {"8 h100 in 1 node", "16 h100 in 2 nodes", "8 a100 in 1 node", "16 a100 in 2 nodes",
                              "\n8 h100 ", "\n16 h100 ", "\n8 a100 ", "\n16 a100 "})
    EXPECT_NE(outcome.output.find(cluster), std::string::npos) << cluster;
}

TEST_F(Plan, AClusterThatIsTooSmallDoesNotEndTheOthers) {
  const Outcome outcome = plan(recipe("gpt3-13b") + "--gpus 1,16 --gpu h100 --top 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("1 h100: none of "), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("\n16 h100 "), std::string::npos) << outcome.output;
  expect_refused(recipe("gpt3-13b") + "--gpus 1,2 --gpu a100-40", "on none of these clusters a layout works");
}

TEST_F(Plan, Deadline) {
  const Outcome outcome = plan(recipe("gpt3-1.3b") + "--deadline 10 --tokens 1e11 --gpu h100");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("h100 take"), std::string::npos) << outcome.output;
}

TEST_F(Plan, Refusals) {
  expect_refused("", "plan what?");
  expect_refused(recipe("gpt3-6.7b") + "--gpu h1000", "there is no accelerator 'h1000'");
  expect_refused(recipe("gpt3-6.7b") + "--network carrier-pigeon", "there is no network 'carrier-pigeon'");
  expect_refused(recipe("gpt3-6.7b") + "--gpus 0", "'0' is not a number of GPUs");
  expect_refused(recipe("gpt3-6.7b") + "--gpus 12", "12 GPUs are no whole nodes of 8 h100: use 8 or 16");
  expect_refused(recipe("gpt3-6.7b") + "--price -1", "--price must be at least 0");
  expect_refused(recipe("gpt3-6.7b") + "--failures -1", "--failures must be at least 0");
  expect_refused(recipe("gpt3-6.7b") + "trainer.precision=32", "plan knows the speed of bf16 and fp8");
  expect_refused(recipe("gpt3-13b") + "--gpus 1 model.global_batch_size=8", "fits its");
  expect_refused(recipe("gpt3-6.7b") + "--as-is --gpus 16 --gpu a100-40 model.micro_batch_size=64",
                 "this layout needs");
  expect_refused("--check nowhere", "nowhere");
  std::filesystem::create_directory(dir_ / "run");
  std::ofstream(dir_ / "run/hparams.yaml") << "trainer: {accelerator: cpu, precision: bf16}\n";
  expect_refused("--check run", "the run's logs do not say how much memory it took");
  expect_refused("--table none.csv", "none.csv");
  std::ofstream(dir_ / "rates.csv") << "operation,shape,microseconds,flops,bytes\ngemm,x,0,1,1\n";
  expect_refused(recipe("gpt3-6.7b") + "--rates rates.csv", "rates.csv, line 2, column microseconds");
  std::ofstream(dir_ / "h200.csv") << "operation,shape,microseconds,flops,bytes,device,driver,program\n"
                                      "gemm,x,5,1,1,NVIDIA H200,13.0,megalith 1\n";
  expect_refused(recipe("gpt3-6.7b") + "--rates h200.csv --gpu h100",
                 "h200.csv was measured on an NVIDIA H200, and the plan is for h100: give --gpu h200");
  std::ofstream(dir_ / "runs.csv") << "id,layers,hidden,heads,vocab,seq_len,gpu,gpus,micro_batch,global_batch\n"
                                      "a,x,2048,16,51200,2048,h100,16,1,64\n";
  expect_refused("--table runs.csv", "runs.csv, line 2, column layers: 'x' is not a whole number from 1");
}

TEST_F(Plan, NamesTheNearestThatWorks) {
  // 32 layers, 32 heads and 1,024 samples have nothing to be cut by 125.
  expect_refused(recipe("gpt3-6.7b") + "--gpus 1000", "1024 GPUs work; model.global_batch_size=1000 works");
  expect_refused(recipe("gpt3-6.7b") + "--gpus 64 model.tensor_model_parallel_size=3",
                 "it works if model.tensor_model_parallel_size may change");
  expect_refused(recipe("gpt3-13b") + "--gpus 1 model.global_batch_size=8", "fits its 77.21 GiB: 4 GPUs work");
  expect_refused(recipe("gpt3-6.7b") + "--as-is --gpus 16 --gpu a100-40 model.micro_batch_size=64",
                 "model.micro_batch_size=2 model.activations_checkpoint_granularity=none fits, with 31.73 GiB");
  const Outcome smaller =
      plan(recipe("gpt3-6.7b") +
           "--as-is --gpus 16 --gpu a100-40 model.micro_batch_size=2 model.activations_checkpoint_granularity=none");
  EXPECT_EQ(smaller.exit_code, 0) << smaller.output;
}

TEST_F(Plan, CallsThatWereMeasured) {
  const auto write = [&](const char* file, int ranks, int machines, double scale) {
    std::ofstream out(dir_ / file);
    out << "ranks,machines,operation,bytes,microseconds,gigabytes_per_second\n";
    for (const char* operation : {"all_gather", "reduce_scatter", "all_reduce", "exchange"}) {
      for (const int64_t bytes : {int64_t{8}, int64_t{1} << 26})
        out << ranks << ',' << machines << ',' << operation << ',' << bytes << ','
            << scale * (20 + static_cast<double>(bytes) / 1e5) << ",0\n";
    }
  };
  write("node.csv", 8, 1, 1);
  write("nodes.csv", 16, 2, 2);
  write("slow.csv", 16, 2, 20);
  write("pair.csv", 2, 1, 1);
  const std::string asked = recipe("gpt3-13b") + "--gpus 64 --gpu h100 --as-is ";
  const auto step = [&](const std::string& wire) {
    const Outcome outcome = plan(asked + "--wire " + wire);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("calls            as measured in node.csv"), std::string::npos) << outcome.output;
    return std::stod(outcome.output.substr(outcome.output.find("\nstep ") + 6));
  };
  EXPECT_LT(step("node.csv,nodes.csv"), step("node.csv,slow.csv"));
  expect_refused(asked + "--wire pair.csv", "measured with up to 2 ranks on a machine, and nodes of h100 have 8");
  expect_refused(asked + "--wire node.csv", "between machines: measure it there with `megalith bench comm`");
  expect_refused(asked + "--wire none.csv", "--wire none.csv: there is no such file");
  expect_refused(asked + "--wire h1000", "there is no accelerator 'h1000'");
  expect_refused(asked + "--wire best.yaml", "best.yaml");
}

// What `bench step --as-rank` measures with.
TEST_F(Plan, CallsOfANamedWire) {
  const std::string asked = recipe("gpt3-13b") + "--gpus 64 --gpu h100 --as-is model.tensor_model_parallel_size=4 ";
  const auto step = [&](const std::string& wire) {
    const Outcome outcome = plan(asked + "--wire " + wire);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("calls            as `bench step --as-rank --wire " + wire), std::string::npos)
        << outcome.output;
    return std::stod(outcome.output.substr(outcome.output.find("\nstep ") + 6));
  };
  EXPECT_LT(step("h100"), step("a100"));
  EXPECT_LT(step("h100+ndr-8x400"), step("h100+eth-400"));
}

TEST_F(Plan, CheckOfARunOnCpus) {
  const Outcome trained = run_program(
      "train " + recipe("gpt3-125m") +
          "--nproc 2 trainer.accelerator=auto trainer.precision=32 trainer.devices=2 model.num_layers=2 "
          "model.hidden_size=32 model.ffn_hidden_size=64 model.num_attention_heads=2 model.encoder_seq_length=32 "
          "model.micro_batch_size=1 model.global_batch_size=2 model.pipeline_model_parallel_size=2 "
          "model.data.data_impl=mock trainer.max_steps=3 exp_manager.explicit_log_dir=run "
          "exp_manager.create_checkpoint_callback=false",
      dir_.path().string());
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  const Outcome checked = plan("--check run");
  EXPECT_EQ(checked.exit_code, 0) << checked.output;
  EXPECT_NE(checked.output.find("on 2 ranks of CPUs"), std::string::npos) << checked.output;
  for (const char* arena : {"\nweights ", "\nmoments ", "\nactivations "}) {
    const size_t row = checked.output.find(arena);
    ASSERT_NE(row, std::string::npos) << arena << checked.output;
    const size_t end = checked.output.find('\n', row + 1);
    EXPECT_EQ(checked.output.substr(end - 5, 5), " +0.0") << checked.output;
  }
}

TEST_F(Plan, TooManyFailures) {
  const Outcome outcome = plan(recipe("gpt3-6.7b") +
                               "--as-is --gpu h100 --gpus 16384 model.global_batch_size=16384 "
                               "--failures 100000 --price 1");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("never: the next failure comes"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("inf"), std::string::npos) << outcome.output;
}

TEST_F(Plan, LeavesNoOptionUnheeded) {
  expect_refused(recipe("gpt3-6.7b") + "--gpu ''", "--gpu is empty");
  expect_refused(recipe("gpt3-6.7b") + "--out x.csv", "--out is for --table");
  expect_refused(recipe("gpt3-6.7b") + "--constants x.csv", "--constants is for --table");
  expect_refused(recipe("gpt3-6.7b") + "--deadline 3 --write x.yaml", "--write cannot be beside --deadline");
  expect_refused(recipe("gpt3-6.7b") + "--deadline 3 --gpus 8", "--gpus cannot be beside --deadline");
  expect_refused("--table x.csv --as-is", "--as-is is of a recipe");
  expect_refused("--check x --html x.html", "--html is of a recipe");
}

}  // namespace
}  // namespace megalith::cli::testing
