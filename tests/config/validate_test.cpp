#include "config/validate.h"

#include <gtest/gtest.h>

#include "config/derived.h"
#include "config/load.h"
#include "expect_error.h"

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
  EXPECT_EQ(word_of(run.trainer.precision), "bf16");
  EXPECT_EQ(word_of(run.trainer.accelerator), "gpu");
  EXPECT_EQ(word_of(run.model.activation), "swiglu");
  EXPECT_EQ(word_of(run.model.normalization), "rmsnorm");
  EXPECT_EQ(word_of(run.model.optim.sched.name), "CosineAnnealing");
  EXPECT_EQ(word_of(run.model.activations_checkpoint_granularity), "");
  EXPECT_TRUE(run.model.wrap_with_zero);
  for (const char* name : {"constant", "linear", "WSD"}) {
    EXPECT_EQ(word_of(valid({std::string("model.optim.sched.name=") + name}).model.optim.sched.name), name);
  }
  EXPECT_EQ(word_of(valid({"trainer.precision=32-true"}).trainer.precision), "32");
}

TEST(Validate, PrecisionHasManyNames) {
  for (const std::string name : {"32", "32-true", "FP32"})
    EXPECT_EQ(compute_dtype(valid({"trainer.precision=" + name}).trainer), DType::f32);
  for (const std::string name : {"bf16", "bf16-mixed", "bf16-true", "BF16"})
    EXPECT_EQ(compute_dtype(valid({"trainer.precision=" + name}).trainer), DType::bf16);
  for (const std::string name : {"16", "16-mixed", "fp16"}) {
    expect_parts(user_error_of([&] { valid({"trainer.precision=" + name}); }),
                 {"`trainer.precision`=" + name + " is not supported, nor is fp16 under another name: use 32, bf16"});
  }
}

TEST(Validate, AutoDataFollowsThePrefix) {
  EXPECT_EQ(word_of(valid({"model.data.data_impl=auto"}).model.data.data_impl), "mock");
  EXPECT_EQ(word_of(valid({"model.data.data_impl=auto", "model.data.data_prefix=[1.0,x]"}).model.data.data_impl),
            "mmap");
}

TEST(Validate, Sinks) {
  const ExpManager usual = valid({}).exp_manager;
  EXPECT_EQ(usual.prometheus.port, 0) << "metrics are served only where a port is given";
  EXPECT_EQ(usual.prometheus.address, "127.0.0.1");
  EXPECT_FALSE(usual.log_megatron_iterations);
  EXPECT_TRUE(usual.create_events_logger);
  EXPECT_EQ(valid({"exp_manager.prometheus.port=9464"}).exp_manager.prometheus.port, 9464);
  EXPECT_FALSE(valid({"trainer.enable_progress_bar=false"}).trainer.enable_progress_bar);
  expect_parts(user_error_of([] {
                 valid({"exp_manager.prometheus.port=70000", "exp_manager.step_floor_seconds=-1"});
               }),
               {"`exp_manager.prometheus.port`=70000 must be at most 65535", "`exp_manager.step_floor_seconds`=-1"});
  expect_parts(user_error_of([] {
                 valid({"exp_manager.prometheus.port=9464", "exp_manager.prometheus.address=''"});
               }),
               {"exp_manager.prometheus.address", "127.0.0.1"});
}

TEST(Validate, CopiesOnAnotherNodeNeedOneAndMemory) {
  const std::string prefix = "exp_manager.checkpoint_callback_params.";
  const std::string on = prefix + "local_peer_copy=true";
  const std::string often = prefix + "local_every_n_train_steps=5";
  EXPECT_TRUE(valid({on, often, "trainer.num_nodes=2"}).exp_manager.checkpoint_callback_params.local_peer_copy);
  expect_parts(user_error_of([&] {
                 valid({on, prefix + "memory_dirpath=none"});
               }),
               {"needs another node", "set local_every_n_train_steps", "set memory_dirpath"});
}

TEST(Validate, ParallelChoicesHaveOneSpelling) {
  const config::Run run = valid({"model.virtual_pipeline_model_parallel_size=null", "model.pipeline_schedule=ZB-H1",
                                 "model.optim.grad_sync_dtype=torch.bfloat16", "model.optim.bucket_cap_mb=220"});
  EXPECT_EQ(run.model.virtual_pipeline_model_parallel_size, 1);
  EXPECT_EQ(word_of(run.model.pipeline_schedule), "zero_bubble");
  EXPECT_EQ(word_of(run.model.optim.grad_sync_dtype), "bf16");
  EXPECT_EQ(run.model.optim.bucket_cap_mb, 220);
  EXPECT_EQ(word_of(valid({}).model.optim.grad_sync_dtype), "fp32");
  EXPECT_EQ(word_of(valid({}).model.pipeline_schedule), "1f1b");
  EXPECT_EQ(valid({}).trainer.communication_timeout, 600.0);
}

TEST(Validate, ShardedWeightsShardTheOptimizerToo) {
  EXPECT_TRUE(valid({"model.fsdp=true"}).model.wrap_with_zero);
}

TEST(Validate, RecomputeMethodBelongsToFull) {
  const Model plain = valid({"model.activations_checkpoint_granularity=full"}).model;
  EXPECT_EQ(word_of(plain.activations_checkpoint_method), "uniform");
  EXPECT_EQ(plain.activations_checkpoint_num_layers, 1);
  const Model block = valid({"model.activations_checkpoint_granularity=full",
                             "model.activations_checkpoint_method=block", "model.activations_checkpoint_num_layers=3"})
                          .model;
  EXPECT_EQ(word_of(block.activations_checkpoint_method), "block");
  EXPECT_EQ(block.activations_checkpoint_num_layers, 3);
  const Model selective =
      valid({"model.activations_checkpoint_granularity=selective", "model.activations_checkpoint_method=uniform",
             "model.activations_checkpoint_num_layers=1"})
          .model;
  EXPECT_EQ(word_of(selective.activations_checkpoint_method), "");
  EXPECT_EQ(selective.activations_checkpoint_num_layers, 0);
}

TEST(Validate, HeadsMayBeOfAnyWidth) {
  valid({"model.hidden_size=100", "model.num_attention_heads=3", "model.kv_channels=32"});
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
       {"global_batch_size`=10", "micro_batch_size`=4", "8 or 12"}},
      {{"model.global_batch_size=1", "model.micro_batch_size=4"}, {"use 4"}},
      {{"model.fsdp=true", "model.pipeline_model_parallel_size=2"}, {"model.fsdp", "pipeline_model_parallel_size=1"}},
      {{"model.pipeline_schedule=gpipe"}, {"model.pipeline_schedule`=gpipe", "1f1b, zero_bubble"}},
      {{"model.optim.grad_sync_dtype=fp16"}, {"model.optim.grad_sync_dtype`=fp16", "fp32, bf16"}},
      {{"model.optim.bucket_cap_mb=0"}, {"model.optim.bucket_cap_mb`=0"}},
      {{"model.activations_checkpoint_granularity=full", "model.activations_checkpoint_method=block"},
       {"activations_checkpoint_method`=block", "activations_checkpoint_num_layers"}},
      {{"model.activations_checkpoint_method=both"}, {"null, uniform, block"}},
      {{"model.num_layers_in_last_pipeline_stage=-1"}, {"num_layers_in_last_pipeline_stage`=-1"}},
      {{"trainer.communication_timeout=0"}, {"trainer.communication_timeout`=0", "above 0"}},
      {{"trainer.start_timeout=-5"}, {"trainer.start_timeout`=-5", "above 0"}},
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
      {{"trainer.precision=16"}, {"trainer.precision`=16", "use 32, bf16"}},
      {{"trainer.accelerator=tpu"}, {"trainer.accelerator`=tpu"}},
      {{"resilience.on_non_finite=pray"}, {"resilience.on_non_finite"}},
      {{"resilience.num_spare_nodes=-1"}, {"resilience.num_spare_nodes`=-1", "at least 0"}},
      {{"resilience.heartbeat_timeout_s=0"}, {"resilience.heartbeat_timeout_s`=0", "above 0"}},
      {{"resilience.heartbeat_polling_period_s=0.5"}, {"heartbeat_polling_period_s`=0.5", "once a second"}},
      {{"resilience.heartbeat_timeout_s=2"},
       {"heartbeat_timeout_s`=2", "heartbeat_polling_period_s`=1", "three times"}},
      {{"model.data.splits_string=a"}, {"model.data.splits_string"}},
      {{"model.max_position_embeddings=100"}, {"encoder_seq_length`=1024", "100 learned positions"}},
      {{"model.position_embedding_type=rope", "model.kv_channels=63"}, {"even model.kv_channels"}},
      {{"model.data.seq_length=5"}, {"model.data.seq_length`=5", "encoder_seq_length`=1024"}},
      {{"model.data.validation_files=-1"}, {"model.data.validation_files`=-1", "at least 0"}},
      {{"model.data.test_files=-1"}, {"model.data.test_files`=-1", "at least 0"}},
      {{"model.nsys_profile.ranks=[0,-1]"}, {"model.nsys_profile.ranks`=-1", "at least 0"}},
      {{"exp_manager.checkpoint_callback_params.save_top_k=0"}, {"save_top_k`=0", "create_checkpoint_callback=false"}},
      {{"model.scale_positional_embedding=true"}, {"position_embedding_type=rope"}},
      {{"model.data.data_prefix=[a,1.0]"}, {"'a'", "weight"}},
      {{"model.data.data_prefix=[1.0,b,2.0]"}, {"3 entries"}},
      {{"model.data.validation_prefix=[1.0]"}, {"validation_prefix", "1 entries"}},
      {{"model.data.data_impl=mock", "model.data.data_prefix=[x]"}, {"data_impl=mmap"}},
      {{"name=a/b"}, {"`name`='a/b'"}},
      {{"model.rope_scaling.factor=0.5"}, {"model.rope_scaling.factor"}},
      {{"model.fp8=true"}, {"model.fp8` needs one of", "fp8_hybrid", "fp8_e4m3", "none is set"}},
      {{"model.fp8=true", "model.fp8_hybrid=true", "trainer.accelerator=gpu", "trainer.precision=32"},
       {"model.fp8` on a GPU needs trainer.precision=bf16", "not 32"}},
      {{"model.fp8=true", "model.fp8_hybrid=true", "model.hidden_size=72", "model.ffn_hidden_size=64"},
       {"multiples of 16: model.hidden_size has 72 on each rank"}},
      {{"model.fp8=true", "model.fp8_hybrid=true", "model.ffn_hidden_size=3080"},
       {"multiples of 16: model.ffn_hidden_size has 3080"}},
      {{"model.fp8=true", "model.fp8_hybrid=true", "model.encoder_seq_length=100", "model.micro_batch_size=1"},
       {"tokens of a micro batch", "has 100 on each rank"}},
      {{"model.fp8_recipe=blockwise"}, {"fp8_recipe`=blockwise is not supported yet", "delayed, tensorwise"}},
      {{"model.fp8_recipe=mxfp8"}, {"fp8_recipe`=mxfp8 is not supported yet"}},
      {{"model.fp8_recipe=rows"}, {"fp8_recipe`=rows", "delayed, tensorwise"}},
      {{"model.fp8_amax_history_len=0"}, {"model.fp8_amax_history_len`=0", "at least 1"}},
      {{"model.fp8_amax_compute_algo=median"}, {"fp8_amax_compute_algo`=median", "max, most_recent"}},
      {{"model.fp8_margin=-1"}, {"model.fp8_margin`=-1", "at least 0"}},
      {{"model.fp8=true", "model.fp8_hybrid=true", "model.first_last_layers_bf16=true",
        "model.num_layers_at_end_in_bf16=12"},
       {"first_last_layers_bf16", "1 + 12 layers", "the model has 12"}},
      {{"model.optim.sched.name=WSD", "model.optim.sched.decay_steps=1000"}, {"decay_steps`=1000", "100 steps"}},
  };
  for (const auto& [overrides, parts] : cases) {
    SCOPED_TRACE(overrides[0]);
    expect_parts(user_error_of([&, &o = overrides] { valid(o); }), parts);
  }
}

TEST(Validate, NemosNamesForWhatIsHere) {
  const config::Run run = valid({"model.position_embedding_type=rope", "model.scale_positional_embedding=true",
                                 "model.optim.name=mcore_distributed_optim"});
  EXPECT_EQ(run.model.rope_scaling.factor, 8.0);
  EXPECT_EQ(run.model.rope_scaling.low_freq_factor, 1.0);
  EXPECT_EQ(run.model.rope_scaling.high_freq_factor, 4.0);
  EXPECT_EQ(run.model.rope_scaling.old_context_len, 8192);
  const config::Run both_formats = valid({"model.fp8=true", "model.fp8_hybrid=true", "model.fp8_e4m3=true"});
  EXPECT_TRUE(both_formats.model.fp8_e4m3);
  EXPECT_FALSE(both_formats.model.fp8_hybrid);
  EXPECT_TRUE(run.model.wrap_with_zero);
  EXPECT_EQ(valid({"model.position_embedding_type=rope", "model.scale_positional_embedding=true",
                   "model.rope_scaling.factor=32"})
                .model.rope_scaling.factor,
            32.0);
}

TEST(Validate, AllProblemsAtOnce) {
  expect_parts(user_error_of([] {
                 valid({"model.num_layers=0", "model.optim.lr=-1", "trainer.precision=16"});
               }),
               {"3 problems", "model.num_layers", "model.optim.lr", "bf16"});
}

}  // namespace
}  // namespace megalith::config
