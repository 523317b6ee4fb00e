#include "train/run/load_origin.h"

#include <unistd.h>

#include "checkpoint/file_names.h"
#include "core/event_names.h"
#include "observe/sinks/log_files.h"

namespace megalith::train {

namespace {

void set_aside(const std::vector<checkpoint::BadShardPlace>& places) {
  for (const checkpoint::BadShardPlace& bad : places) {
    if (bad.file.empty()) observe::log_warning(bad.reason);
    if (bad.file.empty() || !bad.damaged) continue;
    const std::string aside = bad.file.string() + std::string(checkpoint::kBadSuffix);
    // Another rank may have been quicker.
    if (::rename(bad.file.c_str(), aside.c_str()) == 0)
      observe::log_warning(fmt::format("set aside as {}: {}", aside, bad.reason));
  }
}

// Why `action` failed; empty where it did not.
template <class Action>
std::string failure_of(const Action& action) {
  try {
    action();
    return {};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data && error.kind() != ErrorKind::io) throw;
    return error.what();
  }
}

// What no rank needed to read is read by one of them.
void verify_rest(engine::RankTalk& talk, checkpoint::Loaded& loaded, const std::vector<bool>& seen) {
  int64_t left = 0;
  for (size_t chunk = 0; chunk < seen.size(); ++chunk) {
    if (!seen[chunk] && left++ % talk.ranks() == talk.rank()) loaded.verify_chunk(static_cast<int64_t>(chunk));
  }
}

// Empty on all ranks, or on none.
std::string try_to_load(RankState& state, engine::RankTalk& talk, Origin& origin) {
  checkpoint::Loaded& loaded = *origin.loaded;
  std::string failure =
      failure_of([&] { origin.weights_only ? state.restore_weights(loaded) : state.restore(loaded); });
  if (!talk.any_rank(!failure.empty())) {
    const std::vector<bool> seen = talk.any_rank(loaded.verified_chunks());
    failure = failure_of([&] { verify_rest(talk, loaded, seen); });
    if (!talk.any_rank(!failure.empty())) return {};
  }
  return failure.empty() ? "another rank could not read its part" : failure;
}

}  // namespace

void load_origin(RankState& state, engine::RankTalk& talk, OriginFinder& finder, Origin& origin, Telemetry& telemetry) {
  const Span span(telemetry, event::kCheckpointLoad, origin.state.step);
  while (true) {
    const std::string failure = try_to_load(state, talk, origin);
    set_aside(origin.loaded->bad_places());
    if (failure.empty()) return;
    origin = finder.instead_of(origin, failure);
  }
}

}  // namespace megalith::train
