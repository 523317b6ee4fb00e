#include "config/print.h"

#include <gtest/gtest.h>

#include <map>

#include "config/keys.h"
#include "config/load.h"
#include "config/validate.h"
#include "expect_error.h"

namespace megalith::config {
namespace {

Run reload(const std::string& yaml) {
  LoadReport report;
  config::Run run = load(std::vector<Source>{{"hparams.yaml", yaml}}, {}, &report);
  EXPECT_TRUE(report.ignored.empty());
  return run;
}

void expect_same(Run a, Run b) {
  const auto left = keys_of(a);
  const auto right = keys_of(b);
  for (size_t i = 0; i < left.size(); ++i) {
    const auto equals = [&]<class T>(const T& field) {
      const T& other = std::get<T>(right[i].field);
      if constexpr (std::is_same_v<T, Choice>) {
        return field.word(field.value) == other.word(other.value);
      } else {
        return *field == *other;
      }
    };
    EXPECT_TRUE(std::visit(equals, left[i].field)) << left[i].path;
  }
}

TEST(Print, DefaultsRoundTrip) {
  expect_same(reload(to_yaml(config::Run{})), config::Run{});
}

TEST(Print, EveryFieldRoundTrips) {
  config::Run run;
  int n = 0;
  for (const Key& key : keys_of(run)) {
    ++n;
    if (auto* const* flag = std::get_if<bool*>(&key.field)) **flag = !**flag;
    if (auto* const* number = std::get_if<int64_t*>(&key.field))
      **number = static_cast<int64_t>(std::clamp(1000.0 + n, key.range.low, key.range.high));
    if (auto* const* number = std::get_if<double*>(&key.field))
      **number = std::max(0.0, key.range.low) + 1.0 / 3 + n * 1e-7;
    if (auto* const* text = std::get_if<std::string*>(&key.field))
      **text = fmt::format("a: \"{}\" #\\ \x01\xc3\xa9${{", n);
    if (auto* const* list = std::get_if<std::vector<int64_t>*>(&key.field)) **list = {7, 0, 1000 + n};
    if (auto* const* list = std::get_if<std::vector<double>*>(&key.field)) **list = {1e-5, 1.0 / 3, 5e-324};
    if (auto* const* list = std::get_if<std::vector<std::string>*>(&key.field)) **list = {"null", "", "1.0", "x, y]"};
    if (const auto* choice = std::get_if<Choice>(&key.field)) {
      const std::string words = choice->words();
      EXPECT_TRUE(choice->assign(choice->value, words.substr(words.rfind(' ') + 1))) << words;
    }
  }
  // An interpolation mark in a text cannot be written; take it out again.
  for (const Key& key : keys_of(run)) {
    if (auto* const* text = std::get_if<std::string*>(&key.field)) (*text)->resize((*text)->size() - 2);
  }
  expect_same(reload(to_yaml(run)), run);
}

TEST(Print, EffectiveConfigRoundTripsAndStaysValid) {
  config::Run run;
  validate(run);
  config::Run again = reload(to_yaml(run));
  validate(again);
  expect_same(again, run);
  EXPECT_EQ(to_yaml(again), to_yaml(run));
  validate(again);
  EXPECT_EQ(to_yaml(again), to_yaml(run));
}

TEST(Print, WhatWasDerivedIsDerivedAnew) {
  config::Run run = load(std::vector<Source>{{"r.yaml",
                                              "name: x\nmodel:\n  encoder_seq_length: 128\n  kv_channels: 32\n"
                                              "  activations_checkpoint_method: block\n  fsdp: true\n"
                                              "  data: {data_impl: auto}\n"}},
                         {});
  validate(run);
  const std::string yaml = to_yaml(run);
  expect_parts(yaml, {"config_version: 2\n", "seq_length: 0  # 128\n", "max_position_embeddings: 0  # 128\n",
                      "kv_channels: 32\n", "data_impl: auto  # mock\n", "wrap_with_zero: false  # true\n",
                      "activations_checkpoint_method: block  # null\n", "explicit_log_dir: null  # runs/x\n",
                      "      max_steps: 0  # 100\n"});
  EXPECT_EQ(derived_values(yaml).at("model.data.data_impl"), "mock");
  EXPECT_FALSE(derived_values(yaml).contains("model.kv_channels"));
  EXPECT_TRUE(derived_values("not: [yaml").empty());
  const auto with = [&](const std::vector<std::string>& overrides) {
    config::Run changed = load(std::vector<Source>{{"hparams.yaml", yaml}}, overrides);
    validate(changed);
    return changed;
  };
  EXPECT_EQ(with({"model.encoder_seq_length=64"}).model.data.seq_length, 64);
  EXPECT_EQ(with({"trainer.max_steps=60"}).model.optim.sched.max_steps, 60);
  EXPECT_EQ(with({"name=y"}).exp_manager.explicit_log_dir, "runs/y");
  EXPECT_EQ(word_of(with({"model.data.data_prefix=[p]"}).model.data.data_impl), "mmap");
  EXPECT_FALSE(with({"model.fsdp=false"}).model.wrap_with_zero);
  EXPECT_EQ(with({"model.hidden_size=1536"}).model.ffn_hidden_size, 6144);
  EXPECT_EQ(with({"model.hidden_size=1536"}).model.kv_channels, 32) << "it was set";
}

TEST(Print, NestedYaml) {
  const std::string yaml = to_yaml(config::Run{});
  expect_parts(yaml, {"config_version: 2\nname: megalith\n", "trainer:\n  accelerator: auto\n  precision: \"32\"\n",
                      "  max_time: null\n", "\nmodel:\n  micro_batch_size: 1\n", "  optim:\n    name: adamw\n",
                      "    betas: [0.9, 0.95]\n", "    sched:\n      name: CosineAnnealing\n",
                      "  step_timing_kwargs:\n    buffer_size: 5\n",
                      "resilience:\n  on_non_finite: stop\n  failpoints: []\n  num_spare_nodes: 0\n"});
  EXPECT_EQ(yaml.find("model:\n"), yaml.rfind("\nmodel:\n") + 1);
}

TEST(Print, FlattenIsNemosParameterRecord) {
  config::Run run;
  run.trainer.precision = Precision::bf16;
  run.model.data.data_prefix = {"1.0", "x"};
  std::map<std::string, nlohmann::ordered_json> record;
  for (const auto& [key, value] : flatten(run)) {
    EXPECT_TRUE(key.starts_with("cfg/")) << key;
    EXPECT_TRUE(record.emplace(key, value).second) << key;
  }
  EXPECT_EQ(record.at("cfg/micro_batch_size"), 1);
  EXPECT_EQ(record.at("cfg/optim/sched/name"), "CosineAnnealing");
  EXPECT_EQ(record.at("cfg/optim/betas").dump(), "[0.9,0.95]");
  EXPECT_EQ(record.at("cfg/data/data_prefix").dump(), R"(["1.0","x"])");
  EXPECT_TRUE(record.at("cfg/resume_from_checkpoint").is_null());
  EXPECT_EQ(record.at("cfg/bias"), true);
  EXPECT_EQ(record.at("cfg/layernorm_epsilon"), 1e-5);
  EXPECT_EQ(record.at("cfg/precision"), "bf16");
  EXPECT_EQ(flatten(run).front().first, "cfg/micro_batch_size");
}

TEST(Print, HelpNamesEveryKey) {
  const std::string help = describe_keys();
  config::Run run;
  for (const Key& key : keys_of(run)) expect_parts(help, {fmt::format("  {}: ", key.path), std::string(key.help)});
  expect_parts(help, {"model.mcore_gpt: ", "model.fp8_wgrad [true]: "});
}

}  // namespace
}  // namespace megalith::config
