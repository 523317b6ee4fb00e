#include "config/validate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "config/keys.h"
#include "config/layout.h"
#include "config/problems.h"
#include "config/scalar.h"

namespace megalith::config {
namespace {

// Bounds on single numbers: below them no product that a step needs overflows 64 bits.
constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxLayers = int64_t{1} << 14;
constexpr int64_t kMaxTokens = int64_t{1} << 24;
constexpr int64_t kMaxCount = int64_t{1} << 31;
constexpr int64_t kMaxSteps = int64_t{1} << 40;
constexpr double kMaxSeconds = 1e6;
constexpr double kLlama31RopeFactor = 8.0;

struct Spelling {
  std::string_view written;  // compared without case
  std::string_view meant;
};

class Validator {
 public:
  explicit Validator(Run& run) : run_(run) {}

  void operator()() {
    spellings();
    ranges();
    numbers();
    texts();
    problems_.throw_if_any("the config");  // what follows divides by what was checked
    const std::map<std::string_view, std::string> written = texts_of_keys();
    fill();
    recompute();
    note_derived(written);
    shape();
    layout();
    data();
    schedule();
    checkpoints();
    problems_.throw_if_any("the config");
  }

 private:
  void choose(std::string_view key, std::string& value, std::initializer_list<Spelling> spellings) {
    std::vector<std::string_view> meanings;
    for (const auto& [written, meant] : spellings) {
      if (lower_case(value) == lower_case(written)) {
        value = meant;
        return;
      }
      const std::string_view shown = meant.empty() ? "null" : meant;
      if (meanings.empty() || meanings.back() != shown) meanings.push_back(shown);
    }
    problems_.add("`{}`={} is not supported: use {}", key, value, fmt::join(meanings, ", "));
  }

  void spellings() {
    auto& model = run_.model;
    choose("trainer.accelerator", run_.trainer.accelerator,
           {{"auto", "auto"}, {"cpu", "cpu"}, {"gpu", "gpu"}, {"cuda", "gpu"}});
    problems_.guard([&] { run_.trainer.precision = compute_dtype(run_.trainer) == DType::bf16 ? "bf16" : "32"; });
    choose("model.position_embedding_type", model.position_embedding_type,
           {{"learned_absolute", "learned_absolute"}, {"rope", "rope"}});
    choose("model.normalization", model.normalization, {{"layernorm", "layernorm"}, {"rmsnorm", "rmsnorm"}});
    choose("model.activation", model.activation, {{"gelu", "gelu"}, {"swiglu", "swiglu"}, {"fast-swiglu", "swiglu"}});
    choose("model.activations_checkpoint_granularity", model.activations_checkpoint_granularity,
           {{"", ""}, {"none", ""}, {"selective", "selective"}, {"full", "full"}});
    choose("model.activations_checkpoint_method", model.activations_checkpoint_method,
           {{"", ""}, {"none", ""}, {"uniform", "uniform"}, {"block", "block"}});
    choose("model.pipeline_schedule", model.pipeline_schedule,
           {{"1f1b", "1f1b"}, {"zero_bubble", "zero_bubble"}, {"zb-h1", "zero_bubble"}});
    choose("model.data.data_impl", model.data.data_impl, {{"mmap", "mmap"}, {"mock", "mock"}, {"auto", "auto"}});
    choose("model.optim.name", model.optim.name,
           {{"adamw", "adamw"},
            {"adam", "adam"},
            {"fused_adam", "fused_adam"},
            {"distributed_fused_adam", "distributed_fused_adam"},
            {"mcore_distributed_optim", "mcore_distributed_optim"},
            {"megatron_fused_adam", "megatron_fused_adam"}});
    choose("model.optim.grad_sync_dtype", model.optim.grad_sync_dtype,
           {{"fp32", "fp32"}, {"32", "fp32"}, {"torch.float32", "fp32"}, {"bf16", "bf16"}, {"torch.bfloat16", "bf16"}});
    choose("model.optim.sched.name", model.optim.sched.name,
           {{"CosineAnnealing", "CosineAnnealing"}, {"linear", "linear"}, {"constant", "constant"}, {"WSD", "WSD"}});
    choose("exp_manager.checkpoint_callback_params.late_save", run_.exp_manager.checkpoint_callback_params.late_save,
           {{"wait", "wait"}, {"skip", "skip"}});
    if (run_.exp_manager.create_checkpoint_callback) monitor(run_.exp_manager.checkpoint_callback_params);
    choose("resilience.on_non_finite", run_.on_non_finite, {{"stop", "stop"}, {"skip", "skip"}});
  }

  void monitor(CheckpointCallback& checkpoints) {
    choose("exp_manager.checkpoint_callback_params.mode", checkpoints.mode, {{"min", "min"}, {"max", "max"}});
    const std::string written = checkpoints.monitor;
    choose("exp_manager.checkpoint_callback_params.monitor", checkpoints.monitor,
           {{"", ""},
            {"step", ""},
            {"global_step", ""},
            {"val_loss", "val_loss"},
            {"reduced_train_loss", "reduced_train_loss"}});
    if (!written.empty() && checkpoints.monitor.empty() && checkpoints.mode == "min") {
      problems_.add("`exp_manager.checkpoint_callback_params.monitor`={} with mode=min would keep the oldest: use max",
                    written);
    }
  }

  void range(std::string_view key, int64_t value, int64_t low, int64_t high) {
    if (value < low) problems_.add("`{}`={} must be at least {}", key, value, low);
    if (value > high) problems_.add("`{}`={} must be at most {}", key, value, high);
  }

  void ranges() {
    const auto& t = run_.trainer;
    range("trainer.devices", t.devices, 1, 4096);
    range("trainer.num_nodes", t.num_nodes, 1, kMaxWidth);
    range("trainer.max_steps", t.max_steps, 1, kMaxSteps);
    range("trainer.log_every_n_steps", t.log_every_n_steps, 1, kMaxSteps);
    range("trainer.val_check_interval", t.val_check_interval, 0, kMaxSteps);
    range("trainer.limit_val_batches", t.limit_val_batches, 0, kMaxSteps);
    range("trainer.cpu_threads", t.cpu_threads, 0, 4096);

    const auto& m = run_.model;
    range("model.micro_batch_size", m.micro_batch_size, 1, kMaxWidth);
    range("model.global_batch_size", m.global_batch_size, 1, kMaxCount);
    range("model.tensor_model_parallel_size", m.tensor_model_parallel_size, 1, 4096);
    range("model.pipeline_model_parallel_size", m.pipeline_model_parallel_size, 1, 4096);
    range("model.virtual_pipeline_model_parallel_size", m.virtual_pipeline_model_parallel_size, 1, kMaxLayers);
    range("model.context_parallel_size", m.context_parallel_size, 1, 4096);
    range("model.num_layers_in_first_pipeline_stage", m.num_layers_in_first_pipeline_stage, 0, kMaxLayers);
    range("model.num_layers_in_last_pipeline_stage", m.num_layers_in_last_pipeline_stage, 0, kMaxLayers);
    range("model.activations_checkpoint_num_layers", m.activations_checkpoint_num_layers, 0, kMaxLayers);
    range("model.encoder_seq_length", m.encoder_seq_length, 1, kMaxTokens);
    range("model.max_position_embeddings", m.max_position_embeddings, 0, kMaxTokens);
    range("model.num_layers", m.num_layers, 1, kMaxLayers);
    range("model.hidden_size", m.hidden_size, 1, kMaxWidth);
    range("model.ffn_hidden_size", m.ffn_hidden_size, 0, 4 * kMaxWidth);
    range("model.num_attention_heads", m.num_attention_heads, 1, 1 << 14);
    range("model.num_query_groups", m.num_query_groups, 0, 1 << 14);
    range("model.kv_channels", m.kv_channels, 0, 1 << 14);
    range("model.make_vocab_size_divisible_by", m.make_vocab_size_divisible_by, 1, kMaxWidth);
    range("model.seed", m.seed, 0, kMaxCount);
    range("model.rope_scaling.old_context_len", m.rope_scaling.old_context_len, 1, kMaxTokens);
    range("model.tokenizer.vocab_size", m.tokenizer.vocab_size, 0, kMaxTokens);
    range("model.data.seq_length", m.data.seq_length, 0, kMaxTokens);
    range("model.data.validation_files", m.data.validation_files, 0, kMaxCount);
    range("model.data.test_files", m.data.test_files, 0, kMaxCount);
    range("model.nsys_profile.start_step", m.nsys_profile.start_step, 0, kMaxSteps);
    range("model.nsys_profile.end_step", m.nsys_profile.end_step, 0, kMaxSteps);
    for (const int64_t rank : m.nsys_profile.ranks) range("model.nsys_profile.ranks", rank, 0, kMaxCount);

    range("model.optim.bucket_cap_mb", m.optim.bucket_cap_mb, 1, kMaxWidth);
    const auto& s = m.optim.sched;
    range("model.optim.sched.warmup_steps", s.warmup_steps, 0, kMaxSteps);
    range("model.optim.sched.constant_steps", s.constant_steps, 0, kMaxSteps);
    range("model.optim.sched.decay_steps", s.decay_steps, 0, kMaxSteps);
    range("model.optim.sched.max_steps", s.max_steps, 0, kMaxSteps);

    const auto& e = run_.exp_manager;
    range("exp_manager.step_timing_kwargs.buffer_size", e.step_timing_buffer_size, 1, kMaxWidth);
    range("exp_manager.prometheus.port", e.prometheus.port, 0, 65535);
    range("exp_manager.checkpoint_callback_params.every_n_train_steps",
          e.checkpoint_callback_params.every_n_train_steps, -1, kMaxSteps);
    range("exp_manager.checkpoint_callback_params.save_top_k", e.checkpoint_callback_params.save_top_k, -1, kMaxSteps);
    if (e.create_checkpoint_callback && e.checkpoint_callback_params.save_top_k == 0) {
      problems_.add(
          "`exp_manager.checkpoint_callback_params.save_top_k`=0 would keep no checkpoint: use 1 or more, -1 for all, "
          "or exp_manager.create_checkpoint_callback=false to save none");
    }
    range("exp_manager.checkpoint_callback_params.local_every_n_train_steps",
          e.checkpoint_callback_params.local_every_n_train_steps, -1, kMaxSteps);
    range("exp_manager.checkpoint_callback_params.local_save_top_k", e.checkpoint_callback_params.local_save_top_k, 1,
          kMaxSteps);
  }

  void require(bool good, std::string_view key, double value, std::string_view wanted) {
    if (!good) problems_.add("`{}`={} must be {}", key, value, wanted);
  }

  void numbers() {
    const auto& m = run_.model;
    const auto& o = m.optim;
    require(run_.trainer.gradient_clip_val >= 0, "trainer.gradient_clip_val", run_.trainer.gradient_clip_val,
            "at least 0");
    for (const auto& [key, seconds] : {std::pair{"trainer.start_timeout", run_.trainer.start_timeout},
                                       {"trainer.communication_timeout", run_.trainer.communication_timeout}}) {
      require(seconds > 0 && seconds <= kMaxSeconds, key, seconds, "above 0, and at most a million seconds");
    }
    require(run_.exp_manager.step_floor_seconds >= 0, "exp_manager.step_floor_seconds",
            run_.exp_manager.step_floor_seconds, "at least 0");
    require(m.hidden_dropout >= 0 && m.hidden_dropout < 1, "model.hidden_dropout", m.hidden_dropout,
            "at least 0 and below 1");
    require(m.attention_dropout >= 0 && m.attention_dropout < 1, "model.attention_dropout", m.attention_dropout,
            "at least 0 and below 1");
    require(m.layernorm_epsilon > 0, "model.layernorm_epsilon", m.layernorm_epsilon, "above 0");
    require(m.init_method_std > 0, "model.init_method_std", m.init_method_std, "above 0");
    require(m.rotary_base > 1, "model.rotary_base", m.rotary_base, "above 1");
    require(m.rope_scaling.factor >= 1, "model.rope_scaling.factor", m.rope_scaling.factor, "at least 1");
    require(m.rope_scaling.low_freq_factor > 0, "model.rope_scaling.low_freq_factor", m.rope_scaling.low_freq_factor,
            "above 0");
    require(m.rope_scaling.high_freq_factor > m.rope_scaling.low_freq_factor, "model.rope_scaling.high_freq_factor",
            m.rope_scaling.high_freq_factor, "above model.rope_scaling.low_freq_factor");
    require(o.lr >= 0, "model.optim.lr", o.lr, "at least 0");
    require(o.weight_decay >= 0, "model.optim.weight_decay", o.weight_decay, "at least 0");
    require(o.eps > 0, "model.optim.eps", o.eps, "above 0");
    require(o.sched.min_lr >= 0, "model.optim.sched.min_lr", o.sched.min_lr, "at least 0");
    if (o.betas.size() != 2)
      problems_.add("`model.optim.betas` has {} numbers; expected [beta1, beta2]", o.betas.size());
    for (const double beta : o.betas)
      require(beta >= 0 && beta < 1, "model.optim.betas", beta, "at least 0 and below 1");
    if (o.name == "adam" && o.weight_decay > 0) {
      problems_.add(
          "`model.optim.name`=adam with weight_decay={} is refused: NeMo's adam adds the decay to the gradient; use "
          "adamw, or weight_decay=0",
          o.weight_decay);
    }
  }

  void texts() {
    const auto& name = run_.name;
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
      problems_.add("`name`='{}' must be a word without '/': it names the run directory", name);
    }
    if (run_.exp_manager.prometheus.port > 0 && run_.exp_manager.prometheus.address.empty()) {
      problems_.add("`exp_manager.prometheus.address` must not be empty; 127.0.0.1 for this machine, 0.0.0.0 for all");
    }
    if (run_.model.tokenizer.type.empty()) problems_.add("`model.tokenizer.type` must not be empty");
    if (!run_.trainer.max_time.empty()) {
      problems_.guard([&] {
        if (parse_max_time(run_.trainer.max_time) == 0)
          problems_.add("`trainer.max_time` is zero; use null for no limit");
      });
    }
    const std::string& interval = run_.exp_manager.checkpoint_callback_params.train_time_interval;
    if (!interval.empty()) problems_.guard([&] { parse_time_interval(interval); });
    problems_.guard([&] { parse_splits(run_.model.data.splits_string); });
  }

  void fill() {
    auto& m = run_.model;
    if (m.kv_channels == 0 && m.hidden_size % m.num_attention_heads != 0) {
      const int64_t below = m.hidden_size / m.num_attention_heads * m.num_attention_heads;
      problems_.add(
          "`model.hidden_size`={} is not a multiple of `model.num_attention_heads`={}: use hidden_size {} or {}, or "
          "set model.kv_channels",
          m.hidden_size, m.num_attention_heads, below > 0 ? below : m.num_attention_heads,
          below + m.num_attention_heads);
    }
    m.ffn_hidden_size = ffn_hidden_size(m);
    m.num_query_groups = num_query_groups(m);
    m.kv_channels = std::max<int64_t>(1, kv_channels(m));
    m.max_position_embeddings = max_position_embeddings(m);
    if (m.scale_positional_embedding && m.rope_scaling.factor == 1.0) m.rope_scaling.factor = kLlama31RopeFactor;
    if (m.data.data_impl == "auto") m.data.data_impl = m.data.data_prefix.empty() ? "mock" : "mmap";
    if (m.data.seq_length == 0) m.data.seq_length = m.encoder_seq_length;
    if (m.optim.sched.max_steps == 0) m.optim.sched.max_steps = run_.trainer.max_steps;
    if (run_.exp_manager.explicit_log_dir.empty()) run_.exp_manager.explicit_log_dir = "runs/" + run_.name;
    // NeMo's names for exactly that
    if (m.optim.name == "distributed_fused_adam" || m.optim.name == "mcore_distributed_optim") m.wrap_with_zero = true;
    if (m.fsdp) m.wrap_with_zero = true;
  }

  std::map<std::string_view, std::string> texts_of_keys() {
    std::map<std::string_view, std::string> texts;
    for (const Key& key : keys_of(run_)) texts.emplace(key.path, value_text(key.field));
    return texts;
  }

  void note_derived(const std::map<std::string_view, std::string>& written) {
    for (const auto& [key, now] : texts_of_keys()) {
      if (written.at(key) != now) run_.derived.emplace(key, written.at(key));
    }
  }

  void divides(std::string_view small_key, int64_t small, std::string_view large_key, int64_t large,
               std::string_view advice) {
    if (large % small != 0)
      problems_.add("`{}`={} does not divide {}={}: {}", small_key, small, large_key, large, advice);
  }

  void shape() {
    const auto& m = run_.model;
    divides("model.num_query_groups", m.num_query_groups, "model.num_attention_heads", m.num_attention_heads,
            "each group serves the same number of heads");
    const bool rope = m.position_embedding_type == "rope";
    if (rope && m.kv_channels % 2 != 0) {
      problems_.add("heads are {} wide, and rope turns pairs of channels: use an even model.kv_channels",
                    m.kv_channels);
    }
    if (!rope && m.scale_positional_embedding) {
      problems_.add(
          "`model.scale_positional_embedding` scales rotary frequencies: set model.position_embedding_type=rope");
    }
    if (!rope && m.encoder_seq_length > m.max_position_embeddings) {
      problems_.add("`model.encoder_seq_length`={} is longer than `model.max_position_embeddings`={} learned positions",
                    m.encoder_seq_length, m.max_position_embeddings);
    }
  }

  // What no layout can work with; the rest is for parallel/layout_check.h, which knows layouts that do work.
  void layout() {
    const auto& m = run_.model;
    if (m.fsdp && m.pipeline_model_parallel_size > 1) {
      problems_.add("`model.fsdp` shards weights over ranks that hold all layers: use pipeline_model_parallel_size=1");
    }
    ramp();
    if (m.global_batch_size % m.micro_batch_size == 0) return;
    const int64_t below = m.global_batch_size / m.micro_batch_size * m.micro_batch_size;
    const int64_t above = below + m.micro_batch_size;
    problems_.add("`model.global_batch_size`={} is not a multiple of `model.micro_batch_size`={}: use {}",
                  m.global_batch_size, m.micro_batch_size,
                  below > 0 ? fmt::format("{} or {}", below, above) : fmt::format("{}", above));
  }

  void ramp() {
    constexpr int64_t kMostStages = 1000;
    const auto& m = run_.model;
    const std::vector<int64_t>& ramp = m.rampup_batch_size;
    if (ramp.empty()) return;
    if (ramp.size() != 3 || *std::min_element(ramp.begin(), ramp.end()) < 1) {
      problems_.add("`model.rampup_batch_size`=[{}] must be [start, increment, samples], each at least 1",
                    fmt::join(ramp, ", "));
    } else if (ramp[0] > m.global_batch_size || (m.global_batch_size - ramp[0]) % ramp[1] != 0) {
      problems_.add("`model.rampup_batch_size`=[{}] does not reach `model.global_batch_size`={} from {} in steps of {}",
                    fmt::join(ramp, ", "), m.global_batch_size, ramp[0], ramp[1]);
    } else if ((m.global_batch_size - ramp[0]) / ramp[1] > kMostStages) {
      problems_.add("`model.rampup_batch_size`=[{}] has more than {} increments: use larger ones",
                    fmt::join(ramp, ", "), kMostStages);
    }
  }

  void recompute() {
    auto& m = run_.model;
    if (m.activations_checkpoint_granularity != "full") {
      // NeMo's recipes leave these set beside `selective`, where they mean nothing.
      m.activations_checkpoint_method.clear();
      m.activations_checkpoint_num_layers = 0;
      return;
    }
    if (m.activations_checkpoint_method.empty()) m.activations_checkpoint_method = "uniform";
    if (m.activations_checkpoint_num_layers > 0) return;
    if (m.activations_checkpoint_method == "block") {
      problems_.add(
          "`model.activations_checkpoint_method`=block recomputes the first layers of each chunk: set "
          "model.activations_checkpoint_num_layers to how many");
    }
    m.activations_checkpoint_num_layers = 1;
  }

  void data() {
    const auto& m = run_.model;
    if (m.data.seq_length != m.encoder_seq_length) {
      problems_.add(
          "`model.data.seq_length`={} differs from `model.encoder_seq_length`={}: set only the latter, and "
          "model.data.seq_length=null",
          m.data.seq_length, m.encoder_seq_length);
    }
    if (m.data.data_impl == "mock" && !m.data.data_prefix.empty()) {
      problems_.add("`model.data.data_impl`=mock would not read `model.data.data_prefix`: set data_impl=mmap");
    }
    data_list("model.data.data_prefix", m.data.data_prefix);
    data_list("model.data.validation_prefix", m.data.validation_prefix);
    data_list("model.data.test_prefix", m.data.test_prefix);
  }

  // A list without a number in it is prefixes alone; otherwise weights and prefixes take turns.
  void data_list(std::string_view key, const std::vector<std::string>& list) {
    const bool weighted = std::any_of(list.begin(), list.end(), [](const auto& text) { return read_double(text); });
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].empty()) problems_.add("`{}` holds an empty text", key);
      const auto weight = read_double(list[i]);
      if (weighted && i % 2 == 0 && (!weight || *weight <= 0)) {
        problems_.add("`{}`: '{}' stands where a weight above 0 must: [weight, prefix, ...]", key, list[i]);
      }
    }
    if (weighted && list.size() % 2 != 0) {
      problems_.add("`{}` has {} entries; expected prefixes, or pairs: [weight, prefix, ...]", key, list.size());
    }
  }

  void checkpoints() {
    const auto& checkpoints = run_.exp_manager.checkpoint_callback_params;
    if (!checkpoints.local_peer_copy) return;
    constexpr std::string_view kKey = "exp_manager.checkpoint_callback_params.local_peer_copy";
    if (run_.trainer.num_nodes < 2) problems_.add("`{}` needs another node: trainer.num_nodes is 1", kKey);
    if (checkpoints.local_every_n_train_steps <= 0)
      problems_.add("`{}` copies what is saved locally: set local_every_n_train_steps", kKey);
    if (checkpoints.memory_dirpath == "none") problems_.add("`{}` needs memory: set memory_dirpath", kKey);
  }

  void schedule() {
    const auto& o = run_.model.optim;
    if (o.sched.min_lr > o.lr) {
      problems_.add("`model.optim.sched.min_lr`={} is above `model.optim.lr`={}: lower it too", o.sched.min_lr, o.lr);
    }
    if (o.sched.name == "WSD" && o.sched.decay_steps > o.sched.max_steps) {
      problems_.add("`model.optim.sched.decay_steps`={} is longer than the schedule of {} steps", o.sched.decay_steps,
                    o.sched.max_steps);
    }
  }

  Run& run_;
  Problems problems_;
};

}  // namespace

void validate(Run& run) {
  Validator{run}();
}

}  // namespace megalith::config
