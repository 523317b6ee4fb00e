#include "train/origin.h"

#include <random>

#include "config/keys.h"
#include "config/load.h"
#include "config/print.h"
#include "data/make_dataset.h"
#include "observe/log_files.h"

namespace megalith::train {

namespace {

std::string new_run_id() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

void note_changes(const config::Run& run, const std::string& stored_config) {
  const std::vector<config::Source> sources{{.name = "checkpoint", .text = stored_config}};
  config::Run before = config::load(sources, {});
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

Origin continue_from(checkpoint::Loaded loaded, const config::Run& run) {
  Origin origin{.state = loaded.manifest().state};
  origin.loaded = std::move(loaded);
  note_changes(run, origin.state.config);
  const auto generation = origin.state.extra.find("generation");
  if (generation != origin.state.extra.end()) origin.generation = std::stoll(generation->second) + 1;
  return origin;
}

Origin new_run(const config::Run& run) {
  return {.state = {.run_id = new_run_id(),
                    .data = {.horizon = data::samples_wanted(run, data::Split::train), .seed = run.model.seed}}};
}

Origin look_for_origin(const config::Run& run, const RunDirectory& directory, checkpoint::Store& store) {
  if (directory.resumes()) {
    const checkpoint::Latest latest = store.latest_verified();
    for (const checkpoint::PassedOver& bad : latest.passed_over) {
      observe::log_warning(fmt::format("checkpoint {} cannot be used: {}", bad.name, bad.reason));
    }
    if (latest.step) return continue_from(store.open(*latest.step), run);
    if (!latest.passed_over.empty()) {
      data_error("no checkpoint in {} can be used; the first reason: {}: {}", store.directory().string(),
                 latest.passed_over.front().name, latest.passed_over.front().reason);
    }
    observe::log_warning("no checkpoint yet in this run directory: starting from step 0");
  }
  if (!run.model.resume_from_checkpoint.empty()) {
    Origin origin = continue_from(checkpoint::Loaded::open(run.model.resume_from_checkpoint), run);
    origin.state.run_id = new_run_id();
    return origin;
  }
  return new_run(run);
}

}  // namespace

Origin find_origin(const config::Run& run, const RunDirectory& directory, checkpoint::Store& store) {
  Origin origin = look_for_origin(run, directory, store);
  // The config as it is now becomes part of the state, so that every checkpoint carries it.
  origin.state.config = config::to_yaml(run);
  origin.state.extra["generation"] = std::to_string(origin.generation);
  return origin;
}

Origin origin_of_rank(const config::Run& run, const std::filesystem::path& checkpoint) {
  return checkpoint.empty() ? new_run(run) : continue_from(checkpoint::Loaded::open(checkpoint), run);
}

}  // namespace megalith::train
