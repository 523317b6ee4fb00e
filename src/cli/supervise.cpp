#include "resilience/supervise/supervise.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <optional>

#include "cli/accepts.h"
#include "cli/config_options.h"
#include "cli/verbs.h"
#include "config/derived.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/thread_pool.h"
#include "data/tokenizer/tokenizer.h"
#include "plan/run_layout.h"
#include "plan/run_request.h"
#include "resilience/secure/credentials.h"
#include "train/run/run_files.h"
#include "train/tuned_files.h"

namespace megalith::cli {

namespace {
constexpr int64_t kMostNodes = 4096;
constexpr int64_t kMostDays = 3650;

struct Options {
  ConfigOptions config;
  std::string fleet;
  std::string listen;
  std::optional<int64_t> spares;
  resilience::Supervision supervision;
  resilience::CredentialRequest request;
};

// "4x2" is 4 nodes of 2 ranks.
void read_fleet(const std::string& text, resilience::Supervision& supervision) {
  const auto number = [&](std::string_view digits) {
    int64_t value = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (status != std::errc{} || end != digits.data() + digits.size() || value < 1 || value > kMostNodes) {
      user_error("--local {} is no fleet: give nodes x ranks of each, for example --local 4x2, both from 1 to {}", text,
                 kMostNodes);
    }
    return value;
  };
  const size_t cross = std::min(text.find('x'), text.size());
  supervision.nodes = number(std::string_view(text).substr(0, cross));
  supervision.ranks_per_node = number(std::string_view(text).substr(std::min(cross + 1, text.size())));
}

// Before anything is started, so that a mistake is explained once.
void check(const config::Run& run, int64_t ranks) {
  plan::check_ranks(run, ranks);
  train::require_files(run);
  plan::check_layout(run, data::vocabulary_of(run.model.tokenizer).size);
  if (!run.failpoints.empty()) {
    user_error(
        "resilience.failpoints is set: a supervisor takes faults from its own command line alone, with --failpoints");
  }
}

// Smaller fleets that layout and batch accept, and the memory of this machine where it has all nodes; the largest
// first.
std::vector<int64_t> smaller_fleets(const ConfigOptions& config, const config::Run& whole, bool is_here) {
  std::vector<int64_t> accepted;
  if (!whole.supervision.enable_workload_scaling) return accepted;
  const int64_t devices = whole.trainer.devices;
  const int64_t replica = config::world_size(whole.trainer) / config::data_parallel_size(whole);
  for (int64_t nodes = whole.trainer.num_nodes - 1; nodes >= 1; --nodes) {
    if (nodes * devices % replica != 0) continue;
    ConfigOptions smaller = config;
    smaller.overrides.push_back(fmt::format("trainer.num_nodes={}", nodes));
    try {
      const config::Run run = smaller.load();
      check(run, nodes * devices);
      if (is_here)
        train::check_device(run, plan::stage_request(run, data::vocabulary_of(run.model.tokenizer).size), {});
      accepted.push_back(nodes);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::user) throw;
    }
  }
  return accepted;
}

int make_and_list_credentials(resilience::CredentialRequest request) {
  request.now = wall_seconds();
  for (const std::filesystem::path& made : resilience::make_credentials(request)) fmt::print("{}\n", made.string());
  fmt::print("{}  (stays here: whoever has the key in it can make certificates)\n", (request.folder / "ca").string());
  return 0;
}

int supervise_machines(Options& options) {
  resilience::Supervision& supervision = options.supervision;
  supervision.listen = resilience::parse_endpoint(options.listen, "--listen");
  if (supervision.credentials.empty()) {
    user_error(
        "--listen {} is TCP, where supervisors and monitors must show certificates, on this machine too: make them "
        "with "
        "`megalith supervise --make-credentials FOLDER` and give --credentials FOLDER/supervisor",
        options.listen);
  }
  supervision.run = options.config.load();
  check(supervision.run, supervision.run.trainer.num_nodes * supervision.run.trainer.devices);
  supervision.fewer_nodes = smaller_fleets(options.config, supervision.run, false);
  return resilience::supervise(supervision);
}

int supervise_folders(Options& options) {
  resilience::Supervision& supervision = options.supervision;
  read_fleet(options.fleet, supervision);
  const int64_t ranks = supervision.nodes * supervision.ranks_per_node;
  auto& overrides = options.config.overrides;
  const std::vector<std::string> of_fleet = {fmt::format("trainer.num_nodes={}", supervision.nodes),
                                             fmt::format("trainer.devices={}", supervision.ranks_per_node)};
  overrides.insert(overrides.begin(), of_fleet.begin(), of_fleet.end());
  supervision.run = options.config.load();
  check(supervision.run, ranks);
  supervision.fewer_nodes = smaller_fleets(options.config, supervision.run, true);
  supervision.spares = options.spares.value_or(supervision.run.supervision.num_spare_nodes);
  if (supervision.run.trainer.cpu_threads == 0)
    supervision.run.trainer.cpu_threads = std::max<int64_t>(1, available_cores() / ranks);
  return resilience::supervise(supervision);
}

int run_verb(Options options) {
  if (!options.request.folder.empty()) return make_and_list_credentials(options.request);
  if (!options.listen.empty()) return supervise_machines(options);
  if (options.fleet.empty()) {
    user_error(
        "supervise what? --local 2x2 makes a fleet on this machine, --listen HOST:PORT waits for the monitors of "
        "others, --make-credentials FOLDER makes what these need");
  }
  return supervise_folders(options);
}
}  // namespace

void add_supervise(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "supervise",
      "Train with a fleet of nodes and recover from what goes wrong: ranks and nodes that die, hangs, faults in\n"
      "the middle of a recovery.\n\n"
      "  megalith supervise --local 2x2 -c recipes/demo.yaml exp_manager.explicit_log_dir=runs/fleet\n"
      "  megalith supervise --local 4x2 --spares 1 -c recipes/demo.yaml exp_manager.explicit_log_dir=runs/fleet\n\n"
      "--local makes the fleet on this machine: each node is a folder and its processes, and is lost where the folder\n"
      "is. The run ends with the same bits as one that nothing has disturbed. Started again with the same words it\n"
      "goes on, also while the fleet trains without it.\n"
      "SIGTERM, SIGINT (Ctrl-C), SIGUSR1 and SIGHUP end the step, save, and exit with 75; a second Ctrl-C quits\n"
      "without saving (130). Exit code 70: it gave up, and says what it tried; running again will not help.\n\n"
      "Over several machines, trainer.num_nodes of trainer.devices ranks each:\n\n"
      "  megalith supervise --make-credentials keys --nodes node0,node1\n"
      "  megalith supervise --listen 10.0.0.1:7000 --credentials keys/supervisor -c recipes/demo.yaml "
      "trainer.num_nodes=2\n"
      "  megalith monitor --run runs/demo --node node0 --supervisors 10.0.0.1:7000 --credentials keys/monitors/node0");
  const auto options = std::make_shared<Options>();
  options->config.add_to(*verb);
  CLI::Option* local = verb->add_option("--local", options->fleet, "nodes x ranks of each, on this machine");
  local->type_name("NxR");
  CLI::Option* listen =
      verb->add_option("--listen", options->listen, "where the monitors of other machines find this supervisor");
  listen->type_name("HOST:PORT")->excludes(local);
  verb->add_option("--credentials", options->supervision.credentials,
                   "a supervisor's, as --make-credentials makes them")
      ->type_name("DIR")
      ->needs(listen);
  CLI::Option* make = verb->add_option("--make-credentials", options->request.folder,
                                       "make an authority and certificates for supervisors, monitors, operators and "
                                       "viewers there; where they are, new ones of the same authority");
  make->type_name("DIR")->excludes(local)->excludes(listen);
  verb->add_option("--nodes", options->request.nodes, "nodes that get a certificate each, beside the one for any node")
      ->delimiter(',')
      ->type_name("NAME,...")
      ->needs(make);
  verb->add_option("--days", options->request.days, "for which the certificates are valid")
      ->check(between(1, kMostDays))
      ->capture_default_str()
      ->needs(make);
  verb->add_option("--spares", options->spares,
                   "further nodes, which take the place of lost ones (default: resilience.num_spare_nodes)")
      ->check(between(0, kMostNodes));
  verb->add_option("--nodes-dir", options->supervision.nodes_directory,
                   "where the nodes' folders are (default: nodes/ in the run's directory)")
      ->type_name("DIR");
  verb->add_option("--failpoints", options->supervision.failpoints,
                   "faults to inject into ranks and the journal, for drills: name=action;...");
  verb->callback([options, &run] { run = [options] { return run_verb(*options); }; });
}

}  // namespace megalith::cli
