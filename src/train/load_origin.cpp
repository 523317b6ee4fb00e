#include "train/load_origin.h"

#include <unistd.h>

#include "checkpoint/layout.h"
#include "observe/log_files.h"

namespace megalith::train {

namespace {

void set_aside(const std::vector<checkpoint::BadPlace>& places) {
  for (const checkpoint::BadPlace& bad : places) {
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
void verify_rest(Engine& engine, checkpoint::Loaded& loaded, const std::vector<bool>& seen) {
  const int rank = engine.groups().world == nullptr ? 0 : engine.groups().world->rank();
  const int ranks = engine.groups().world == nullptr ? 1 : engine.groups().world->size();
  int64_t left = 0;
  for (size_t chunk = 0; chunk < seen.size(); ++chunk) {
    if (!seen[chunk] && left++ % ranks == rank) loaded.verify_chunk(static_cast<int64_t>(chunk));
  }
}

// Empty on all ranks, or on none.
std::string try_to_load(Engine& engine, Origin& origin) {
  checkpoint::Loaded& loaded = *origin.loaded;
  std::string failure =
      failure_of([&] { origin.weights_only ? engine.restore_weights(loaded) : engine.restore(loaded); });
  if (!engine.is_so_somewhere(!failure.empty())) {
    const std::vector<bool> seen = engine.union_over_ranks(loaded.verified_chunks());
    failure = failure_of([&] { verify_rest(engine, loaded, seen); });
    if (!engine.is_so_somewhere(!failure.empty())) return {};
  }
  return failure.empty() ? "another rank could not read its part" : failure;
}

}  // namespace

void load_origin(Engine& engine, OriginFinder& finder, Origin& origin, Telemetry& telemetry) {
  const Span span(telemetry, "checkpoint_load", origin.state.step);
  while (true) {
    const std::string failure = try_to_load(engine, origin);
    set_aside(origin.loaded->bad_places());
    if (failure.empty()) return;
    origin = finder.instead_of(origin, failure);
  }
}

}  // namespace megalith::train
