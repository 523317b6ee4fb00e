#include "config/validate.h"

#include <gtest/gtest.h>

#include "config/expect_error.h"
#include "config/load.h"

namespace megalith::config {
namespace {

Run valid(const std::vector<std::string>& overrides) {
  config::Run run = load(std::vector<Source>{}, overrides);
  validate(run);
  return run;
}

TEST(Validate, FillsWhatFollows) {
  const config::Run run = valid({"model.encoder_seq_length=512", "trainer.max_steps=70", "name=abc"});
  EXPECT_EQ(run.model.ffn_hidden_size, 3072);
  EXPECT_EQ(run.model.num_query_groups, 12);
  EXPECT_EQ(run.model.kv_channels, 64);
  EXPECT_EQ(run.model.max_position_embeddings, 512);
  EXPECT_EQ(run.model.data.seq_length, 512);
  EXPECT_EQ(run.model.optim.sched.max_steps, 70);
  EXPECT_EQ(run.exp_manager.explicit_log_dir, "runs/abc");
  EXPECT_FALSE(run.model.wrap_with_zero);
}

TEST(Validate, OneSpellingPerChoice) {
  const config::Run run =
      valid({"trainer.precision=bf16-mixed", "trainer.accelerator=cuda", "model.activation=fast-swiglu",
             "model.normalization=RMSNorm", "model.optim.sched.name=cosineannealing",
             "model.optim.name=distributed_fused_adam", "model.activations_checkpoint_granularity=none"});
  EXPECT_EQ(run.trainer.precision, "bf16");
  EXPECT_EQ(run.trainer.accelerator, "gpu");
  EXPECT_EQ(run.model.activation, "swiglu");
  EXPECT_EQ(run.model.normalization, "rmsnorm");
  EXPECT_EQ(run.model.optim.sched.name, "CosineAnnealing");
  EXPECT_EQ(run.model.activations_checkpoint_granularity, "");
  EXPECT_TRUE(run.model.wrap_with_zero);
  for (const char* name : {"constant", "linear", "WSD"}) {
    EXPECT_EQ(valid({std::string("model.optim.sched.name=") + name}).model.optim.sched.name, name);
  }
  EXPECT_EQ(valid({"trainer.precision=32-true"}).trainer.precision, "32");
}

TEST(Validate, AutoDataFollowsThePrefix) {
  EXPECT_EQ(valid({"model.data.data_impl=auto"}).model.data.data_impl, "mock");
  EXPECT_EQ(valid({"model.data.data_impl=auto", "model.data.data_prefix=[1.0,x]"}).model.data.data_impl, "mmap");
}

TEST(Validate, Layouts) {
  valid({"model.num_layers=126", "model.pipeline_model_parallel_size=18",
         "model.virtual_pipeline_model_parallel_size=7", "trainer.devices=18"});
  valid({"model.hidden_size=100", "model.num_attention_heads=3", "model.kv_channels=32"});
  valid({"model.num_attention_heads=16", "model.num_query_groups=2", "model.tensor_model_parallel_size=4",
         "trainer.devices=4"});
}

struct Bad {
  std::vector<std::string> overrides;
  std::vector<std::string> parts;
};

TEST(Validate, BadConfigsSayWhatAndWhatToDo) {
  const std::vector<Bad> cases = {
      {{"model.hidden_size=770"}, {"model.hidden_size`=770", "num_attention_heads`=12", "768 or 780", "kv_channels"}},
      {{"model.hidden_size=5"}, {"model.hidden_size`=5", "use hidden_size 12"}},
      {{"model.num_query_groups=5"}, {"num_query_groups`=5", "num_attention_heads=12"}},
      {{"model.global_batch_size=10", "model.micro_batch_size=4"},
       {"global_batch_size`=10", "micro_batch_size 4", "8 or 12"}},
      {{"model.global_batch_size=3", "trainer.devices=4"}, {"data-parallel size 4", "use 4"}},
      {{"model.tensor_model_parallel_size=5", "trainer.devices=5"},
       {"tensor_model_parallel_size`=5", "num_attention_heads=12"}},
      {{"model.tensor_model_parallel_size=4", "trainer.devices=4", "model.ffn_hidden_size=30"}, {"ffn_hidden_size=30"}},
      {{"model.tensor_model_parallel_size=12", "trainer.devices=12", "model.tokenizer.vocab_size=50000"},
       {"padded vocabulary=50048", "make_vocab_size_divisible_by"}},
      {{"model.tensor_model_parallel_size=4", "trainer.devices=4", "model.num_query_groups=6"},
       {"num_query_groups`=6"}},
      {{"model.pipeline_model_parallel_size=5", "trainer.devices=5"}, {"num_layers`=12", "5 equal chunks"}},
      {{"model.virtual_pipeline_model_parallel_size=2"}, {"more than one pipeline stage"}},
      {{"model.context_parallel_size=3", "trainer.devices=3"}, {"context_parallel_size`=3", "multiple of 6"}},
      {{"model.sequence_parallel=true", "model.tensor_model_parallel_size=4", "trainer.devices=4",
        "model.encoder_seq_length=1022"},
       {"sequence_parallel", "multiple of 4"}},
      {{"model.tensor_model_parallel_size=2", "trainer.devices=3"},
       {"trainer.devices x trainer.num_nodes = 3", "tensor 2"}},
      {{"model.num_layers=0"}, {"model.num_layers`=0", "at least 1"}},
      {{"model.hidden_size=-1"}, {"model.hidden_size`=-1"}},
      {{"model.num_attention_heads=0"}, {"num_attention_heads`=0"}},
      {{"model.micro_batch_size=0"}, {"micro_batch_size`=0"}},
      {{"model.hidden_size=9000000000"}, {"at most"}},
      {{"trainer.max_steps=-1"}, {"trainer.max_steps`=-1"}},
      {{"trainer.devices=0"}, {"trainer.devices`=0"}},
      {{"model.hidden_dropout=1.0"}, {"model.hidden_dropout`=1", "below 1"}},
      {{"model.attention_dropout=-0.1"}, {"model.attention_dropout"}},
      {{"model.optim.betas=[0.9,1.0]"}, {"model.optim.betas`=1", "below 1"}},
      {{"model.optim.betas=[0.9]"}, {"has 1 numbers"}},
      {{"model.optim.lr=-1"}, {"model.optim.lr`=-1", "at least 0"}},
      {{"model.optim.eps=0"}, {"model.optim.eps"}},
      {{"model.optim.sched.min_lr=1"}, {"min_lr`=1", "lower it too"}},
      {{"trainer.max_time=10h"}, {"trainer.max_time", "DD:HH:MM:SS"}},
      {{"trainer.max_time='00:00:00:00'"}, {"trainer.max_time", "null for no limit"}},
      {{"model.optim.sched.name=PolynomialDecayAnnealing"},
       {"sched.name", "PolynomialDecayAnnealing", "CosineAnnealing"}},
      {{"model.optim.name=sgd"}, {"model.optim.name`=sgd", "adamw"}},
      {{"model.optim.name=adam"}, {"adds the decay to the gradient"}},
      {{"model.activation=geglu"}, {"model.activation`=geglu", "gelu, swiglu"}},
      {{"model.normalization=layernorm1p"}, {"model.normalization"}},
      {{"model.position_embedding_type=alibi"}, {"alibi", "rope"}},
      {{"model.activations_checkpoint_granularity=half"}, {"null, selective, full"}},
      {{"model.data.data_impl=lazy"}, {"data_impl`=lazy"}},
      {{"trainer.precision=16"}, {"trainer.precision=16", "use bf16"}},
      {{"trainer.accelerator=tpu"}, {"trainer.accelerator`=tpu"}},
      {{"resilience.on_non_finite=pray"}, {"resilience.on_non_finite"}},
      {{"model.data.splits_string=a"}, {"model.data.splits_string"}},
      {{"model.max_position_embeddings=100"}, {"encoder_seq_length`=1024", "100 learned positions"}},
      {{"model.position_embedding_type=rope", "model.kv_channels=63"}, {"even model.kv_channels"}},
      {{"model.data.seq_length=5"}, {"model.data.seq_length`=5", "encoder_seq_length`=1024"}},
      {{"model.data.data_prefix=[a,1.0]"}, {"'a'", "weight"}},
      {{"model.data.data_prefix=[1.0,b,2.0]"}, {"3 entries"}},
      {{"model.data.validation_prefix=[1.0]"}, {"validation_prefix", "1 entries"}},
      {{"model.data.data_impl=mock", "model.data.data_prefix=[x]"}, {"data_impl=mmap"}},
      {{"name=a/b"}, {"`name`='a/b'"}},
      {{"model.rope_scaling.factor=0.5"}, {"model.rope_scaling.factor"}},
      {{"model.optim.sched.name=WSD", "model.optim.sched.decay_steps=1000"}, {"decay_steps`=1000", "100 steps"}},
  };
  for (const auto& [overrides, parts] : cases) {
    SCOPED_TRACE(overrides[0]);
    expect_parts(user_error_of([&, &o = overrides] { valid(o); }), parts);
  }
}

TEST(Validate, AllProblemsAtOnce) {
  expect_parts(user_error_of([] {
                 valid({"model.num_layers=0", "model.optim.lr=-1", "trainer.precision=16"});
               }),
               {"3 problems", "model.num_layers", "model.optim.lr", "bf16"});
}

}  // namespace
}  // namespace megalith::config
