#include "resilience/monitor/node.h"

#include <algorithm>
#include <limits>

#include "checkpoint/holdings.h"
#include "checkpoint/nodes/remote_holders.h"
#include "config/fleet_environment.h"
#include "config/load.h"
#include "config/validate.h"
#include "core/device.h"
#include "core/error.h"
#include "core/file.h"
#include "observe/sinks/log_files.h"
#include "resilience/monitor/store_process.h"
#include "resilience/record/journal.h"
#include "train/run/run_directory.h"

namespace megalith::resilience {

namespace fs = std::filesystem;

namespace {
constexpr int64_t kEveryGeneration = std::numeric_limits<int64_t>::max();
constexpr const char* kConfig = "hparams.yaml";

Tier tier_of(checkpoint::HeldSave::Tier tier) {
  switch (tier) {
    case checkpoint::HeldSave::Tier::memory:
    case checkpoint::HeldSave::Tier::copies:
      return Tier::memory;
    case checkpoint::HeldSave::Tier::local:
      return Tier::local;
    case checkpoint::HeldSave::Tier::persistent:
      return Tier::persistent;
  }
  return Tier::memory;
}

void add_holdings(std::vector<Holding>& all, const std::vector<checkpoint::HeldSave>& saves) {
  for (const checkpoint::HeldSave& save : saves) {
    all.push_back({.step = save.step,
                   .generation = save.generation,
                   .tier = tier_of(save.tier),
                   .parts = save.ranks,
                   .held = save.parts});
  }
}

config::Run config_of(const std::vector<config::Source>& sources, const std::vector<std::string>& overrides) {
  config::Run run = config::load(sources, overrides);
  config::validate(run);
  return run;
}
}  // namespace

void check_overrides(const std::vector<std::string>& overrides) {
  for (const std::string& override : overrides) {
    const std::string key = override.substr(0, override.find('='));
    if (override.starts_with('-') || key.size() == override.size())
      user_error("the roster has '{}', which is not key=value", override);
  }
}

Node::Node(NodeOptions options)
    : options_(std::move(options)), control_(options_.run_directory), processes_(options_.folders, options_.run) {
  try {
    tiers();
  } catch (const Error& error) {  // the orders that need it say so as well; who runs is watched all the same
    observe::log_error(error.what());
  }
}

int64_t Node::newest_term() const {
  return resilience::newest_term(control_);
}

std::optional<Roster> Node::newest_roster() const {
  return read_newest_roster(control_, options_.run);
}

// What the newest roster's config says; before there is one, that of a run that began without a supervisor.
const train::Tiers* Node::tiers() {
  const std::optional<Roster> roster = newest_roster();
  if (places_ && (!roster || places_->generation == roster->generation)) return &places_->tiers;
  const fs::path config = options_.run_directory / kConfig;
  config::Run run;
  if (roster) {
    check_overrides(roster->overrides);
    run = config_of({{.name = roster_file_name(roster->generation), .text = roster->config}}, roster->overrides);
    if (!run.failpoints.empty())
      user_error("the roster sets resilience.failpoints, which are taken from the command line of a monitor alone");
  } else if (size_if_there(config) >= 0) {
    run = config_of({{.name = config.string(), .text = read_text(config)}}, {});
  } else {
    return nullptr;
  }
  run.exp_manager.explicit_log_dir = options_.run_directory.string();
  places_ = OfGeneration{.generation = roster ? roster->generation : 0, .tiers = train::tiers_of(run, options_.node)};
  if (!memory_ && !places_->tiers.memory.empty()) memory_.emplace(places_->tiers.memory);
  if (!server_)
    server_ = std::make_unique<checkpoint::PartServer>(places_->tiers.on_node(), options_.run, options_.address);
  return &places_->tiers;
}

std::vector<config::GenerationStart> Node::lineage() const {
  std::vector<config::GenerationStart> starts;
  for (const int64_t generation : numbered_files(control_, "roster-", ".json")) {
    const std::string name = roster_file_name(generation);
    const std::optional<std::string> text = control_.read(name);
    if (!text) throw Error(ErrorKind::io, fmt::format("{} was there and cannot be read", control_.path_of(name)));
    const Roster roster = parse_roster(*text, control_.path_of(name));
    starts.push_back({.generation = generation,
                      .from_step = roster.from_step < 0 ? config::GenerationStart::kAnew : roster.from_step});
  }
  return starts;
}

void Node::write_config(const Roster& roster) {
  check_overrides(roster.overrides);
  const fs::path config = options_.folders.config(roster.generation);
  if (size_if_there(config) < 0) replace_file(config, roster.config);
}

std::vector<std::string> Node::command_of(const Roster& roster) const {
  std::vector<std::string> command = {"/proc/self/exe", "train", "-c", options_.folders.config(roster.generation)};
  command.insert(command.end(), roster.overrides.begin(), roster.overrides.end());
  command.push_back(fmt::format("trainer.num_nodes={}", roster.nodes.size()));
  command.push_back(fmt::format("trainer.devices={}", roster.ranks_per_node));
  command.push_back(fmt::format("exp_manager.explicit_log_dir={}", options_.run_directory.string()));
  command.emplace_back("exp_manager.resume_if_exists=true");
  return command;
}

std::vector<std::string> Node::environment_of(const Roster& roster, int64_t rank, const Place& store) const {
  const ProcessKey key{roster.generation, rank};
  std::vector<std::string> variables = config::variables_of({.run_id = options_.run,
                                                             .node = options_.node,
                                                             .generations = lineage(),
                                                             .holders_file = options_.folders.holders(key.generation)});
  for (std::string variable :
       {fmt::format("RANK={}", rank), fmt::format("LOCAL_RANK={}", rank % roster.ranks_per_node),
        fmt::format("WORLD_SIZE={}", roster.world_size), fmt::format("LOCAL_WORLD_SIZE={}", roster.ranks_per_node),
        fmt::format("MASTER_ADDR={}", store.port == 0 ? options_.address : store.address),
        fmt::format("MASTER_PORT={}", store.port == 0 ? 1 : store.port),
        fmt::format("MEGALITH_STATUS_PAGE={}", options_.folders.page(key).string()),
        fmt::format("MEGALITH_FAILPOINTS={}", options_.failpoints), std::string("TORCHELASTIC_USE_AGENT_STORE="),
        std::string("MEGALITH_TERMINAL="), std::string("MEGALITH_STORE_SECRET="),
        std::string("MEGALITH_STORE_SECRET_FILE=")})
    variables.push_back(std::move(variable));
  return variables;
}

void Node::start_rank(const Roster& roster, int64_t rank, const Place& store, const std::vector<Holder>& holders) {
  const ProcessKey key{roster.generation, rank};
  if (processes_.has(key)) return;
  tiers();
  processes_.forget_before(roster.generation);
  write_config(roster);
  std::vector<checkpoint::RemoteHolder> others;
  for (const Holder& holder : holders) {
    if (holder.node == options_.node || holder.place.port == 0) continue;
    others.push_back({.node = holder.node,
                      .place = {.address = holder.place.address,
                                .port = static_cast<uint16_t>(holder.place.port),
                                .secret = holder.place.secret}});
  }
  checkpoint::write_holders(options_.folders.holders(roster.generation), others);
  processes_.start(
      key, {.command = command_of(roster), .environment = environment_of(roster, rank, store), .secret = store.secret});
}

Place Node::serve_store(const Roster& roster) {
  return serve_store_of({.generation = roster.generation,
                         .ranks = roster.world_size,
                         .address = options_.address,
                         .folders = options_.folders},
                        processes_);
}

bool Node::is_clear_of(int64_t generation) {
  processes_.watch(0.0);
  return processes_.is_clear_of(generation);
}

std::vector<Holding> Node::holdings() {
  std::vector<Holding> all;
  const train::Tiers* const tiers = this->tiers();
  if (tiers == nullptr) return all;
  // Ranks do that themselves, but a node may be without.
  if (const std::vector<config::GenerationStart> starts = lineage(); !starts.empty()) {
    for (const std::string& removed :
         checkpoint::remove_given_up(tiers->on_node(), options_.run, checkpoint::Lineage(starts)))
      observe::log_info(removed);
  }
  add_holdings(all, checkpoint::saves_on(tiers->on_node(), options_.run));
  add_holdings(all, checkpoint::saves_in(tiers->persistent, options_.run));
  server_->offer();
  return all;
}

Place Node::holder_place() {
  if (!server_) return {};
  const comm::ByteServerAddress place = server_->place();
  return {.address = place.address, .port = place.port, .secret = place.secret};
}

// What a rank would need first: its disk keeps what is written to it, and the run directory and memory take files.
CheckOutcome Node::check(std::string& evidence) {
  try {
    const train::Tiers* const tiers = this->tiers();
    for (const fs::path& directory : {options_.folders.disk, options_.folders.memory}) {
      const fs::path probe = directory / "probe";
      const std::string text(size_t{1} << 20, 'm');
      replace_file(probe, text);
      const File written = File::open_for_reading(probe);
      written.forget_cache();
      std::string read(text.size(), '\0');
      written.read_at(0, std::as_writable_bytes(std::span(read)));
      remove_if_there(probe);
      if (read != text) data_error("{} does not give back what was written to it", probe.string());
    }
    evidence = tiers == nullptr ? "" : train::why_not_writable(*tiers, "node-" + options_.node);
  } catch (const Error& error) {
    evidence = error.what();
  }
  return evidence.empty() ? CheckOutcome::ok : CheckOutcome::failed;
}

std::optional<bool> Node::all_done_or_stopped() const {
  bool all_stopped = true;
  for (const RankReport& rank : processes_.reports(false)) {
    if (rank.is_store()) continue;
    if (!rank.end) return std::nullopt;
    const EndingKind kind = rank.page ? rank.page->ending.kind : EndingKind::none;
    all_stopped = all_stopped && (kind == EndingKind::done || kind == EndingKind::stopped);
  }
  return all_stopped;
}

void Node::clear(bool is_complete) {
  processes_.kill_up_to(kEveryGeneration);
  while (!is_clear_of(kEveryGeneration)) processes_.kill_up_to(kEveryGeneration);
  processes_.forget_before(kEveryGeneration);
  remove_if_there(options_.folders.ends());
  if (is_complete && places_) checkpoint::remove_parts(places_->tiers.on_node(), options_.run);
}

}  // namespace megalith::resilience
