#include "config/validate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <utility>

#include "config/derived.h"
#include "config/keys.h"
#include "config/problems.h"
#include "config/scalar.h"
#include "core/metric_names.h"

namespace megalith::config {
namespace {

constexpr double kLlama31RopeFactor = 8.0;

class Validator {
 public:
  explicit Validator(Run& run) : run_(run) {}

  void operator()() {
    numbers();
    monitor(run_.exp_manager);
    texts();
    problems_.throw_if_any("the config");  // what follows divides by what was checked
    const std::map<std::string_view, std::string> written = texts_of_keys();
    fill();
    recompute();
    fp8();
    note_derived(written);
    shape();
    layout();
    data();
    schedule();
    checkpoints();
    supervision();
    problems_.throw_if_any("the config");
  }

 private:
  void supervision() {
    const Supervision& s = run_.supervision;
    if (s.heartbeat_timeout_s < 3 * s.heartbeat_polling_period_s) {
      problems_.add(
          "`resilience.heartbeat_timeout_s`={} is less than three times `resilience.heartbeat_polling_period_s`={}: a "
          "single report that is late would make a monitor silent",
          s.heartbeat_timeout_s, s.heartbeat_polling_period_s);
    }
    if (s.heartbeat_polling_period_s != 1.0) {
      problems_.add("`resilience.heartbeat_polling_period_s`={}: monitors report once a second; leave it out",
                    s.heartbeat_polling_period_s);
    }
    replicas();
  }

  void replicas() {
    const Supervision& s = run_.supervision;
    const int64_t replicas = data_parallel_size(run_);
    if (s.min_num_dp_replicas > replicas) {
      problems_.add("`resilience.min_num_dp_replicas`={} is more than the {} that the nodes make",
                    s.min_num_dp_replicas, replicas);
    }
    if (s.max_num_dp_replicas != 0 && s.max_num_dp_replicas < replicas) {
      problems_.add("`resilience.max_num_dp_replicas`={} is less than the {} that the nodes make",
                    s.max_num_dp_replicas, replicas);
    }
    const int64_t nodes = std::max<int64_t>(1, run_.trainer.num_nodes / replicas);
    if (s.num_nodes_per_dp != 0 && s.num_nodes_per_dp != nodes) {
      problems_.add("`resilience.num_nodes_per_dp`={}, but a replica of this layout has {}", s.num_nodes_per_dp, nodes);
    }
  }

  void monitor(ExpManager& manager) {
    if (!manager.create_checkpoint_callback) return;
    CheckpointCallback& checkpoints = manager.checkpoint_callback_params;
    if (checkpoints.save_top_k == 0) {
      problems_.add(
          "`exp_manager.checkpoint_callback_params.save_top_k`=0 would keep no checkpoint: use 1 or more, -1 for all, "
          "or exp_manager.create_checkpoint_callback=false to save none");
    }
    const std::string written = std::exchange(checkpoints.monitor, "");
    if (written == metric::kValidationLoss || written == metric::kTrainLoss) {
      checkpoints.monitor = written;
    } else if (!written.empty() && written != "step" && written != "global_step") {
      problems_.add("`exp_manager.checkpoint_callback_params.monitor`={} is not supported: use null, {}, {}", written,
                    metric::kValidationLoss, metric::kTrainLoss);
    } else if (!written.empty() && checkpoints.mode == Best::min) {
      problems_.add("`exp_manager.checkpoint_callback_params.monitor`={} with mode=min would keep the oldest: use max",
                    written);
    }
  }

  void numbers() {
    const auto& o = run_.model.optim;
    const auto& rope = run_.model.rope_scaling;
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      problems_.add("`model.rope_scaling.high_freq_factor`={} must be above model.rope_scaling.low_freq_factor={}",
                    rope.high_freq_factor, rope.low_freq_factor);
    }
    if (o.betas.size() != 2)
      problems_.add("`model.optim.betas` has {} numbers; expected [beta1, beta2]", o.betas.size());
    if (o.name == OptimizerName::adam && o.weight_decay > 0) {
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
    if (m.data.data_impl == DataImpl::automatic)
      m.data.data_impl = m.data.data_prefix.empty() ? DataImpl::mock : DataImpl::mmap;
    if (m.data.seq_length == 0) m.data.seq_length = m.encoder_seq_length;
    if (m.optim.sched.max_steps == 0) m.optim.sched.max_steps = run_.trainer.max_steps;
    if (run_.exp_manager.explicit_log_dir.empty()) run_.exp_manager.explicit_log_dir = "runs/" + run_.name;
    // NeMo's names for exactly that
    const OptimizerName optimizer = m.optim.name;
    if (optimizer == OptimizerName::distributed_fused_adam || optimizer == OptimizerName::mcore_distributed_optim)
      m.wrap_with_zero = true;
    if (m.fsdp) m.wrap_with_zero = true;
    // Public recipes set both formats; NeMo asks for this one first.
    if (m.fp8 && m.fp8_e4m3) m.fp8_hybrid = false;
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
    const bool rope = m.position_embedding_type == Positions::rope;
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
    if (m.activations_checkpoint_granularity != Granularity::full) {
      // NeMo's recipes leave these set beside `selective`, where they mean nothing.
      m.activations_checkpoint_method = RecomputeMethod::none;
      m.activations_checkpoint_num_layers = 0;
      return;
    }
    if (m.activations_checkpoint_method == RecomputeMethod::none)
      m.activations_checkpoint_method = RecomputeMethod::uniform;
    if (m.activations_checkpoint_num_layers > 0) return;
    if (m.activations_checkpoint_method == RecomputeMethod::block) {
      problems_.add(
          "`model.activations_checkpoint_method`=block recomputes the first layers of each chunk: set "
          "model.activations_checkpoint_num_layers to how many");
    }
    m.activations_checkpoint_num_layers = 1;
  }

  void fp8() {
    const auto& m = run_.model;
    if (!m.fp8) return;
    if (!m.fp8_hybrid && !m.fp8_e4m3)
      problems_.add("`model.fp8` needs one of model.fp8_hybrid and model.fp8_e4m3: none is set");
    if (run_.trainer.accelerator == Accelerator::gpu && run_.trainer.precision == Precision::fp32) {
      problems_.add("`model.fp8` on a GPU needs trainer.precision=bf16 for all that is not fp8, not {}",
                    word_of(run_.trainer.precision));
    }
    if (m.first_last_layers_bf16 && m.num_layers_at_start_in_bf16 + m.num_layers_at_end_in_bf16 > m.num_layers) {
      problems_.add("`model.first_last_layers_bf16` leaves {} + {} layers in bf16, the model has {}",
                    m.num_layers_at_start_in_bf16, m.num_layers_at_end_in_bf16, m.num_layers);
    }
    fp8_multiples();
  }

  // What fp8 GEMMs can multiply.
  void fp8_multiples() {
    const auto& m = run_.model;
    const int64_t tensor = m.tensor_model_parallel_size;
    const auto require = [&](const char* what, int64_t size, int64_t ranks, const char* keys) {
      constexpr int64_t kMultiple = 16;
      if (ranks > 0 && size % ranks == 0 && size / ranks % kMultiple != 0)
        problems_.add("`model.fp8` needs {} that are multiples of {}: {} has {} on each rank", what, kMultiple, keys,
                      size / ranks);
    };
    require("widths", m.hidden_size, 1, "model.hidden_size");
    require("widths", m.ffn_hidden_size, tensor, "model.ffn_hidden_size");
    require("widths", m.num_attention_heads * m.kv_channels, tensor, "num_attention_heads x kv_channels");
    require("widths", std::max(m.num_query_groups, tensor) * m.kv_channels, tensor, "num_query_groups x kv_channels");
    require("tokens of a micro batch", m.micro_batch_size * m.encoder_seq_length, m.context_parallel_size,
            "micro_batch_size x encoder_seq_length");
  }

  void data() {
    const auto& m = run_.model;
    if (m.data.seq_length != m.encoder_seq_length) {
      problems_.add(
          "`model.data.seq_length`={} differs from `model.encoder_seq_length`={}: set only the latter, and "
          "model.data.seq_length=null",
          m.data.seq_length, m.encoder_seq_length);
    }
    if (m.data.data_impl == DataImpl::mock && !m.data.data_prefix.empty()) {
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
    if (o.sched.name == LrSchedule::wsd && o.sched.decay_steps > o.sched.max_steps) {
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
