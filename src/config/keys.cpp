#include "config/keys.h"

#include <fmt/format.h>

#include "config/scalar.h"

namespace megalith::config {
namespace {

template <class Items, class Write>
std::string list_text(const Items& items, Write write) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : ", ") + write(item);
  return "[" + text + "]";
}

std::vector<Key> trainer_keys(Trainer& t) {
  return {
      {"trainer.accelerator", &t.accelerator, "cpu, gpu, or auto: a GPU where there is one"},
      {"trainer.precision", &t.precision, "32 or bf16; main gradients and optimizer state are fp32 in both"},
      {"trainer.devices", &t.devices, "processes per node, one per GPU"},
      {"trainer.num_nodes", &t.num_nodes, "nodes; devices x num_nodes is the world size"},
      {"trainer.max_steps", &t.max_steps, "optimizer steps in the whole run"},
      {"trainer.max_time", &t.max_time, "stop, saved, after DD:HH:MM:SS; null: no limit"},
      {"trainer.log_every_n_steps", &t.log_every_n_steps, "steps between console lines"},
      {"trainer.enable_progress_bar", &t.enable_progress_bar, "show progress on the console"},
      {"trainer.val_check_interval", &t.val_check_interval, "steps between validations; 0: never"},
      {"trainer.limit_val_batches", &t.limit_val_batches, "global batches per validation"},
      {"trainer.gradient_clip_val", &t.gradient_clip_val, "largest gradient norm; 0: no clipping"},
      {"trainer.deterministic", &t.deterministic,
       "bit-identical results on the same layout; slower attention on a GPU, and always so on the CPU"},
      {"trainer.cpu_threads", &t.cpu_threads, "CPU threads of one process; 0: all cores it may use"},
      {"trainer.start_timeout", &t.start_timeout, "seconds for all ranks to appear at the start of a run"},
      {"trainer.communication_timeout", &t.communication_timeout,
       "seconds after which a rank that does not arrive is named and the run ends"},
      {"trainer.plan_cache", &t.plan_cache,
       "file of tuned GPU plans that runs share; null: in the user's cache folder; none: not kept"},
  };
}

std::vector<Key> model_keys(Model& m) {
  return {
      {"model.micro_batch_size", &m.micro_batch_size, "samples in one forward pass of one data-parallel rank"},
      {"model.global_batch_size", &m.global_batch_size, "samples per step over all ranks"},
      {"model.rampup_batch_size", &m.rampup_batch_size,
       "[start, increment, samples]: the global batch grows from start by increments over that many samples"},
      {"model.tensor_model_parallel_size", &m.tensor_model_parallel_size, "ranks that share each matrix"},
      {"model.pipeline_model_parallel_size", &m.pipeline_model_parallel_size, "pipeline stages"},
      {"model.virtual_pipeline_model_parallel_size", &m.virtual_pipeline_model_parallel_size,
       "chunks of layers per pipeline stage"},
      {"model.context_parallel_size", &m.context_parallel_size, "ranks that share each sequence"},
      {"model.num_layers_in_first_pipeline_stage", &m.num_layers_in_first_pipeline_stage,
       "layers of the first stage, all its chunks together; 0: as many as the others"},
      {"model.num_layers_in_last_pipeline_stage", &m.num_layers_in_last_pipeline_stage, "the same for the last stage"},
      {"model.account_for_embedding_in_pipeline_split", &m.account_for_embedding_in_pipeline_split,
       "the embedding counts as a layer where layers are divided over stages"},
      {"model.account_for_loss_in_pipeline_split", &m.account_for_loss_in_pipeline_split,
       "the output layer and the loss count as a layer there"},
      {"model.pipeline_schedule", &m.pipeline_schedule,
       "1f1b, interleaved where stages have several chunks; zero_bubble: the weights' part of backward fills idle "
       "time"},
      {"model.sequence_parallel", &m.sequence_parallel, "cut norms and dropout over the tensor-parallel ranks"},
      {"model.wrap_with_zero", &m.wrap_with_zero, "shard the optimizer state over the data-parallel ranks (ZeRO-1)"},
      {"model.fsdp", &m.fsdp,
       "shard weights and gradients over them too (ZeRO-3); implies wrap_with_zero, needs one pipeline stage"},
      {"model.nsys_profile.enabled", &m.nsys_profile.enabled, "open a GPU profiler's capture range on some steps"},
      {"model.nsys_profile.start_step", &m.nsys_profile.start_step, "the first of them"},
      {"model.nsys_profile.end_step", &m.nsys_profile.end_step, "the last of them"},
      {"model.nsys_profile.ranks", &m.nsys_profile.ranks, "on these ranks"},
      {"model.resume_from_checkpoint", &m.resume_from_checkpoint, "go on from this checkpoint: one step's directory"},
      {"model.restore_from_path", &m.restore_from_path,
       "begin with the weights of this checkpoint, at step 0 with a fresh optimizer"},
      {"model.encoder_seq_length", &m.encoder_seq_length, "tokens per sample"},
      {"model.max_position_embeddings", &m.max_position_embeddings, "learned positions; 0: encoder_seq_length"},
      {"model.num_layers", &m.num_layers, "transformer blocks"},
      {"model.hidden_size", &m.hidden_size, "width of the residual stream"},
      {"model.ffn_hidden_size", &m.ffn_hidden_size, "width inside the MLP; 0: 4 x hidden_size"},
      {"model.num_attention_heads", &m.num_attention_heads, "query heads"},
      {"model.num_query_groups", &m.num_query_groups, "key-value heads; 0: num_attention_heads"},
      {"model.kv_channels", &m.kv_channels, "width of a head; 0: hidden_size / num_attention_heads"},
      {"model.position_embedding_type", &m.position_embedding_type, "learned_absolute or rope"},
      {"model.rotary_base", &m.rotary_base, "base of the rotary frequencies"},
      {"model.rope_scaling.factor", &m.rope_scaling.factor, "Llama-3.1 frequency scaling; 1: none"},
      {"model.rope_scaling.low_freq_factor", &m.rope_scaling.low_freq_factor,
       "wavelengths over old_context_len / this are scaled in full"},
      {"model.rope_scaling.high_freq_factor", &m.rope_scaling.high_freq_factor,
       "wavelengths under old_context_len / this are kept"},
      {"model.rope_scaling.old_context_len", &m.rope_scaling.old_context_len, "context length before scaling"},
      {"model.scale_positional_embedding", &m.scale_positional_embedding,
       "NeMo's way to ask for Llama-3.1's frequencies: rope_scaling.factor 8 where that is not set"},
      {"model.normalization", &m.normalization, "layernorm or rmsnorm"},
      {"model.layernorm_epsilon", &m.layernorm_epsilon, "added to the variance in either norm"},
      {"model.activation", &m.activation, "gelu (tanh form) or swiglu"},
      {"model.bias", &m.bias, "biases in the linear layers"},
      {"model.share_embeddings_and_output_weights", &m.share_embeddings_and_output_weights,
       "the output layer uses the token embedding"},
      {"model.make_vocab_size_divisible_by", &m.make_vocab_size_divisible_by,
       "the vocabulary is padded to a multiple of this, whatever the layout"},
      {"model.init_method_std", &m.init_method_std, "standard deviation of initial weights"},
      {"model.hidden_dropout", &m.hidden_dropout, "dropout after embedding, attention and MLP"},
      {"model.attention_dropout", &m.attention_dropout, "dropout of attention weights"},
      {"model.activations_checkpoint_granularity", &m.activations_checkpoint_granularity,
       "what backward recomputes: null, selective or full"},
      {"model.activations_checkpoint_method", &m.activations_checkpoint_method,
       "with full: uniform keeps the input of each group of layers, block recomputes the first layers of each chunk"},
      {"model.activations_checkpoint_num_layers", &m.activations_checkpoint_num_layers,
       "layers of a group (uniform; 0: 1), or recomputed layers of each chunk (block)"},
      {"model.seed", &m.seed, "seed of initial weights, dropout and sample order"},
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
      {"model.tokenizer.vocab_size", &t.vocab_size, "tokens before padding; 0: what the tokenizer says"},
      {"model.data.data_impl", &d.data_impl,
       "mmap: .bin and .idx files; mock: made-up tokens; auto: mmap if data_prefix is set"},
      {"model.data.data_prefix", &d.data_prefix,
       "[prefix, ...] or [share of samples, prefix, ...] of the .bin and .idx files; * and ? match names"},
      {"model.data.validation_prefix", &d.validation_prefix,
       "the same for validation (NeMo's data_prefix.validation); data_prefix is then training alone"},
      {"model.data.test_prefix", &d.test_prefix, "the same for the test split (NeMo's data_prefix.test)"},
      {"model.data.splits_string", &d.splits_string, "weights of training, validation and test documents"},
      {"model.data.validation_files", &d.validation_files,
       "the last N datasets of data_prefix validate, whole; 0: splits_string cuts each"},
      {"model.data.test_files", &d.test_files, "the N datasets before those test, whole"},
      {"model.data.seq_length", &d.seq_length, "must equal encoder_seq_length; 0: the same"},
      {"model.data.index_mapping_dir", &d.index_mapping_dir, "where sample indices are kept; null: in memory"},
      {"model.data.eod_mask_loss", &d.eod_mask_loss, "no loss on end-of-document tokens"},
      {"model.data.reset_attention_mask", &d.reset_attention_mask, "no attention across documents"},
      {"model.data.reset_position_ids", &d.reset_position_ids, "positions start over with every document"},
  };
}

std::vector<Key> optim_keys(Optim& o) {
  return {
      {"model.optim.name", &o.name, "adamw; NeMo's fused and distributed names for it are accepted"},
      {"model.optim.lr", &o.lr, "peak learning rate"},
      {"model.optim.weight_decay", &o.weight_decay, "decoupled; not on norms and biases"},
      {"model.optim.betas", &o.betas, "[beta1, beta2]"},
      {"model.optim.eps", &o.eps, "added to the root of the second moment"},
      {"model.optim.grad_sync_dtype", &o.grad_sync_dtype,
       "fp32 or bf16: what gradients travel in between data-parallel ranks; they add up in fp32"},
      {"model.optim.bucket_cap_mb", &o.bucket_cap_mb, "MB of fp32 gradients that are reduced at once"},
      {"model.optim.sched.name", &o.sched.name, "CosineAnnealing, linear, constant or WSD"},
      {"model.optim.sched.warmup_steps", &o.sched.warmup_steps, "steps of linear warm-up from 0"},
      {"model.optim.sched.constant_steps", &o.sched.constant_steps, "steps at min_lr after the decay"},
      {"model.optim.sched.decay_steps", &o.sched.decay_steps, "WSD: steps of the final decay"},
      {"model.optim.sched.min_lr", &o.sched.min_lr, "learning rate at the end of the decay"},
      {"model.optim.sched.max_steps", &o.sched.max_steps, "steps the schedule spans; 0: trainer.max_steps"},
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
       "serve metrics for Prometheus at http://ADDRESS:PORT/metrics; 0: no"},
      {"exp_manager.prometheus.address", &e.prometheus.address, "address to serve them on; 0.0.0.0: all of them"},
      {"exp_manager.step_floor_seconds", &e.step_floor_seconds,
       "floor of a step as `megalith bench step` measured it, for floor_fraction; 0: not known"},
      {"exp_manager.step_timing_kwargs.buffer_size", &e.step_timing_buffer_size,
       "steps over which the reported step time is averaged"},
      {"exp_manager.checkpoint_callback_params.every_n_train_steps", &checkpoint.every_n_train_steps,
       "steps between checkpoints; 0 or -1: only at the end and on a stop"},
      {"exp_manager.checkpoint_callback_params.train_time_interval", &checkpoint.train_time_interval,
       "time between checkpoints, beside every_n_train_steps: 600 or 600s, 10m, 2h, H:M:S or D:H:M:S; null: none"},
      {"exp_manager.checkpoint_callback_params.save_top_k", &checkpoint.save_top_k,
       "newest checkpoints to keep, or with monitor the best and the newest; -1: all"},
      {"exp_manager.checkpoint_callback_params.monitor", &checkpoint.monitor,
       "val_loss or reduced_train_loss: the checkpoints with the best of it are kept; null: the newest"},
      {"exp_manager.checkpoint_callback_params.mode", &checkpoint.mode, "min or max of what monitor names is the best"},
      {"exp_manager.checkpoint_callback_params.dirpath", &checkpoint.dirpath,
       "where checkpoints go, on storage that all nodes see; null: checkpoints/ in the run directory"},
      {"exp_manager.checkpoint_callback_params.async_save", &checkpoint.async_save,
       "train on while a checkpoint is written"},
      {"exp_manager.checkpoint_callback_params.late_save", &checkpoint.late_save,
       "a checkpoint is due and the one before is still being written: wait | skip"},
      {"exp_manager.checkpoint_callback_params.local_every_n_train_steps", &checkpoint.local_every_n_train_steps,
       "steps between checkpoints on each node itself; 0 or -1: none"},
      {"exp_manager.checkpoint_callback_params.local_save_top_k", &checkpoint.local_save_top_k,
       "newest checkpoints to keep on each node"},
      {"exp_manager.checkpoint_callback_params.local_dirpath", &checkpoint.local_dirpath,
       "a disk of each node (%n: the node's number); null: its memory alone"},
      {"exp_manager.checkpoint_callback_params.memory_dirpath", &checkpoint.memory_dirpath,
       "a memory file system that keeps the last copy of the state for a restart; none: no such copy"},
      {"exp_manager.checkpoint_callback_params.local_peer_copy", &checkpoint.local_peer_copy,
       "what a node saves locally is also kept in the memory of the next one, for the case that it is lost"},
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
  keys.push_back({"resilience.on_non_finite", &run.on_non_finite, "a non-finite gradient: skip the step, or stop"});
  keys.push_back({"resilience.failpoints", &run.failpoints, "failures to inject, for tests: [name=action, ...]"});
  return keys;
}

std::string_view type_name(const Field& field) {
  struct {
    std::string_view operator()(bool*) { return "true or false"; }
    std::string_view operator()(int64_t*) { return "a whole number"; }
    std::string_view operator()(double*) { return "a finite number"; }
    std::string_view operator()(std::string*) { return "text"; }
    std::string_view operator()(std::vector<int64_t>*) { return "a list of whole numbers"; }
    std::string_view operator()(std::vector<double>*) { return "a list of finite numbers"; }
    std::string_view operator()(std::vector<std::string>*) { return "a list of texts"; }
  } name;
  return std::visit(name, field);
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
  } write;
  return std::visit(write, field);
}

}  // namespace megalith::config
