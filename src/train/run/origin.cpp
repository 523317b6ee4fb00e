#include "train/run/origin.h"

#include "checkpoint/kept_tokenizer.h"
#include "checkpoint/lineage.h"
#include "config/keys.h"
#include "config/load.h"
#include "config/print.h"
#include "config/validate.h"
#include "data/order/make_dataset.h"
#include "observe/sinks/log_files.h"
#include "train/run/named_step.h"

namespace megalith::train {

namespace {

void note_changes(const config::Run& run, const std::string& stored_config) {
  const std::vector<config::Source> sources{{.name = "checkpoint", .text = stored_config}};
  config::Run before = config::load(sources, {});
  try {
    config::validate(before);
  } catch (const Error&) {
    return;  // of a Megalith that had other rules: the run's own config decides
  }
  config::Run now = run;
  const std::vector<config::Key> old_keys = config::keys_of(before);
  const std::vector<config::Key> new_keys = config::keys_of(now);
  for (size_t i = 0; i < new_keys.size(); ++i) {
    const std::string old_value = config::value_text(old_keys[i].field);
    const std::string new_value = config::value_text(new_keys[i].field);
    if (old_value != new_value) {
      observe::log_info(
          fmt::format("changed since the checkpoint: {} from {} to {}", new_keys[i].path, old_value, new_value));
    }
  }
}

}  // namespace

OriginFinder::OriginFinder(const config::Run& run, RunIdentity identity, const CheckpointSearch::Options& search)
    : run_(run), identity_(std::move(identity)) {
  // What is there is looked at for a new run as well: it must not be another's.
  if (identity_.resumes || identity_.has_roster || run.exp_manager.create_checkpoint_callback) search_.emplace(search);
  lineage_ = search.lineage;
}

Origin OriginFinder::first() {
  if (search_) {
    say_passed_over();
    std::optional<checkpoint::Loaded> newest = search_->next();
    if (newest) return continue_from(std::move(*newest));
    if (identity_.resumes) observe::log_warning("no checkpoint yet in this run directory: starting from step 0");
  }
  if (!run_.model.resume_from_checkpoint.empty())
    return continue_from(checkpoint::Loaded::open(run_.model.resume_from_checkpoint));
  Origin origin = new_run();
  if (!run_.model.restore_from_path.empty()) {
    std::vector<checkpoint::PassedOver> ignored;
    origin.loaded = checkpoint::open_checkpoint(run_.model.restore_from_path, ignored);
    origin.weights_only = true;
  }
  return origin;
}

Origin OriginFinder::instead_of(const Origin& bad, const std::string& reason) {
  observe::log_warning(fmt::format("checkpoint {} cannot be used: {}", bad.loaded->path().string(), reason));
  std::optional<checkpoint::Loaded> next;
  if (search_) next = search_->next();
  if (!next && lineage_.is_known()) fail(ErrorKind::io, "{}", why_not_from(lineage_, reason));
  if (!next) data_error("no checkpoint can be used; the last reason: {}: {}", bad.loaded->path().string(), reason);
  return continue_from(std::move(*next));
}

void OriginFinder::say_passed_over() const {
  for (const checkpoint::PassedOver& bad : search_->passed_over())
    observe::log_warning(fmt::format("checkpoint {} cannot be used: {}", bad.name, bad.reason));
}

// Part of the state, so that parts which two starts saved of the same step are never taken for one checkpoint.
std::string OriginFinder::start_text() const {
  return std::to_string(identity_.start());
}

// The config as it is now becomes part of the state, so that every checkpoint carries it.
Origin OriginFinder::continue_from(checkpoint::Loaded loaded) const {
  Origin origin{.state = loaded.manifest().state, .loaded = std::nullopt, .generation = identity_.generation};
  note_changes(run_, origin.state.config);
  origin.loaded = std::move(loaded);
  // Another run kept its tokenizer with its own checkpoints.
  if (origin.state.run_id != identity_.id) origin.state.extra.erase(checkpoint::kTokenizerDigests);
  origin.state.run_id = identity_.id;
  origin.state.config = config::to_yaml(run_);
  origin.state.extra[checkpoint::kGenerationKey] = start_text();
  return origin;
}

Origin OriginFinder::new_run() const {
  return {.state = {.run_id = identity_.id,
                    .data = {.horizon = data::samples_wanted(run_, data::Split::train), .seed = run_.model.seed},
                    .config = config::to_yaml(run_),
                    .extra = {{checkpoint::kGenerationKey, start_text()}}},
          .loaded = std::nullopt,
          .generation = identity_.generation};
}

}  // namespace megalith::train
