#include "config/keys.h"

#include <fmt/format.h>

#include "config/scalar.h"

namespace megalith::config {
namespace {

// Below these bounds no product that a step needs overflows 64 bits.
constexpr double kMaxWidth = 1 << 20;
constexpr double kMaxLayers = 1 << 14;
constexpr double kMaxTokens = 1 << 24;
constexpr double kMaxCount = int64_t{1} << 31;
constexpr double kMaxSteps = int64_t{1} << 40;
constexpr Range kSeconds{.low = 0, .high = 1e6, .without_low = true};
constexpr Range kShare{.low = 0, .high = 1, .without_high = true};

template <class Items, class Write>
std::string list_text(const Items& items, Write write) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + write(item);
  return "[" + text + "]";
}

std::vector<Key> trainer_keys(Trainer& t) {
  return {
      {"trainer.accelerator", choice(&t.accelerator), "cpu, gpu, or auto: a GPU where there is one"},
      {"trainer.precision", choice(&t.precision), "32 or bf16; main gradients and optimizer state are fp32 in both"},
      {"trainer.devices", &t.devices, "processes per node, one per GPU", between(1, 4096)},
      {"trainer.num_nodes", &t.num_nodes, "nodes; devices x num_nodes is the world size", between(1, kMaxWidth)},
      {"trainer.max_steps", &t.max_steps, "optimizer steps in the whole run", between(1, kMaxSteps)},
      {"trainer.max_time", &t.max_time, "stop, saved, after DD:HH:MM:SS; null: no limit"},
      {"trainer.log_every_n_steps", &t.log_every_n_steps, "steps between console lines", between(1, kMaxSteps)},
      {"trainer.enable_progress_bar", &t.enable_progress_bar, "show progress on the console"},
      {"trainer.val_check_interval", &t.val_check_interval, "steps between validations; 0: never",
       between(0, kMaxSteps)},
      {"trainer.limit_val_batches", &t.limit_val_batches, "global batches per validation", between(0, kMaxSteps)},
      {"trainer.gradient_clip_val", &t.gradient_clip_val, "largest gradient norm; 0: no clipping", at_least(0)},
      {"trainer.deterministic", &t.deterministic,
       "bit-identical results on the same layout; slower attention on a GPU, and always so on the CPU"},
      {"trainer.cpu_threads", &t.cpu_threads, "CPU threads of one process; 0: all cores it may use", between(0, 4096)},
      {"trainer.start_timeout", &t.start_timeout, "seconds for all ranks to appear at the start of a run", kSeconds},
      {"trainer.communication_timeout", &t.communication_timeout,
       "seconds after which a rank that does not arrive is named and the run ends", kSeconds},
      {"trainer.plan_cache", &t.plan_cache,
       "file of tuned GPU algorithms that runs share; null: in the user's cache folder; none: not kept"},
  };
}

std::vector<Key> model_keys(Model& m) {
  return {
      {"model.micro_batch_size", &m.micro_batch_size, "samples in one forward pass of one data-parallel rank",
       between(1, kMaxWidth)},
      {"model.global_batch_size", &m.global_batch_size, "samples per step over all ranks", between(1, kMaxCount)},
      {"model.rampup_batch_size", &m.rampup_batch_size,
       "[start, increment, samples]: the global batch grows from start by increments over that many samples"},
      {"model.tensor_model_parallel_size", &m.tensor_model_parallel_size, "ranks that share each matrix",
       between(1, 4096)},
      {"model.pipeline_model_parallel_size", &m.pipeline_model_parallel_size, "pipeline stages", between(1, 4096)},
      {"model.virtual_pipeline_model_parallel_size", &m.virtual_pipeline_model_parallel_size,
       "chunks of layers per pipeline stage", between(1, kMaxLayers)},
      {"model.context_parallel_size", &m.context_parallel_size, "ranks that share each sequence", between(1, 4096)},
      {"model.num_layers_in_first_pipeline_stage", &m.num_layers_in_first_pipeline_stage,
       "layers of the first stage, all its chunks together; 0: as many as the others", between(0, kMaxLayers)},
      {"model.num_layers_in_last_pipeline_stage", &m.num_layers_in_last_pipeline_stage, "the same for the last stage",
       between(0, kMaxLayers)},
      {"model.account_for_embedding_in_pipeline_split", &m.account_for_embedding_in_pipeline_split,
       "the embedding counts as a layer where layers are divided over stages"},
      {"model.account_for_loss_in_pipeline_split", &m.account_for_loss_in_pipeline_split,
       "the output layer and the loss count as a layer there"},
      {"model.pipeline_schedule", choice(&m.pipeline_schedule),
       "1f1b, interleaved where stages have several chunks; zero_bubble: the weights' part of backward fills idle "
       "time"},
      {"model.sequence_parallel", &m.sequence_parallel, "cut norms and dropout over the tensor-parallel ranks"},
      {"model.wrap_with_zero", &m.wrap_with_zero, "shard the optimizer state over the data-parallel ranks (ZeRO-1)"},
      {"model.fsdp", &m.fsdp,
       "shard weights and gradients over them too (ZeRO-3); implies wrap_with_zero, needs one pipeline stage"},
      {"model.nsys_profile.enabled", &m.nsys_profile.enabled, "open a GPU profiler's capture range on some steps"},
      {"model.nsys_profile.start_step", &m.nsys_profile.start_step, "the first of them", between(0, kMaxSteps)},
      {"model.nsys_profile.end_step", &m.nsys_profile.end_step, "the last of them", between(0, kMaxSteps)},
      {"model.nsys_profile.ranks", &m.nsys_profile.ranks, "on these ranks", between(0, kMaxCount)},
      {"model.resume_from_checkpoint", &m.resume_from_checkpoint, "go on from this checkpoint: one step's directory"},
      {"model.restore_from_path", &m.restore_from_path,
       "begin with the weights of this checkpoint, at step 0 with a fresh optimizer"},
      {"model.encoder_seq_length", &m.encoder_seq_length, "tokens per sample", between(1, kMaxTokens)},
      {"model.max_position_embeddings", &m.max_position_embeddings, "learned positions; 0: encoder_seq_length",
       between(0, kMaxTokens)},
      {"model.num_layers", &m.num_layers, "transformer blocks", between(1, kMaxLayers)},
      {"model.hidden_size", &m.hidden_size, "width of the residual stream", between(1, kMaxWidth)},
      {"model.ffn_hidden_size", &m.ffn_hidden_size, "width inside the MLP; 0: 4 x hidden_size",
       between(0, 4 * kMaxWidth)},
      {"model.num_attention_heads", &m.num_attention_heads, "query heads", between(1, 1 << 14)},
      {"model.num_query_groups", &m.num_query_groups, "key-value heads; 0: num_attention_heads", between(0, 1 << 14)},
      {"model.kv_channels", &m.kv_channels, "width of a head; 0: hidden_size / num_attention_heads",
       between(0, 1 << 14)},
      {"model.position_embedding_type", choice(&m.position_embedding_type), "learned_absolute or rope"},
      {"model.rotary_base", &m.rotary_base, "base of the rotary frequencies", above(1)},
      {"model.rope_scaling.factor", &m.rope_scaling.factor, "Llama-3.1 frequency scaling; 1: none", at_least(1)},
      {"model.rope_scaling.low_freq_factor", &m.rope_scaling.low_freq_factor,
       "wavelengths over old_context_len / this are scaled in full", above(0)},
      {"model.rope_scaling.high_freq_factor", &m.rope_scaling.high_freq_factor,
       "wavelengths under old_context_len / this are kept"},
      {"model.rope_scaling.old_context_len", &m.rope_scaling.old_context_len, "context length before scaling",
       between(1, kMaxTokens)},
      {"model.scale_positional_embedding", &m.scale_positional_embedding,
       "NeMo's way to ask for Llama-3.1's frequencies: rope_scaling.factor 8 where that is not set"},
      {"model.normalization", choice(&m.normalization), "layernorm or rmsnorm"},
      {"model.layernorm_epsilon", &m.layernorm_epsilon, "added to the variance in either norm", above(0)},
      {"model.activation", choice(&m.activation), "gelu (tanh form) or swiglu"},
      {"model.bias", &m.bias, "biases in the linear layers"},
      {"model.share_embeddings_and_output_weights", &m.share_embeddings_and_output_weights,
       "the output layer uses the token embedding"},
      {"model.make_vocab_size_divisible_by", &m.make_vocab_size_divisible_by,
       "the vocabulary is padded to a multiple of this, whatever the layout", between(1, kMaxWidth)},
      {"model.init_method_std", &m.init_method_std, "standard deviation of initial weights", above(0)},
      {"model.hidden_dropout", &m.hidden_dropout, "dropout after embedding, attention and MLP", kShare},
      {"model.attention_dropout", &m.attention_dropout, "dropout of attention weights", kShare},
      {"model.activations_checkpoint_granularity", choice(&m.activations_checkpoint_granularity),
       "what backward recomputes: null, selective or full"},
      {"model.activations_checkpoint_method", choice(&m.activations_checkpoint_method),
       "with full: uniform keeps the input of each group of layers, block recomputes the first layers of each chunk"},
      {"model.activations_checkpoint_num_layers", &m.activations_checkpoint_num_layers,
       "layers of a group (uniform; 0: 1), or recomputed layers of each chunk (block)", between(0, kMaxLayers)},
      {"model.fp8", &m.fp8, "linear layers of the blocks compute in fp8, all else in trainer.precision"},
      {"model.fp8_hybrid", &m.fp8_hybrid, "with fp8: inputs and weights E4M3, gradients E5M2"},
      {"model.fp8_e4m3", &m.fp8_e4m3, "with fp8: all E4M3"},
      {"model.fp8_recipe", choice(&m.fp8_recipe),
       "where scales come from: delayed, the steps before; tensorwise, each micro batch's own tensor"},
      {"model.fp8_margin", &m.fp8_margin, "scales leave a factor of 2^margin to spare", between(0, 16)},
      {"model.fp8_amax_history_len", &m.fp8_amax_history_len, "steps that delayed scaling looks back",
       between(1, 1 << 20)},
      {"model.fp8_amax_compute_algo", choice(&m.fp8_amax_compute_algo),
       "what it takes of them: max, the largest; most_recent, the last"},
      {"model.fp8_weight_copies", &m.fp8_weight_copies,
       "fp8 copies of weights that a step keeps, 1 byte each: 2, and with them attention's output, transposed; 1, and "
       "backward transposes it for each micro batch; 0, and each pass casts for itself",
       between(0, 2)},
      {"model.first_last_layers_bf16", &m.first_last_layers_bf16,
       "with fp8: the first and last blocks compute without"},
      {"model.num_layers_at_start_in_bf16", &m.num_layers_at_start_in_bf16, "so many at the start",
       between(0, kMaxLayers)},
      {"model.num_layers_at_end_in_bf16", &m.num_layers_at_end_in_bf16, "so many at the end", between(0, kMaxLayers)},
      {"model.seed", &m.seed, "seed of initial weights, dropout and sample order", between(0, kMaxCount)},
  };
}

std::vector<Key> text_keys(Tokenizer& t, Data& d) {
  return {
      {"model.tokenizer.type", &t.type, "ByteTokenizer, GPT2BPETokenizer, ..."},
      {"model.tokenizer.vocab_file", &t.vocab_file, "GPT-2's vocab.json"},
      {"model.tokenizer.merge_file", &t.merge_file, "GPT-2's merges.txt"},
      {"model.tokenizer.model", &t.model, "file of a tokenizer that is one file"},
      {"model.tokenizer.tiktoken_pattern", &t.tiktoken_pattern,
       "how a tiktoken file cuts: r50k, cl100k, o200k, llama3"},
      {"model.tokenizer.eod_token", &t.eod_token,
       "the token of a tokenizer.json that ends documents; null: <|end_of_text|> or <|endoftext|>"},
      {"model.tokenizer.vocab_size", &t.vocab_size, "tokens before padding; 0: what the tokenizer says",
       between(0, kMaxTokens)},
      {"model.data.data_impl", choice(&d.data_impl),
       "mmap: .bin and .idx files; mock: made-up tokens; auto: mmap if data_prefix is set"},
      {"model.data.data_prefix", &d.data_prefix,
       "[prefix, ...] or [share of samples, prefix, ...] of the .bin and .idx files; * and ? match names"},
      {"model.data.validation_prefix", &d.validation_prefix,
       "the same for validation (NeMo's data_prefix.validation); data_prefix is then training alone"},
      {"model.data.test_prefix", &d.test_prefix, "the same for the test split (NeMo's data_prefix.test)"},
      {"model.data.splits_string", &d.splits_string, "weights of training, validation and test documents"},
      {"model.data.validation_files", &d.validation_files,
       "the last N datasets of data_prefix validate, whole; 0: splits_string cuts each", between(0, kMaxCount)},
      {"model.data.test_files", &d.test_files, "the N datasets before those test, whole", between(0, kMaxCount)},
      {"model.data.seq_length", &d.seq_length, "must equal encoder_seq_length; 0: the same", between(0, kMaxTokens)},
      {"model.data.index_mapping_dir", &d.index_mapping_dir, "where sample indices are kept; null: in memory"},
      {"model.data.eod_mask_loss", &d.eod_mask_loss, "no loss on end-of-document tokens"},
      {"model.data.reset_attention_mask", &d.reset_attention_mask, "no attention across documents"},
      {"model.data.reset_position_ids", &d.reset_position_ids, "positions start over with every document"},
  };
}

std::vector<Key> optim_keys(Optim& o) {
  return {
      {"model.optim.name", choice(&o.name), "adamw; NeMo's fused and distributed names for it are accepted"},
      {"model.optim.lr", &o.lr, "peak learning rate", at_least(0)},
      {"model.optim.weight_decay", &o.weight_decay, "decoupled; not on norms and biases", at_least(0)},
      {"model.optim.betas", &o.betas, "[beta1, beta2]", kShare},
      {"model.optim.eps", &o.eps, "added to the root of the second moment", above(0)},
      {"model.optim.grad_sync_dtype", choice(&o.grad_sync_dtype),
       "fp32 or bf16: what gradients travel in between data-parallel ranks; they add up in fp32"},
      {"model.optim.bucket_cap_mb", &o.bucket_cap_mb, "MB of fp32 gradients that are reduced at once",
       between(1, kMaxWidth)},
      {"model.optim.sched.name", choice(&o.sched.name), "CosineAnnealing, linear, constant or WSD"},
      {"model.optim.sched.warmup_steps", &o.sched.warmup_steps, "steps of linear warm-up from 0",
       between(0, kMaxSteps)},
      {"model.optim.sched.constant_steps", &o.sched.constant_steps, "steps at min_lr after the decay",
       between(0, kMaxSteps)},
      {"model.optim.sched.decay_steps", &o.sched.decay_steps, "WSD: steps of the final decay", between(0, kMaxSteps)},
      {"model.optim.sched.min_lr", &o.sched.min_lr, "learning rate at the end of the decay", at_least(0)},
      {"model.optim.sched.max_steps", &o.sched.max_steps, "steps the schedule spans; 0: trainer.max_steps",
       between(0, kMaxSteps)},
  };
}

std::vector<Key> exp_manager_keys(ExpManager& e) {
  auto& checkpoint = e.checkpoint_callback_params;
  return {
      {"exp_manager.explicit_log_dir", &e.explicit_log_dir, "the run directory; null: runs/<name>"},
      {"exp_manager.resume_if_exists", &e.resume_if_exists, "continue from the newest checkpoint of the run directory"},
      {"exp_manager.create_checkpoint_callback", &e.create_checkpoint_callback, "save checkpoints"},
      {"exp_manager.create_dllogger_logger", &e.create_dllogger_logger, "write dllogger.json"},
      {"exp_manager.create_tensorboard_logger", &e.create_tensorboard_logger, "write TensorBoard files"},
      {"exp_manager.create_events_logger", &e.create_events_logger,
       "write events.jsonl, which `megalith report` reads"},
      {"exp_manager.log_megatron_iterations", &e.log_megatron_iterations,
       "print Megatron-LM's iteration line every log_every_n_steps"},
      {"exp_manager.prometheus.port", &e.prometheus.port,
       "serve metrics for Prometheus at http://ADDRESS:PORT/metrics; 0: no", between(0, 65535)},
      {"exp_manager.prometheus.address", &e.prometheus.address, "address to serve them on; 0.0.0.0: all of them"},
      {"exp_manager.step_floor_seconds", &e.step_floor_seconds,
       "floor of a step as `megalith bench step` measured it, for floor_fraction; 0: not known", at_least(0)},
      {"exp_manager.step_timing_kwargs.buffer_size", &e.step_timing_buffer_size,
       "steps over which the reported step time is averaged", between(1, kMaxWidth)},
      {"exp_manager.checkpoint_callback_params.every_n_train_steps", &checkpoint.every_n_train_steps,
       "steps between checkpoints; 0 or -1: only at the end and on a stop", between(-1, kMaxSteps)},
      {"exp_manager.checkpoint_callback_params.train_time_interval", &checkpoint.train_time_interval,
       "time between checkpoints, beside every_n_train_steps: 600 or 600s, 10m, 2h, H:M:S or D:H:M:S; null: none"},
      {"exp_manager.checkpoint_callback_params.save_top_k", &checkpoint.save_top_k,
       "newest checkpoints to keep, or with monitor the best and the newest; -1: all", between(-1, kMaxSteps)},
      {"exp_manager.checkpoint_callback_params.monitor", &checkpoint.monitor,
       "val_loss or reduced_train_loss: the checkpoints with the best of it are kept; null: the newest"},
      {"exp_manager.checkpoint_callback_params.mode", choice(&checkpoint.mode),
       "min or max of what monitor names is the best"},
      {"exp_manager.checkpoint_callback_params.dirpath", &checkpoint.dirpath,
       "where checkpoints go, on storage that all nodes see; null: checkpoints/ in the run directory"},
      {"exp_manager.checkpoint_callback_params.async_save", &checkpoint.async_save,
       "train on while a checkpoint is written"},
      {"exp_manager.checkpoint_callback_params.late_save", choice(&checkpoint.late_save),
       "a checkpoint is due and the one before is still being written: wait | skip"},
      {"exp_manager.checkpoint_callback_params.local_every_n_train_steps", &checkpoint.local_every_n_train_steps,
       "steps between checkpoints on each node itself; 0 or -1: none", between(-1, kMaxSteps)},
      {"exp_manager.checkpoint_callback_params.local_save_top_k", &checkpoint.local_save_top_k,
       "newest checkpoints to keep on each node", between(1, kMaxSteps)},
      {"exp_manager.checkpoint_callback_params.local_dirpath", &checkpoint.local_dirpath,
       "a disk of each node (%n: the node's number); null: its memory alone"},
      {"exp_manager.checkpoint_callback_params.memory_dirpath", &checkpoint.memory_dirpath,
       "a memory file system that keeps the last copy of the state for a restart; none: no such copy"},
      {"exp_manager.checkpoint_callback_params.local_peer_copy", &checkpoint.local_peer_copy,
       "what a node saves locally is also kept in the memory of the next one, for the case that it is lost"},
  };
}

std::vector<Key> supervision_keys(Supervision& s) {
  return {
      {"resilience.num_spare_nodes", &s.num_spare_nodes,
       "under a supervisor: nodes beside trainer.num_nodes that take the places of lost ones", between(0, kMaxWidth)},
      {"resilience.max_in_job_restarts", &s.max_in_job_restarts,
       "restarts on the same nodes without a new step; 0: go on to workload restarts at once", between(0, kMaxCount)},
      {"resilience.max_workload_restarts", &s.max_workload_restarts,
       "restarts after checks of all nodes without a new step; 0: none", between(0, kMaxCount)},
      {"resilience.heartbeat_polling_period_s",
       &s.heartbeat_polling_period_s,
       "seconds between a monitor's reports; nothing but 1 yet",
       {.low = 0.1, .high = 60}},
      {"resilience.heartbeat_timeout_s", &s.heartbeat_timeout_s, "seconds after which a monitor counts as silent",
       kSeconds},
      {"resilience.initial_rank_heartbeat_timeout", &s.initial_rank_heartbeat_timeout,
       "seconds without a beat of a rank in the first steps of a run", kSeconds},
      {"resilience.rank_heartbeat_timeout",
       &s.rank_heartbeat_timeout,
       "seconds without a beat of a rank later; 0: learned from the run",
       {.low = 0, .high = 1e6}},
      {"resilience.workload_downtime_threshold_s", &s.workload_downtime_threshold_s,
       "seconds to wait for nodes where no spare is left, before going on with fewer replicas or giving up", kSeconds},
      {"resilience.enable_workload_scaling", &s.enable_workload_scaling,
       "go on with fewer data-parallel replicas where nodes are missing, with the same global batch, and with all of "
       "them again when nodes are back"},
      {"resilience.min_num_dp_replicas", &s.min_num_dp_replicas, "not with fewer replicas than this",
       between(1, kMaxCount)},
      {"resilience.max_num_dp_replicas", &s.max_num_dp_replicas,
       "replicas that trainer.num_nodes may make at most; 0: any number", between(0, kMaxCount)},
      {"resilience.num_nodes_per_dp", &s.num_nodes_per_dp,
       "nodes of a replica, for a check against the layout; 0: none", between(0, kMaxWidth)},
      {"resilience.scale_up_after_s", &s.scale_up_after_s,
       "seconds for which the nodes of a replica must have been there before it is added again", kSeconds},
      {"resilience.policy", &s.policy, "file whose rows replace those of the ladder; null: none"},
      {"resilience.goodput_log", &s.goodput_log,
       "file to which a supervisor adds the events of Google's goodput log; null: none"},
  };
}

}  // namespace

std::vector<Key> keys_of(Run& run) {
  std::vector<Key> keys = {{"name", &run.name, "name of the run"}};
  const auto add = [&](std::vector<Key> more) { keys.insert(keys.end(), more.begin(), more.end()); };
  add(trainer_keys(run.trainer));
  add(exp_manager_keys(run.exp_manager));
  add(model_keys(run.model));
  add(text_keys(run.model.tokenizer, run.model.data));
  add(optim_keys(run.model.optim));
  keys.push_back(
      {"resilience.on_non_finite", choice(&run.on_non_finite), "a non-finite gradient: skip the step, or stop"});
  keys.push_back({"resilience.failpoints", &run.failpoints, "failures to inject, for tests: [name=action, ...]"});
  add(supervision_keys(run.supervision));
  return keys;
}

std::string type_name(const Field& field) {
  struct {
    std::string operator()(bool*) { return "true or false"; }
    std::string operator()(int64_t*) { return "a whole number"; }
    std::string operator()(double*) { return "a finite number"; }
    std::string operator()(std::string*) { return "text"; }
    std::string operator()(std::vector<int64_t>*) { return "a list of whole numbers"; }
    std::string operator()(std::vector<double>*) { return "a list of finite numbers"; }
    std::string operator()(std::vector<std::string>*) { return "a list of texts"; }
    std::string operator()(const Choice& choice) { return "one of " + choice.words(); }
  } name;
  return std::visit(name, field);
}

namespace {
template <class T>
void check_range(T number, const Key& key, std::vector<std::string>& problems) {
  const auto value = static_cast<double>(number);
  const Range& range = key.range;
  const auto add = [&](std::string_view wanted, double bound) {
    problems.push_back(fmt::format("`{}`={} must be {} {}", key.path, number, wanted, bound));
  };
  if (value < range.low || (range.without_low && value == range.low))
    add(range.without_low ? "above" : "at least", range.low);
  if (value > range.high || (range.without_high && value == range.high))
    add(range.without_high ? "below" : "at most", range.high);
}
}  // namespace

std::vector<std::string> out_of_range(const Key& key) {
  std::vector<std::string> problems;
  struct {
    const Key& key;
    std::vector<std::string>& problems;
    void operator()(const int64_t* number) { check_range(*number, key, problems); }
    void operator()(const double* number) { check_range(*number, key, problems); }
    void operator()(const std::vector<int64_t>* numbers) {
      for (const int64_t number : *numbers) check_range(number, key, problems);
    }
    void operator()(const std::vector<double>* numbers) {
      for (const double number : *numbers) check_range(number, key, problems);
    }
    void operator()(const bool*) {}
    void operator()(const std::string*) {}
    void operator()(const std::vector<std::string>*) {}
    void operator()(const Choice&) {}
  } check{key, problems};
  std::visit(check, key.field);
  return problems;
}

std::string value_text(const Field& field) {
  struct {
    std::string operator()(const bool* value) { return *value ? "true" : "false"; }
    std::string operator()(const int64_t* value) { return fmt::format("{}", *value); }
    std::string operator()(const double* value) { return write_double(*value); }
    std::string operator()(const std::string* value) { return value->empty() ? "null" : write_string(*value); }
    std::string operator()(const std::vector<int64_t>* value) {
      return list_text(*value, [](int64_t number) { return std::to_string(number); });
    }
    std::string operator()(const std::vector<double>* value) { return list_text(*value, write_double); }
    std::string operator()(const std::vector<std::string>* value) { return list_text(*value, write_string); }
    std::string operator()(const Choice& choice) {
      const std::string_view word = choice.word(choice.value);
      return word.empty() ? "null" : write_string(word);
    }
  } write;
  return std::visit(write, field);
}

}  // namespace megalith::config
