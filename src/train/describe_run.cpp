#include "train/describe_run.h"

#include <fmt/ranges.h>

#include "config/derived.h"
#include "core/words.h"
#include "plan/run_request.h"
#include "train/run/run_directory.h"
#include "train/run/run_files.h"
#include "train/run/tiers.h"

namespace megalith::train {

namespace {

std::string describe_shape(const config::Model& m) {
  std::string heads = counted(m.num_attention_heads, "head");
  if (m.num_query_groups != m.num_attention_heads) heads += fmt::format(" ({} of keys and values)", m.num_query_groups);
  return fmt::format("{}, width {}, {}, MLP {}, {} of context; {}, {}, {}", counted(m.num_layers, "layer"),
                     m.hidden_size, heads, m.ffn_hidden_size, counted(m.encoder_seq_length, "token"),
                     word_of(m.position_embedding_type), word_of(m.normalization), word_of(m.activation));
}

std::string describe_batch(const config::Model& m) {
  return fmt::format("{} of {} a step, in micro batches of {}", counted(m.global_batch_size, "sample"),
                     counted(m.encoder_seq_length, "token"), m.micro_batch_size);
}

std::string describe_data(const config::Data& data) {
  constexpr size_t kShown = 4;
  if (learns_made_up_tokens(data)) return kMadeUpTokens;
  const std::vector<std::string>& list = data.data_prefix;
  std::string text = fmt::format(
      "{}", fmt::join(list.begin(), list.begin() + std::min(std::ssize(list), std::ptrdiff_t{kShown}), ", "));
  if (list.size() > kShown) text += fmt::format(" and {} more", list.size() - kShown);
  if (!data.validation_prefix.empty() || !data.test_prefix.empty()) return text + "; each split has its own";
  if (data.validation_files > 0 || data.test_files > 0) {
    return text + fmt::format("; the last {} to validate, {} to test", data.validation_files, data.test_files);
  }
  return text + "; split " + data.splits_string;
}

std::string describe_tokenizer(const config::Tokenizer& tokenizer, int64_t vocabulary) {
  std::string text = fmt::format("{}, {}", tokenizer.type, counted(vocabulary, "id"));
  for (const std::string& file : {tokenizer.vocab_file, tokenizer.merge_file, tokenizer.model}) {
    if (!file.empty()) text += ", " + file;
  }
  return text;
}

std::string describe_optimizer(const config::Optim& o, double clip) {
  return fmt::format("{}, weight decay {}, betas {}{}", word_of(o.name), o.weight_decay, fmt::join(o.betas, " and "),
                     clip > 0 ? fmt::format(", gradients clipped at {}", clip) : "");
}

std::string describe_learning_rate(const config::Optim& o) {
  return fmt::format("{}, {} over {}, {} of warm-up, down to {}", o.lr, word_of(o.sched.name),
                     counted(o.sched.max_steps, "step"), o.sched.warmup_steps, o.sched.min_lr);
}

std::string describe_steps(const config::Trainer& t) {
  std::string text = std::to_string(t.max_steps);
  if (!t.max_time.empty()) text += fmt::format(", at most {}", t.max_time);
  if (t.val_check_interval == 0 || t.limit_val_batches == 0) return text + ", no validation";
  return text + fmt::format(", validation every {}", counted(t.val_check_interval, "step"));
}

std::string describe_checkpoints(const config::Run& run) {
  if (!run.exp_manager.create_checkpoint_callback) return "none";
  const config::CheckpointCallback& c = run.exp_manager.checkpoint_callback_params;
  std::vector<std::string> due;
  if (c.every_n_train_steps > 0) due.push_back("every " + counted(c.every_n_train_steps, "step"));
  if (!c.train_time_interval.empty()) due.push_back("every " + c.train_time_interval);
  if (due.empty()) due.emplace_back("only at the end");
  return fmt::format("{}, {}", tiers_of(run, 0).persistent.string(), fmt::join(due, " and "));
}

std::string describe_device(const config::Trainer& t) {
  const bool on_cpu = plan::device_of(t) == Device::cpu;
  const int64_t ranks = config::world_size(t);
  const char* where = ranks == 1 ? (on_cpu ? "the CPU" : "a GPU") : (on_cpu ? "CPUs" : "GPUs");
  return fmt::format(
      "{} on {}{}", counted(ranks, "rank"), where,
      on_cpu && t.accelerator == config::Accelerator::automatic ? ", since this machine has no GPU" : "");
}

std::string describe_precision(const config::Run& run) {
  const config::Model& m = run.model;
  const std::string_view precision = word_of(run.trainer.precision);
  if (!m.fp8) return std::string(precision);
  std::string text = fmt::format("{}, linear layers of the blocks in fp8 ({}, {} scaling", precision,
                                 m.fp8_hybrid ? "E4M3, gradients E5M2" : "E4M3", word_of(m.fp8_recipe));
  if (m.fp8_recipe == config::Fp8Recipe::delayed)
    text += fmt::format(", {} of {} steps", word_of(m.fp8_amax_compute_algo), m.fp8_amax_history_len);
  if (m.first_last_layers_bf16)
    text += fmt::format("; not in the first {} and the last {} blocks", m.num_layers_at_start_in_bf16,
                        m.num_layers_at_end_in_bf16);
  return text + ")";
}
}  // namespace

std::string describe_run(const config::Run& run, int64_t vocabulary) {
  const config::Model& m = run.model;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<16} {}\n", name, value);
  };
  line("run", fmt::format("{} in {}", run.name, run_path(run).string()));
  line("model", describe_shape(m));
  line("tokenizer", describe_tokenizer(m.tokenizer, vocabulary));
  line("data", describe_data(m.data));
  line("batch", describe_batch(m));
  line("precision", describe_precision(run));
  line("optimizer", describe_optimizer(m.optim, run.trainer.gradient_clip_val));
  line("learning rate", describe_learning_rate(m.optim));
  line("steps", describe_steps(run.trainer));
  line("checkpoints", describe_checkpoints(run));
  line("device", describe_device(run.trainer));
  return text;
}

}  // namespace megalith::train
