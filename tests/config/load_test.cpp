#include "config/load.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "config/nemo_keys.h"
#include "config/validate.h"
#include "expect_error.h"

namespace megalith::config {
namespace {

Run load_text(const std::string& yaml, const std::vector<std::string>& overrides = {}, LoadReport* report = nullptr) {
  return load(std::vector<Source>{{"r.yaml", yaml}}, overrides, report);
}

Run load_overrides(const std::vector<std::string>& overrides) {
  return load_text("", overrides);
}

std::string error_of(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return user_error_of([&] { load_text(yaml, overrides); });
}

TEST(Load, NothingGivesTheDefaults) {
  EXPECT_EQ(load_text("").model.num_layers, Model{}.num_layers);
  EXPECT_EQ(load_text("# only a comment\n").name, "megalith");
  EXPECT_EQ(load_text("model:\ntrainer: {}\n", {"model.optim=null"}).model.optim.lr, Optim{}.lr);
}

TEST(Load, EveryTypeOfValue) {
  const config::Run run = load_text(R"(
name: try
trainer:
  precision: 32
  max_steps: 1e3
  max_time: '00:01:00:00'
  deterministic: no
model:
  hidden_dropout: .1
  bias: False
  tokenizer: {type: GPT2BPETokenizer, vocab_file: "a b.json"}
  data:
    data_prefix: [1.0, data/x_text_document]
  optim:
    betas:
    - 0.9
    - 0.98
    sched: {warmup_steps: 1_000}
resilience:
  on_non_finite: skip
  failpoints: ["checkpoint.write=io@3"]
)");
  EXPECT_EQ(run.name, "try");
  EXPECT_EQ(word_of(run.trainer.precision), "32");
  EXPECT_EQ(run.trainer.max_steps, 1000);
  EXPECT_EQ(run.trainer.max_time, "00:01:00:00");
  EXPECT_FALSE(run.trainer.deterministic);
  EXPECT_EQ(run.model.hidden_dropout, 0.1);
  EXPECT_FALSE(run.model.bias);
  EXPECT_EQ(run.model.tokenizer.vocab_file, "a b.json");
  EXPECT_EQ(run.model.data.data_prefix, (std::vector<std::string>{"1.0", "data/x_text_document"}));
  EXPECT_EQ(run.model.optim.betas, (std::vector<double>{0.9, 0.98}));
  EXPECT_EQ(run.model.optim.sched.warmup_steps, 1000);
  EXPECT_EQ(word_of(run.on_non_finite), "skip");
  EXPECT_EQ(run.failpoints, (std::vector<std::string>{"checkpoint.write=io@3"}));
}

TEST(Load, LaterFilesAndThenOverridesWin) {
  const std::vector<Source> sources = {{"a.yaml", "trainer: {max_steps: 1, devices: 2}\nmodel: {num_layers: 3}"},
                                       {"b.yaml", "trainer: {max_steps: 4}\nmodel: {seed: 5}"}};
  const config::Run run = load(sources, {"model.seed=6", "model.seed=7"});
  EXPECT_EQ(run.trainer.max_steps, 4);
  EXPECT_EQ(run.trainer.devices, 2);
  EXPECT_EQ(run.model.num_layers, 3);
  EXPECT_EQ(run.model.seed, 7);
}

TEST(Load, NullGivesTheDefaultBack) {
  const std::string yaml = "trainer: {max_steps: 7}\nmodel: {optim: {lr: 1.0, sched: {warmup_steps: 3}}}";
  EXPECT_EQ(load_text(yaml, {"trainer.max_steps=null"}).trainer.max_steps, 100);
  EXPECT_EQ(load_text(yaml, {"model.optim=null"}).model.optim.sched.warmup_steps, 0);
  EXPECT_EQ(load_text("model:\n  data:\n    data_prefix: ???\n").model.data.data_prefix.size(), 0u);
}

TEST(Load, Overrides) {
  EXPECT_EQ(load_overrides({"+trainer.max_steps=3"}).trainer.max_steps, 3);
  EXPECT_EQ(load_overrides({"++trainer.max_steps=3"}).trainer.max_steps, 3);
  EXPECT_EQ(load_overrides({"training.model.num_layers=3"}).model.num_layers, 3);
  EXPECT_EQ(load_overrides({"++training.trainer.max_steps=3"}).trainer.max_steps, 3);
  EXPECT_EQ(load_overrides({"name='null'"}).name, "null");
  EXPECT_EQ(load_overrides({"name=\"a b\""}).name, "a b");
  EXPECT_EQ(load_overrides({"model.data.splits_string='900,50,50'"}).model.data.splits_string, "900,50,50");
  EXPECT_EQ(load_overrides({"model.data.data_prefix=[.5,a_text,.5,b_text]"}).model.data.data_prefix,
            (std::vector<std::string>{".5", "a_text", ".5", "b_text"}));
  EXPECT_EQ(load_overrides({"model.data.validation_files=15"}).model.data.validation_files, 15);
  EXPECT_EQ(load_overrides({"model.data.test_files=15"}).model.data.test_files, 15);
  EXPECT_EQ(load_overrides({"model.data.data_prefix=a=b"}).model.data.data_prefix, (std::vector<std::string>{"a=b"}));
  EXPECT_EQ(load_overrides({"model.optim.betas=[0.8,0.9]"}).model.optim.betas, (std::vector<double>{0.8, 0.9}));
  EXPECT_EQ(load_overrides({"training.run.name=x", "run.results_dir=/y"}).name, "megalith");
}

TEST(Load, LauncherPrefixInFiles) {
  EXPECT_EQ(load_text("training:\n  trainer: {max_steps: 9}\n").trainer.max_steps, 9);
}

TEST(Load, KeysOfPublicRecipesAreKnown) {
  std::vector<std::string> overrides(std::begin(kLoggedByNemo), std::end(kLoggedByNemo));
  EXPECT_EQ(overrides.size(), 106u);
  overrides.insert(overrides.end(), std::begin(kSetByRecipes), std::end(kSetByRecipes));
  LoadReport report;
  config::Run run = load_text("", overrides, &report);
  validate(run);
  EXPECT_EQ(run.model.num_layers, 96);
  EXPECT_EQ(run.model.virtual_pipeline_model_parallel_size, 2);
  EXPECT_EQ(word_of(run.trainer.precision), "bf16");
  EXPECT_EQ(run.model.optim.sched.warmup_steps, 115);
  EXPECT_TRUE(run.model.wrap_with_zero);

  EXPECT_GT(report.ignored.size(), 50u);
  expect_parts(describe(report),
               {"model.mcore_gpt, model.transformer_engine (there is one implementation)", "fp8_interval"});
}

TEST(Load, DataOfEachSplitAsNemoWritesIt) {
  const config::Run run =
      load_text("model: {data: {data_prefix: {train: [1.0, a, 2.0, b], validation: [c], test: d}}}\n");
  EXPECT_EQ(run.model.data.data_prefix, (std::vector<std::string>{"1.0", "a", "2.0", "b"}));
  EXPECT_EQ(run.model.data.validation_prefix, std::vector<std::string>{"c"});
  EXPECT_EQ(run.model.data.test_prefix, std::vector<std::string>{"d"});
  EXPECT_EQ(load_overrides({"training.model.data.data_prefix.validation=[x]"}).model.data.validation_prefix,
            std::vector<std::string>{"x"});
  expect_parts(error_of("model: {data: {data_prefix: {trian: [x]}}}"), {"model.data.data_prefix.trian"});
}

TEST(Load, RefusedKeysSayWhy) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"model.fp8_wgrad=false", "weight gradients are fp8 GEMMs as well"},
      {"model.reduce_amax=false", "the same scale"},
      {"model.fp8_dot_product_attention=true", "attention computes in bf16"},
      {"model.rotary_percentage=0.5", "whole heads"},
      {"model.headscale=true", "not supported"},
      {"model.transformer_block_type=post_ln", "pre_ln"},
      {"model.onnx_safe=true", "tanh"},
      {"model.num_moe_experts=8", "experts"},
      {"model.ffn_dropout=0.1", "dropout inside the MLP"},
      {"model.mcore_customization_config.parallel_attention=true", "decoder layer"},
      {"model.data.data_cache_generation_only=true", "megalith data index"},
      {"model.tokenizer.library=sentencepiece", "huggingface"},
      {"model.optim.sched.warmup_ratio=0.1", "warmup_steps"},
      {"trainer.accumulate_grad_batches=2", "global_batch_size"},
      {"exp_manager.exp_dir=/somewhere", "explicit_log_dir"},
      {"exp_manager.resume_from_checkpoint=/x", "model.resume_from_checkpoint"},
      {"exp_manager.checkpoint_callback_params.every_n_epochs=1", "every_n_train_steps"},
      {"restore_from_path=a.nemo", ".nemo"},
  };
  for (const auto& [text, reason] : refused) {
    expect_parts(error_of("", {text}), {"override '" + text + "'", text.substr(0, text.find('=')), "refused", reason});
  }
  EXPECT_EQ(load_overrides({"model.resume_from_checkpoint=/x",
                            "exp_manager.resume_from_checkpoint=${model.resume_from_checkpoint}"})
                .model.resume_from_checkpoint,
            "/x");
}

TEST(Load, KeysThatAreRefusedForOneReasonAreOneProblem) {
  EXPECT_EQ(error_of("model:\n  num_moe_experts: 8\n  expert_model_parallel_size: 4\n"),
            "r.yaml:3: `model.expert_model_parallel_size`=4, r.yaml:2: `model.num_moe_experts`=8 are refused: "
            "mixture-of-experts models are not supported yet");
}

TEST(Load, HarmlessValuesOfRefusedKeys) {
  LoadReport report;
  load_text(
      "",
      {"model.fp8_wgrad=True", "model.rotary_percentage=1", "model.rotary_percentage=1.0", "model.fp8_output_proj=no",
       "trainer.fast_dev_run=0", "model.rampup_batch_size=null", "model.num_moe_experts=null", "model.window_size=[]"},
      &report);
  EXPECT_TRUE(report.ignored.empty());
}

TEST(Load, WrongTypesNamePlaceKeyValueAndType) {
  expect_parts(error_of("trainer:\n  devices: 1\n  max_steps: 12.5\n"),
               {"r.yaml:3", "`trainer.max_steps`", "'12.5'", "a whole number"});
  expect_parts(error_of("", {"trainer.max_steps=ten"}), {"override 'trainer.max_steps=ten'", "a whole number"});
  expect_parts(error_of("model: {bias: 1}"), {"model.bias", "true or false"});
  expect_parts(error_of("model: {optim: {lr: fast}}"), {"model.optim.lr", "'fast'", "a finite number"});
  expect_parts(error_of("model: {optim: {lr: .nan}}"), {"model.optim.lr", "a finite number"});
  expect_parts(error_of("model: {optim: {lr: 1e999}}"), {"model.optim.lr", "a finite number"});
  expect_parts(error_of("model: {num_layers: 99999999999999999999}"), {"model.num_layers", "a whole number"});
  expect_parts(error_of("model: {optim: {betas: [0.9, high]}}"),
               {"model.optim.betas", "[0.9, high]", "a list of finite numbers"});
  expect_parts(error_of("model: {num_layers: [1, 2]}"), {"model.num_layers", "[1, 2]", "a whole number"});
  expect_parts(error_of("name: [a]"), {"`name`", "text"});
  expect_parts(error_of("", {"model.nsys_profile.ranks=[1.5]"}),
               {"model.nsys_profile.ranks", "a list of whole numbers"});
  expect_parts(error_of("model: {data: {data_prefix: [{a: b}]}}"), {"model.data.data_prefix", "a list of texts"});
  expect_parts(error_of("model: {optim: {betas: [0.9, null]}}"), {"model.optim.betas"});
}

TEST(Load, UnknownKeysSuggestTheNearest) {
  expect_parts(error_of("trainer:\n  max_step: 3\n"),
               {"r.yaml:2", "unknown key `trainer.max_step`", "did you mean `trainer.max_steps`?"});
  expect_parts(error_of("", {"lr=3"}), {"override 'lr=3'", "did you mean `model.optim.lr`?"});
  expect_parts(error_of("", {"zzzzzzzzzzzz=3"}), {"unknown key `zzzzzzzzzzzz`", "--help-config"});
  expect_parts(error_of("model: 3"), {"`model` is a section", "model."});
  expect_parts(error_of("", {"model.num_layers.x=3"}), {"unknown key `model.num_layers.x`"});
}

TEST(Load, AllProblemsAtOnce) {
  expect_parts(error_of("trainer: {max_step: 3, devices: x}\nmodel: {fp8_wgrad: false}"),
               {"3 problems", "trainer.max_step", "trainer.devices", "model.fp8_wgrad"});
}

TEST(Load, VersionsOfStoredConfigs) {
  expect_parts(error_of("config_version: 3\n"), {"r.yaml:1", "`config_version` is '3'", "1 to 2"});
  expect_parts(error_of("config_version: new\n"), {"'new'"});
  LoadReport report;
  load_text("config_version: 2\nname: x\n", {}, &report);
  EXPECT_TRUE(report.notes.empty());
  // All that a run derived was stored as if it had been set.
  load_text(
      "model: {max_position_embeddings: 8, data: {seq_length: 8}, optim: {sched: {max_steps: 3}}}\n"
      "resilience: {failpoints: []}\n",
      {}, &report);
  expect_parts(describe(report), {"note: r.yaml is of an older Megalith", "counts as set", "key=null"});
}

TEST(Load, BadYaml) {
  expect_parts(error_of("model:\n  num_layers: 1\n  seed: 2\n  num_layers: 3\n"),
               {"r.yaml:4", "model.num_layers", "twice", "line 2"});
  expect_parts(error_of("model: {seed: 1}\ntraining: {model: {seed: 2}}\n"), {"model.seed", "twice"});
  expect_parts(error_of("model: [\n"), {"r.yaml:", "not YAML"});
  expect_parts(error_of("- a\n- b\n"), {"expected `key: value`"});
  expect_parts(error_of("just words"), {"expected `key: value`"});
  expect_parts(error_of("a: 1\n---\nb: 2\n"), {"more than one YAML document"});
  expect_parts(error_of("a: b\n  c: d\n"), {"r.yaml"});  // yaml-cpp finds documents without end in it
  expect_parts(error_of("name: \xff\n"), {"not UTF-8"});
  expect_parts(error_of("x: &x {seed: 1}\nmodel:\n  <<: *x\n"), {"r.yaml:3", "merge keys"});
  expect_parts(error_of("? [a, b]\n: c\n"), {"a key must be a word"});
  expect_parts(error_of(std::string(2 << 20, '#')), {"too many for a recipe"});
  expect_parts(error_of("model: &m\n  optim: *m\n"), {"nested too deeply"});
  expect_parts(error_of("name: &m [*m]\n"), {"nested too deeply"});
  std::string laughs = "run:\n  a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string alias = fmt::format("*a{}", i - 1);
    laughs += fmt::format("  a{}: &a{} [{}, {}, {}, {}, {}, {}, {}, {}]\n", i, i, alias, alias, alias, alias, alias,
                          alias, alias, alias);
  }
  expect_parts(error_of(laughs), {"more than"});
}

TEST(Load, BadOverrides) {
  expect_parts(error_of("", {"trainer.max_steps"}), {"override 'trainer.max_steps'", "key=value"});
  expect_parts(error_of("", {"=3"}), {"key=value"});
  expect_parts(error_of("", {"~trainer.max_steps"}), {"key=value"});
  expect_parts(error_of("", {"~trainer.max_steps=3"}), {"key=null"});
  expect_parts(error_of("", {"model.optim.betas=[0.9"}), {"override 'model.optim.betas=[0.9'", "not YAML"});
  expect_parts(error_of("", {"name=\xff"}), {"not UTF-8"});
  expect_parts(error_of("", {"a b=3"}), {"key=value"});
  expect_parts(error_of("", {"model.optim.lr="}), {"override 'model.optim.lr='", "no value", "model.optim.lr=null"});
  expect_parts(error_of("", {"model.optim.lr= "}), {"no value"});
}

TEST(Load, Files) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("megalith_config_{}.yaml", ::getpid());
  std::ofstream(path) << "trainer:\n  max_steps: 21\n";
  const std::vector<std::filesystem::path> files = {path};
  EXPECT_EQ(load(files, {}).trainer.max_steps, 21);
  std::filesystem::remove(path);
  expect_parts(user_error_of([&] { load(files, {}); }), {"no config file", path.string()});
  expect_parts(user_error_of([&] { load(std::vector{path.parent_path()}, {}); }), {"is a directory"});
}

}  // namespace
}  // namespace megalith::config
