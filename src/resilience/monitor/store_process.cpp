#include "resilience/monitor/store_process.h"

#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "launch/ranks/secret.h"
#include "launch/ranks/store_process.h"

namespace megalith::resilience {

namespace {
constexpr double kStartSeconds = 20.0;

// For a later monitor; in a directory of this user alone.
void write_place(const std::filesystem::path& path, const Place& place) {
  replace_file(path, fmt::format("{} {} {}\n", place.address, place.port, place.secret));
}

Place read_place(const std::filesystem::path& path) {
  Place place;
  std::istringstream text(read_text(path));
  if (!(text >> place.address >> place.port >> place.secret))
    data_error("{} does not say where a store is", path.string());
  return place;
}

void start(const ProcessKey& key, const StoreProcess& store, NodeProcesses& processes) {
  Place place{.address = store.address, .secret = launch::new_secret()};
  processes.start(key, {.command = {"/proc/self/exe", "serve-store"}, .environment = {}, .secret = place.secret});
  LauncherLine& line = *processes.line(key);
  launch::ask_for_store(
      line, {.generation = store.generation, .ranks = static_cast<int>(store.ranks), .address = store.address});
  const std::optional<int> port = launch::port_of_store(line, kStartSeconds);
  if (!port) {
    fail(ErrorKind::io, "the store of generation {} did not say within {} s where it listens: see {}", key.generation,
         kStartSeconds, store.folders.log(key).string());
  }
  place.port = *port;
  write_place(store.folders.store_place(key.generation), place);
}
}  // namespace

Place serve_store_of(const StoreProcess& store, NodeProcesses& processes) {
  const ProcessKey key{store.generation, RankReport::kStore};
  if (!processes.has(key)) start(key, store, processes);
  if (!processes.is_running(key)) {
    fail(ErrorKind::io, "the store of generation {} has ended: see {}", key.generation,
         store.folders.log(key).string());
  }
  return read_place(store.folders.store_place(key.generation));
}

}  // namespace megalith::resilience
