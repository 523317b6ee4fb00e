#include "config/known_keys.h"

#include <array>

namespace megalith::config {
namespace {

using enum KnownKey::Fate;

constexpr std::string_view kLauncher = "belongs to NeMo's launcher";
constexpr std::string_view kLightning = "belongs to PyTorch Lightning";
constexpr std::string_view kLogger = "belongs to another logger";
constexpr std::string_view kFusion = "kernels are fused where that is faster";
constexpr std::string_view kOverlap = "how communication is scheduled does not change the result";
constexpr std::string_view kBuckets = "gradient buckets are laid out with the rest of memory, before the first step";
constexpr std::string_view kFp16 = "loss scaling belongs to fp16";
constexpr std::string_view kScales = "all ranks that hold a part of an operand have the same scale";
constexpr std::string_view kSharding = "what is sharded follows from model.wrap_with_zero and model.fsdp";
constexpr std::string_view kCheckpoint = "checkpoints have one format";
constexpr std::string_view kRecompute = "activations_checkpoint_granularity, _method and _num_layers decide";
constexpr std::string_view kPretraining = "only pretraining is supported";
constexpr std::string_view kExperts = "mixture-of-experts models are not supported yet";
constexpr std::string_view kWarmup = "give the length in steps: model.optim.sched.warmup_steps";

constexpr auto kKnown = std::to_array<KnownKey>({
    // the launcher and Hydra
    {"run.*", ignored, kLauncher},
    {"hydra.*", ignored, kLauncher},
    {"defaults", ignored, kLauncher},
    {"cluster.*", ignored, kLauncher},
    {"restore_from_path", refused, "a .nemo file cannot be read; set model.restore_from_path to a checkpoint"},

    // trainer
    {"trainer.logger", ignored, kLightning},
    {"trainer.enable_checkpointing", ignored, "exp_manager.create_checkpoint_callback decides"},
    {"trainer.use_distributed_sampler", ignored, kLightning},
    {"trainer.replace_sampler_ddp", ignored, kLightning},
    {"trainer.max_epochs", ignored, "trainer.max_steps decides"},
    {"trainer.limit_test_batches", ignored, "there is no test pass"},
    {"trainer.accumulate_grad_batches", refused, "set model.global_batch_size; accumulation follows from it", "1"},
    {"trainer.limit_train_batches", refused, "set trainer.max_steps", "1.0"},
    {"trainer.overfit_batches", refused, "not supported", "0"},
    {"trainer.fast_dev_run", refused, "set trainer.max_steps", "false|0"},
    {"trainer.gradient_clip_algorithm", refused, "gradients are clipped by their norm", "norm"},
    {"trainer.benchmark", ignored, "belongs to PyTorch"},
    {"trainer.check_val_every_n_epoch", ignored, "trainer.val_check_interval decides"},
    {"trainer.num_sanity_val_steps", ignored, kLightning},
    {"trainer.enable_model_summary", ignored, kLightning},
    {"trainer.detect_anomaly", ignored, "resilience.on_non_finite decides"},
    {"trainer.profiler", ignored, kLightning},
    {"trainer.strategy.*", ignored, kLightning},
    {"trainer.plugins", ignored, kLightning},
    {"trainer.callbacks.*", ignored, kLightning},
    {"trainer.sync_batchnorm", ignored, kLightning},
    {"trainer.barebones", ignored, kLightning},
    {"trainer.inference_mode", ignored, kLightning},
    {"trainer.limit_predict_batches", ignored, kLightning},
    {"trainer.log_gpu_memory", ignored, "memory is a table printed at the start"},
    {"trainer.reload_dataloaders_every_n_epochs", ignored, kLightning},
    {"trainer.amp_level", ignored, "trainer.precision decides"},
    {"trainer.amp_backend", ignored, "trainer.precision decides"},
    {"trainer.gpus", refused, "set trainer.devices"},
    {"trainer.min_steps", refused, "set trainer.max_steps"},
    {"trainer.min_epochs", refused, "set trainer.max_steps"},
    {"trainer.default_root_dir", refused, "use exp_manager.explicit_log_dir"},

    // exp_manager
    {"exp_manager.name", ignored, "the top-level key `name` decides"},
    {"exp_manager.version", ignored, "a run directory has no versions"},
    {"exp_manager.use_datetime_version", ignored, "a run directory has no versions"},
    {"exp_manager.exp_dir", refused, "use exp_manager.explicit_log_dir"},
    {"exp_manager.create_wandb_logger", ignored, kLogger},
    {"exp_manager.wandb_logger_kwargs.*", ignored, kLogger},
    {"exp_manager.create_neptune_logger", ignored, kLogger},
    {"exp_manager.neptune_logger_kwargs.*", ignored, kLogger},
    {"exp_manager.create_mlflow_logger", ignored, kLogger},
    {"exp_manager.mlflow_logger_kwargs.*", ignored, kLogger},
    {"exp_manager.create_clearml_logger", ignored, kLogger},
    {"exp_manager.clearml_logger_kwargs.*", ignored, kLogger},
    {"exp_manager.summary_writer_kwargs.*", ignored, kLogger},
    {"exp_manager.dllogger_logger_kwargs.*", ignored, "dllogger.json is verbose; the console has its own lines"},
    {"exp_manager.resume_ignore_no_checkpoint", ignored, "resume_if_exists starts anew where there is no checkpoint"},
    {"exp_manager.resume_past_end", ignored, "a finished run that is lengthened continues"},
    {"exp_manager.resume_from_checkpoint", refused, "set model.resume_from_checkpoint",
     "${model.resume_from_checkpoint}"},
    {"exp_manager.seconds_to_sleep", ignored, "belongs to NeMo's logger"},
    {"exp_manager.log_step_timing", ignored, "step times are always logged"},
    {"exp_manager.log_delta_step_timing", ignored, "step times are always logged"},
    {"exp_manager.log_tflops_per_sec_per_gpu", ignored, "TFLOPS of each rank are always logged"},
    {"exp_manager.disable_validation_on_resume", ignored, "trainer.val_check_interval decides"},
    {"exp_manager.step_timing_kwargs.sync_cuda", ignored, "steps are timed without stopping the device"},
    {"exp_manager.log_local_rank_0_only", ignored, "belongs to NeMo's logger"},
    {"exp_manager.log_global_rank_0_only", ignored, "belongs to NeMo's logger"},
    {"exp_manager.files_to_copy", ignored, "the effective config is stored with the run"},
    {"exp_manager.create_preemption_callback", ignored, "a stop signal always saves"},
    {"exp_manager.max_time_per_run", refused, "set trainer.max_time"},
    {"exp_manager.ema.enable", refused, "averaged weights are not supported", "false"},
    {"exp_manager.ema.*", ignored, "has no effect without ema.enable"},
    {"exp_manager.create_early_stopping_callback", refused, "early stopping is not supported", "false"},
    {"exp_manager.early_stopping_callback_params.*", ignored, "has no effect without early stopping"},
    {"exp_manager.create_straggler_detection_callback", ignored, "belongs to NVIDIA's resiliency extension"},
    {"exp_manager.straggler_detection_params.*", ignored, "belongs to NVIDIA's resiliency extension"},
    {"exp_manager.create_fault_tolerance_callback", ignored, "belongs to NVIDIA's resiliency extension"},
    {"exp_manager.fault_tolerance.*", ignored, "belongs to NVIDIA's resiliency extension"},
    {"exp_manager.checkpoint_callback_params.filename", ignored, "checkpoints are named by step"},
    {"exp_manager.checkpoint_callback_params.postfix", ignored, "checkpoints are named by step"},
    {"exp_manager.checkpoint_callback_params.prefix", ignored, "checkpoints are named by step"},
    {"exp_manager.checkpoint_callback_params.every_n_epochs", refused, "set every_n_train_steps"},
    {"exp_manager.checkpoint_callback_params.save_weights_only", refused, "a checkpoint holds the whole state",
     "false"},
    {"exp_manager.checkpoint_callback_params.save_last", ignored, "the last step is always saved"},
    {"exp_manager.checkpoint_callback_params.save_on_train_epoch_end", ignored, "the last step is always saved"},
    {"exp_manager.checkpoint_callback_params.save_best_model", ignored, "monitor decides which are kept"},
    {"exp_manager.checkpoint_callback_params.save_nemo_on_train_end", ignored, "see `megalith checkpoint convert`"},
    {"exp_manager.checkpoint_callback_params.always_save_nemo", ignored, "see `megalith checkpoint convert`"},
    {"exp_manager.checkpoint_callback_params.model_parallel_size", ignored, "checkpoints do not depend on the layout"},
    {"exp_manager.checkpoint_callback_params.async_checkpointing", ignored, kCheckpoint},
    {"exp_manager.checkpoint_callback_params.enable_version_counter", ignored, kCheckpoint},
    {"exp_manager.checkpoint_callback_params.enable_checkpoint_removal_protection", ignored,
     "an old checkpoint goes only after a new one is verified"},
    {"exp_manager.checkpoint_callback_params.verbose", ignored, "every save is logged"},
    {"exp_manager.async_checkpointing", ignored, kCheckpoint},
    {"exp_manager.enable_recovery_time_instrumentation", ignored, "belongs to the Neuron port of NeMo"},

    // model: which implementation computes it
    {"model.mcore_gpt", ignored, "there is one implementation"},
    {"model.transformer_engine", ignored, "there is one implementation"},
    {"model.name", ignored, "the shape decides"},
    {"model.target", ignored, "the shape decides"},
    {"model.nemo_version", ignored, "written by NeMo"},
    {"model.precision", ignored, "trainer.precision decides"},
    {"model.megatron_amp_O2", ignored, "master weights are always fp32"},
    {"model.pre_process", ignored, "follows from the pipeline stage"},
    {"model.post_process", ignored, "follows from the pipeline stage"},
    {"model.persist_layer_norm", ignored, kFusion},
    {"model.bias_activation_fusion", ignored, kFusion},
    {"model.bias_gelu_fusion", ignored, kFusion},
    {"model.bias_dropout_add_fusion", ignored, kFusion},
    {"model.masked_softmax_fusion", ignored, kFusion},
    {"model.get_attention_mask_from_fusion", ignored, kFusion},
    {"model.gradient_accumulation_fusion", ignored, kFusion},
    {"model.grad_div_ar_fusion", ignored, kFusion},
    {"model.apply_rope_fusion", ignored, kFusion},
    {"model.cross_entropy_loss_fusion", ignored, kFusion},
    {"model.fused_softmax", ignored, kFusion},
    {"model.use_flash_attention", ignored, "attention never stores its scores"},
    {"model.use_emha", ignored, "attention never stores its scores"},
    {"model.attention_backend", ignored, "attention never stores its scores"},
    {"model.apply_query_key_layer_scaling", ignored, "it cancels out in exact arithmetic and only helps fp16"},
    {"model.attention_softmax_in_fp32", ignored, "softmax is always fp32"},
    {"model.openai_gelu", ignored, "gelu is the tanh form already"},
    {"model.use_cpu_initialization", ignored, "initial weights do not depend on where they are drawn"},
    {"model.apex_transformer_log_level", ignored, "belongs to Apex"},
    {"model.gc_interval", ignored, "there is no garbage collector"},
    {"model.nsys_profile.trace", ignored, "nsys itself is told what to trace (-t)"},
    {"model.nsys_profile.gen_shape", ignored, "shapes are in the names of the operations of `bench step`"},
    {"model.nsys_profile.cuda-graph-trace", ignored, "nsys itself is told what to trace"},
    {"model.memory_profile.*", ignored, "memory is a table printed at the start"},
    {"model.enable_megatron_timers", ignored, "wall time is always accounted for"},
    {"model.megatron_timer_kwargs.*", ignored, "wall time is always accounted for"},
    {"model.log_parameter_norm", ignored, "logs a number that is not computed here"},
    {"model.log_gradient_norm", ignored, "the gradient norm is always logged"},
    {"model.log_train_loss", ignored, "the loss is always logged"},
    {"model.deterministic_mode", ignored, "trainer.deterministic decides"},
    {"model.cpu_offloading*", ignored, "activations stay on the device"},
    {"model.enable_cuda_graph", ignored, "steps are replayed as CUDA graphs where that is possible"},
    {"model.external_cuda_graph", ignored, "steps are replayed as CUDA graphs where that is possible"},
    {"model.use_te_rng_tracker", ignored, "random numbers have no state"},
    {"model.inference.*", ignored, "see `megalith generate`"},
    {"model.torch_distributed_backend", ignored, "the device decides"},
    {"model.barrier_with_L1_time", ignored, "wall time is always accounted for"},

    // model: communication and sharding
    {"model.overlap_p2p_comm", ignored, kOverlap},
    {"model.batch_p2p_comm", ignored, kOverlap},
    {"model.sync_batch_comm", ignored, kOverlap},
    {"model.ub_tp_comm_*", ignored, "communication inside tensor-parallel GEMMs is not overlapped yet"},
    {"model.tp_comm_*", ignored, "communication inside tensor-parallel GEMMs is not overlapped yet"},
    {"model.sharp", ignored, "NCCL decides"},
    {"model.nccl_communicator_config_path", ignored, "NCCL decides"},
    {"model.defer_embedding_wgrad_compute", ignored, kOverlap},
    {"model.wgrad_deferral_limit", ignored, kOverlap},
    {"model.async_tensor_model_parallel_allreduce", ignored, kOverlap},
    {"model.no_async_tensor_model_parallel_allreduce", ignored, kOverlap},
    {"model.validation_param_sync_overlap", ignored, kOverlap},
    {"model.gradient_as_bucket_view", ignored, kBuckets},
    {"model.grad_allreduce_chunk_size_mb", ignored, kBuckets},
    {"model.use_tp_pp_dp_mapping", ignored, "the order of ranks does not change the result"},
    {"model.fsdp_*", ignored, kSharding},
    {"model.zero_use_master_weight", ignored, kSharding},
    {"model.dist_ckpt_*", ignored, kCheckpoint},
    {"model.save_xser", ignored, kCheckpoint},
    {"model.load_xser", ignored, kCheckpoint},
    {"model.pipeline_model_parallel_split_rank", refused, "encoder-decoder models are not supported", "0"},

    // model: recompute
    {"model.activations_checkpoint_layers_per_pipeline", ignored, kRecompute},
    {"model.num_micro_batches_with_partial_activation_checkpoints", ignored, kRecompute},
    {"model.disable_layer_norm_checkpointing", ignored, kRecompute},

    // model: numbers
    {"model.fp8_wgrad", refused, "weight gradients are fp8 GEMMs as well", "true"},
    {"model.reduce_amax", refused, kScales, "true"},
    {"model.fp8_dot_product_attention", refused, "attention computes in bf16", "false"},
    {"model.fp8_multi_head_attention", refused, "attention computes in bf16", "false"},
    {"model.fp8_output_proj", refused, "the output layer computes in bf16", "false"},
    {"model.fp8_interval", ignored, "scales move once a step"},
    {"model.fp8_params", ignored, "it changes memory and traffic elsewhere, not the result"},
    {"model.fp8_debug_log_dir", ignored, kLogger},
    {"model.tp_only_amax_red", ignored, kScales},
    {"model.native_amp_init_scale", ignored, kFp16},
    {"model.native_amp_growth_interval", ignored, kFp16},
    {"model.hysteresis", ignored, kFp16},
    {"model.fp32_residual_connection", refused, "the residual stream has the precision of the run", "false"},
    {"model.fp16_lm_cross_entropy", refused, "the loss is always computed in fp32", "false"},

    // model: shape
    {"model.ffn_dropout", refused, "dropout inside the MLP is not supported", "0"},
    {"model.use_scaled_init_method", refused, "output projections start at std / sqrt(2 layers)", "true"},
    {"model.do_layer_norm_weight_decay", refused, "norms and biases are not decayed", "false"},
    {"model.headscale", refused, "not supported", "false"},
    {"model.transformer_block_type", refused, "only pre_ln is supported", "pre_ln"},
    {"model.normalize_attention_scores", refused, "attention scores are always scaled", "true"},
    {"model.attention_type", refused, "only multihead is supported", "multihead"},
    {"model.onnx_safe", refused, "it asks for the erf form of gelu; only the tanh form is supported", "false"},
    {"model.rotary_percentage", refused, "only whole heads are rotated", "1"},
    {"model.rotary_interleaved", refused, "rotary pairs are half a head apart", "false"},
    {"model.seq_len_interpolation_factor", refused, "use model.rope_scaling.factor", "1"},
    {"model.scale_factor", refused, "use model.rope_scaling.factor"},
    {"model.layernorm_zero_centered_gamma", refused, "norms multiply by their weight, not by 1 + weight", "false"},
    {"model.multi_query_attention", refused, "use model.num_query_groups=1", "false"},
    {"model.gated_linear_unit", refused, "use model.activation=swiglu", "false"},
    {"model.encoder_tensor_model_parallel_size", refused, "encoder-decoder models are not supported", "0"},
    {"model.encoder_pipeline_model_parallel_size", refused, "encoder-decoder models are not supported", "0"},
    {"model.mcore_customization_config.*", refused, "only Megatron's own decoder layer is supported", "false"},
    {"model.window_size", refused, "windowed attention is not supported"},
    {"model.qk_layernorm", refused, "not supported", "false"},
    {"model.num_moe_experts", refused, kExperts, "1"},
    {"model.expert_model_parallel_size", refused, kExperts, "1"},
    {"model.moe_*", ignored, "has no effect without experts"},
    {"model.peft.*", refused, kPretraining},
    {"model.convert_to_hf", ignored, "see `megalith checkpoint convert`"},
    {"model.output_dir", ignored, "see `megalith checkpoint convert`"},
    {"model.config_path", ignored, "see `megalith checkpoint convert`"},
    {"model.save_logits", refused, "not supported", "false"},
    {"model.save_logits_interval", ignored, "has no effect without save_logits"},

    // model.tokenizer
    {"model.tokenizer.library", refused, "only megatron, huggingface, tiktoken and byte-level tokenizers can be read",
     "megatron|huggingface|tiktoken|byte-level"},
    {"model.tokenizer.delimiter", ignored, "belongs to tabular tokenizers"},
    {"model.tokenizer.sentencepiece_legacy", ignored, "belongs to SentencePiece"},
    {"model.tokenizer.use_fast", ignored, "there is one implementation"},

    // model.data
    {"model.data.skip_warmup", ignored, "how batches are prepared does not change them"},
    {"model.data.num_workers", ignored, "how batches are prepared does not change them"},
    {"model.data.exchange_indices_distributed", ignored, "how batches are prepared does not change them"},
    {"model.data.mmap_bin_files", ignored, "files are read with pread"},
    {"model.data.validation_drop_last", ignored, "validation uses whole batches"},
    {"model.data.pad_samples_to_global_batch_size", ignored, "batches are always whole"},
    {"model.data.delay_data_init", ignored, "data are opened at the start"},
    {"model.data.delay_data_mmap", ignored, "data are opened at the start"},
    {"model.data.legacy_dataset", ignored, "there is one implementation"},
    {"model.data.data_cache_generation_only", refused, "use `megalith data index`", "false"},
    {"model.data.data_cache_*", ignored, "data are read where model.data.data_prefix says"},
    {"model.data.renormalize_blend_weights", ignored, "weights are shares of their sum"},
    {"model.data.mock_dataset", refused, "use model.data.data_impl=mock", "false"},
    {"model.data.dataloader_type", refused, "samples are visited in one order, without repetition", "single"},
    {"model.data.no_seqlen_plus_one_input_tokens", refused, "samples hold one token more than they train on", "false"},
    {"model.data.shuffle_documents", refused, "documents are always shuffled", "true"},
    {"model.data.add_bos", refused, "tokens are used as stored", "false"},
    {"model.data.add_eos", refused, "tokens are used as stored", "false"},
    {"model.data.fine_tuning", refused, kPretraining, "false"},
    {"model.data.chat", refused, kPretraining, "false"},
    {"model.data.train_ds.*", ignored, kPretraining},
    {"model.data.validation_ds.*", ignored, kPretraining},
    {"model.data.test_ds.*", ignored, kPretraining},

    // model.optim
    {"model.optim.contiguous_grad_buffer", ignored, kBuckets},
    {"model.optim.contiguous_param_buffer", ignored, kBuckets},
    {"model.optim.ddp_bucket_size", ignored, kBuckets},
    {"model.optim.overlap_grad_sync", ignored, kOverlap},
    {"model.optim.overlap_param_sync", ignored, kOverlap},
    {"model.optim.pipelined_grad_sync", ignored, kOverlap},
    {"model.optim.overlap_param_gather_with_optimizer_step", ignored, kOverlap},
    {"model.optim.align_param_gather", ignored, kOverlap},
    {"model.optim.average_in_collective", ignored, "gradients are summed and divided once"},
    {"model.optim.check_for_nan_in_grad", ignored, "gradients are always checked; resilience.on_non_finite decides"},
    {"model.optim.nccl_ub", ignored, "NCCL decides"},
    {"model.optim.exclude_norm_and_bias_from_decay", refused, "norms and biases are not decayed", "true"},
    {"model.optim.param_sync_dtype", ignored, "weights travel in the precision of the run"},
    {"model.optim.dtype", ignored, "optimizer state is always fp32"},
    {"model.optim.master_weights", ignored, "master weights are always fp32"},
    {"model.optim.store_params", ignored, kSharding},
    {"model.optim.store_param_remainders", ignored, kSharding},
    {"model.optim.distributed_size", ignored, kSharding},
    {"model.optim.capturable", ignored, "belongs to PyTorch"},
    {"model.optim.foreach", ignored, "belongs to PyTorch"},
    {"model.optim.fused", ignored, kFusion},
    {"model.optim.amsgrad", refused, "not supported", "false"},
    {"model.optim.adam_w_mode", refused, "weight decay is always decoupled", "true"},
    {"model.optim.bias_correction", refused, "moments are always corrected", "true"},
    {"model.optim.sched.warmup_ratio", refused, kWarmup},
    {"model.optim.sched.constant_ratio", refused, "give the length in steps: model.optim.sched.constant_steps"},
    {"model.optim.sched.last_epoch", ignored, "the checkpoint knows the step"},
    {"model.optim.sched.monitor", ignored, "schedules follow the step"},
    {"model.optim.sched.reduce_on_plateau", refused, "schedules follow the step", "false"},

    {"resilience.supervisors", refused, "not yet: one supervisor on one machine"},
    {"resilience.credentials", refused, "not yet: monitors and supervisor meet on one machine"},
    {"resilience.watchdogs", refused, "not yet: the health of devices is not watched"},
    {"resilience.stragglers", refused, "not yet: slow ranks are not looked for"},
    {"resilience.audit_every_n_steps", refused, "not yet: replicas are not compared", "0"},
    {"resilience.enable_standalone_mode", refused, "it guesses the state of a node from nvidia-smi; monitors know",
     "false"},
});

bool matches(std::string_view pattern, std::string_view path) {
  if (!pattern.ends_with('*')) return pattern == path;
  pattern.remove_suffix(1);
  if (path.starts_with(pattern)) return true;
  return pattern.ends_with('.') && path == pattern.substr(0, pattern.size() - 1);
}

}  // namespace

std::span<const KnownKey> known_keys() {
  return kKnown;
}

const KnownKey* find_known(std::string_view path) {
  const KnownKey* best = nullptr;
  for (const KnownKey& key : kKnown) {
    if (!matches(key.pattern, path)) continue;
    if (!key.pattern.ends_with('*')) return &key;
    if (!best || key.pattern.size() > best->pattern.size()) best = &key;
  }
  return best;
}

}  // namespace megalith::config
