#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/choices.h"
#include "core/dtype.h"

namespace megalith::config {

// The run's config tree, under NeMo's key names: `run.model.optim.lr` is the key `model.optim.lr`. Which keys exist,
// their defaults and their help stand in keys.cpp.

struct Trainer {
  Accelerator accelerator = Accelerator::automatic;
  Precision precision = Precision::fp32;
  int64_t devices = 1;
  int64_t num_nodes = 1;
  int64_t max_steps = 100;
  std::string max_time;  // DD:HH:MM:SS; empty: no limit
  int64_t log_every_n_steps = 1;
  bool enable_progress_bar = true;
  int64_t val_check_interval = 0;  // steps; 0: no validation
  int64_t limit_val_batches = 20;
  double gradient_clip_val = 1.0;
  bool deterministic = false;            // on a GPU: sums in a fixed order everywhere; the CPU always does
  int64_t cpu_threads = 0;               // 0: all cores this process may use
  double start_timeout = 600.0;          // seconds for all ranks to appear
  double communication_timeout = 600.0;  // seconds for the ranks of a call to arrive
  // File of tuned GPU algorithms that runs share; empty: in the user's cache folder; "none": not kept.
  std::string plan_cache;
};

struct Schedule {
  LrSchedule name = LrSchedule::cosine;
  int64_t warmup_steps = 0;
  int64_t constant_steps = 0;
  int64_t decay_steps = 0;  // WSD: length of the final decay
  double min_lr = 0.0;
  int64_t max_steps = 0;  // 0: trainer.max_steps
};

struct Optim {
  OptimizerName name = OptimizerName::adamw;
  double lr = 3e-4;
  double weight_decay = 0.1;
  std::vector<double> betas = {0.9, 0.95};
  double eps = 1e-8;
  GradSync grad_sync_dtype = GradSync::fp32;
  int64_t bucket_cap_mb = 160;  // of fp32 gradients: Megatron's 40 million elements
  Schedule sched;
};

struct Data {
  DataImpl data_impl = DataImpl::mmap;         // automatic: mmap where data_prefix is set, mock otherwise
  std::vector<std::string> data_prefix;        // one or more prefixes, or weight and prefix in turn
  std::vector<std::string> validation_prefix;  // with one of these two set, each split has whole datasets of its own
  std::vector<std::string> test_prefix;
  std::string splits_string = "969, 30, 1";
  int64_t validation_files = 0;  // with test_files: whole datasets of data_prefix are held out, splits_string is unused
  int64_t test_files = 0;
  int64_t seq_length = 0;  // 0: model.encoder_seq_length
  std::string index_mapping_dir;
  bool eod_mask_loss = false;
  bool reset_attention_mask = false;
  bool reset_position_ids = false;
};

struct Tokenizer {
  std::string type = "ByteTokenizer";
  std::string vocab_file;
  std::string merge_file;
  std::string model;
  std::string tiktoken_pattern;  // of a TikTokenizer: r50k, cl100k, o200k or llama3
  std::string eod_token;         // of a HuggingFaceTokenizer that calls its end of documents by a name of its own
  int64_t vocab_size = 0;        // 0: what the tokenizer says
};

struct RopeScaling {
  double factor = 1.0;  // 1: none
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  int64_t old_context_len = 8192;
};

// Steps on which a profiler's capture range is open, both ends included.
struct NsysProfile {
  bool enabled = false;
  int64_t start_step = 0;
  int64_t end_step = 0;
  std::vector<int64_t> ranks = {0};
};

struct Model {
  int64_t micro_batch_size = 1;
  int64_t global_batch_size = 1;
  std::vector<int64_t> rampup_batch_size;  // start, increment, samples to ramp over; empty: no ramp (batch_ramp.h)
  int64_t tensor_model_parallel_size = 1;
  int64_t pipeline_model_parallel_size = 1;
  int64_t virtual_pipeline_model_parallel_size = 1;
  int64_t context_parallel_size = 1;
  int64_t num_layers_in_first_pipeline_stage = 0;  // 0: as many as the others
  int64_t num_layers_in_last_pipeline_stage = 0;
  bool account_for_embedding_in_pipeline_split = false;
  bool account_for_loss_in_pipeline_split = false;
  PipelineSchedule pipeline_schedule = PipelineSchedule::one_f_one_b;
  bool sequence_parallel = false;
  bool wrap_with_zero = false;
  bool fsdp = false;

  int64_t encoder_seq_length = 1024;
  int64_t max_position_embeddings = 0;  // 0: encoder_seq_length
  int64_t num_layers = 12;
  int64_t hidden_size = 768;
  int64_t ffn_hidden_size = 0;  // 0: 4 x hidden_size
  int64_t num_attention_heads = 12;
  int64_t num_query_groups = 0;  // 0: num_attention_heads
  int64_t kv_channels = 0;       // 0: hidden_size / num_attention_heads
  Positions position_embedding_type = Positions::learned_absolute;
  double rotary_base = 10000.0;
  RopeScaling rope_scaling;
  bool scale_positional_embedding = false;  // NeMo's name for rope_scaling.factor 8
  Normalization normalization = Normalization::layernorm;
  Activation activation = Activation::gelu;
  bool bias = true;
  bool share_embeddings_and_output_weights = true;
  double layernorm_epsilon = 1e-5;
  double init_method_std = 0.02;
  double hidden_dropout = 0.0;
  double attention_dropout = 0.0;
  int64_t make_vocab_size_divisible_by = 128;
  Granularity activations_checkpoint_granularity = Granularity::none;
  RecomputeMethod activations_checkpoint_method = RecomputeMethod::none;  // other than none with full alone
  int64_t activations_checkpoint_num_layers = 0;  // with full: of a group, or of the block; 0 otherwise
  bool fp8 = false;                               // in the linear layers of the blocks; trainer.precision elsewhere
  bool fp8_hybrid = false;                        // E4M3, gradients E5M2
  bool fp8_e4m3 = false;                          // E4M3 for all
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;
  int64_t fp8_margin = 0;
  int64_t fp8_amax_history_len = 1024;  // steps
  AmaxRule fp8_amax_compute_algo = AmaxRule::max;
  int64_t fp8_weight_copies = 2;
  bool first_last_layers_bf16 = false;
  int64_t num_layers_at_start_in_bf16 = 1;  // with first_last_layers_bf16
  int64_t num_layers_at_end_in_bf16 = 1;
  int64_t seed = 1234;
  std::string resume_from_checkpoint;
  std::string restore_from_path;

  NsysProfile nsys_profile;
  Tokenizer tokenizer;
  Data data;
  Optim optim;
};

struct CheckpointCallback {
  int64_t every_n_train_steps = 0;  // 0 or -1: only at the end and on a stop
  std::string train_time_interval;  // seconds, or H:M:S; empty: none
  int64_t save_top_k = 2;           // how many to keep; -1: all
  std::string monitor;              // what makes a checkpoint worth keeping; empty: that it is new
  Best mode = Best::min;            // of it
  std::string dirpath;              // empty: checkpoints/ in the run directory
  bool async_save = true;
  LateSave late_save = LateSave::wait;
  int64_t local_every_n_train_steps = 0;  // 0 or -1: none
  int64_t local_save_top_k = 2;
  std::string local_dirpath;  // empty: in memory alone
  std::string memory_dirpath = "/dev/shm";
  bool local_peer_copy = false;  // of what each node saves locally, in the memory of the next
};

// Metrics for Prometheus to fetch over HTTP.
struct Prometheus {
  int64_t port = 0;  // 0: not served
  std::string address = "127.0.0.1";
};

struct ExpManager {
  std::string explicit_log_dir;  // empty: runs/<name>
  bool resume_if_exists = false;
  bool create_checkpoint_callback = true;
  bool create_dllogger_logger = true;
  bool create_tensorboard_logger = true;
  bool create_events_logger = true;      // events.jsonl
  bool log_megatron_iterations = false;  // lines as Megatron-LM prints them
  Prometheus prometheus;
  double step_floor_seconds = 0.0;      // what `megalith bench step` measured as the floor of a step; 0: not known
  int64_t step_timing_buffer_size = 5;  // step_timing_kwargs.buffer_size
  CheckpointCallback checkpoint_callback_params;
};

// What a supervisor does about failures (room resilience). Times are seconds.
struct Supervision {
  int64_t num_spare_nodes = 0;  // beside trainer.num_nodes
  int64_t max_in_job_restarts = 3;
  int64_t max_workload_restarts = 2;
  double heartbeat_polling_period_s = 1.0;
  double heartbeat_timeout_s = 5.0;
  double initial_rank_heartbeat_timeout = 600.0;
  double rank_heartbeat_timeout = 0.0;  // 0: learned
  double workload_downtime_threshold_s = 180.0;
  bool enable_workload_scaling = true;
  int64_t min_num_dp_replicas = 1;
  int64_t max_num_dp_replicas = 0;  // 0: as many as the nodes make
  int64_t num_nodes_per_dp = 0;     // 0: as the layout has it
  double scale_up_after_s = 300.0;
  std::string policy;       // file; empty: none
  std::string goodput_log;  // file; empty: none
};

struct Run {
  std::string name = "megalith";
  Trainer trainer;
  Model model;
  ExpManager exp_manager;
  OnNonFinite on_non_finite = OnNonFinite::stop;  // resilience.on_non_finite
  std::vector<std::string> failpoints;            // resilience.failpoints
  Supervision supervision;                        // resilience.*

  // What was written of each key that validate() filled in from others, as YAML: what a run stores, so that it is
  // derived anew where those others change.
  std::map<std::string, std::string> derived;
};

}  // namespace megalith::config
