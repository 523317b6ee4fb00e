#include "config/interpolate.h"

#include <gtest/gtest.h>

#include "config/load.h"
#include "expect_error.h"

namespace megalith::config {
namespace {

Run load_text(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return load(std::vector<Source>{{"r.yaml", yaml}}, overrides);
}

TEST(Interpolate, AbsoluteRelativeAndArithmetic) {
  const config::Run run = load_text(R"(
model:
  hidden_size: 256
  encoder_seq_length: 512
  ffn_hidden_size: ${multiply:4, ${.hidden_size}}
  max_position_embeddings: ${.encoder_seq_length}
  num_layers: ${divide_floor:25,2}
  num_attention_heads: ${divide_ceil:${divide_floor:${model.hidden_size},3},10}
  rotary_base: ${multiply:0.5, 3}
  data:
    seq_length: ${..encoder_seq_length}
  micro_batch_size: ${sum:${.num_layers},-1}
exp_manager:
  explicit_log_dir: runs/${name}-${model.num_layers}l
name: x${training.model.hidden_size}
)");
  EXPECT_EQ(run.model.ffn_hidden_size, 1024);
  EXPECT_EQ(run.model.max_position_embeddings, 512);
  EXPECT_EQ(run.model.num_layers, 12);
  EXPECT_EQ(run.model.num_attention_heads, 9);
  EXPECT_EQ(run.model.rotary_base, 1.5);
  EXPECT_EQ(run.model.data.seq_length, 512);
  EXPECT_EQ(run.model.micro_batch_size, 11);
  EXPECT_EQ(run.exp_manager.explicit_log_dir, "runs/x256-12l");
}

TEST(Interpolate, SeesOverridesAndDefaults) {
  const std::string yaml = "model: {hidden_size: 8}\n";
  EXPECT_EQ(load_text(yaml, {"model.ffn_hidden_size=${multiply:2,${model.hidden_size}}", "model.hidden_size=16"})
                .model.ffn_hidden_size,
            32);
  EXPECT_EQ(load_text("", {"model.micro_batch_size=${model.num_layers}"}).model.micro_batch_size, 12);
}

TEST(Interpolate, ListsAndNullsPassThrough) {
  const config::Run run = load_text("model: {data: {data_prefix: ['${name}', a]}}\nname: n\n");
  EXPECT_EQ(run.model.data.data_prefix, (std::vector<std::string>{"n", "a"}));
  EXPECT_EQ(load_text("run: {b: [0.5, 0.6]}\nmodel: {optim: {betas: '${run.b}'}}").model.optim.betas,
            (std::vector<double>{0.5, 0.6}));
  EXPECT_EQ(load_text("run: {b: null}\nmodel: {num_layers: '${run.b}'}").model.num_layers, Model{}.num_layers);
}

TEST(Interpolate, IgnoredKeysAreNotResolved) {
  load_text("exp_manager: {wandb_logger_kwargs: {name: '${nowhere.at.all}'}}");
}

TEST(Interpolate, Errors) {
  const auto message = [](const std::string& yaml) { return user_error_of([&] { load_text(yaml); }); };
  expect_parts(message("model:\n  hidden_size: ${.ffn_hidden_size}\n  ffn_hidden_size: ${.hidden_size}\n"),
               {"r.yaml:3", "circle", "model.ffn_hidden_size -> model.hidden_size -> model.ffn_hidden_size"});
  expect_parts(message("model: {num_layers: '${model.num_layers}'}"), {"circle"});
  expect_parts(message("model: {num_layers: '${model.nowhere}'}"), {"model.nowhere", "not set"});
  expect_parts(message("model: {num_layers: '${model'}"), {"closing brace"});
  expect_parts(message("model: {num_layers: '${...x}'}"), {"above the root"});
  expect_parts(message("model: {num_layers: '${power:2,3}'}"), {"unknown interpolation", "multiply"});
  expect_parts(message("model: {num_layers: '${multiply:2}'}"), {"takes two numbers"});
  expect_parts(message("model: {num_layers: '${multiply:a,2}'}"), {"takes numbers"});
  expect_parts(message("model: {num_layers: '${divide_floor:1,0}'}"), {"no whole result"});
  expect_parts(message("model: {num_layers: '${multiply:9223372036854775807,2}'}"), {"no whole result"});
  expect_parts(message("model: {num_layers: '${oc.env:HOME}'}"), {"environment variables are not read"});
  expect_parts(message("model: {num_layers: '${multiply:1,1.5}'}"), {"1.5", "not a whole number"});
  expect_parts(message("name: a${model.optim.betas}"), {"not a single value"});
  expect_parts(message("run: {a: x$}\nname: '${run.a}{b}'"), {"`name`", "still holds"});
}

TEST(Interpolate, BlowUpsAreRefused) {
  std::string doubling = "run:\n  a0: xxxxxxxxxxxxxxxx\n";
  for (int i = 1; i < 40; ++i) doubling += fmt::format("  a{}: ${{.a{}}}${{.a{}}}\n", i, i - 1, i - 1);
  expect_parts(user_error_of([&] { load_text(doubling + "name: ${run.a39}\n"); }), {"run.a"});

  std::string deep = "1";
  for (int i = 0; i < 5000; ++i) deep = "${sum:0," + deep + "}";
  expect_parts(user_error_of([&] { load_text("model: {num_layers: '" + deep + "'}"); }), {"too many"});
}

}  // namespace
}  // namespace megalith::config
