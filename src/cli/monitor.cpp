#include "resilience/monitor/monitor.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/accepts.h"
#include "cli/verbs.h"
#include "comm/store/socket.h"
#include "config/fleet_environment.h"
#include "core/clock.h"
#include "core/error.h"
#include "resilience/monitor/anchor.h"
#include "resilience/secure/credentials.h"
#include "resilience/unix_transport.h"

namespace megalith::cli {

namespace {
struct Options {
  resilience::MonitorOptions monitor;
  std::vector<std::string> supervisors;
  bool is_worker = false;
};

void take_supervisors(Options& options) {
  resilience::MonitorOptions& monitor = options.monitor;
  for (const std::string& text : options.supervisors) {
    monitor.supervisors.push_back(resilience::parse_endpoint(text, "--supervisors"));
    if (monitor.supervisors.back().port == 0) user_error("--supervisors {}: nobody listens at port 0", text);
  }
  // Where this machine is known on the way to the supervisors, other nodes find it too.
  if (monitor.address.empty()) {
    monitor.address =
        monitor.supervisors.empty() ? "127.0.0.1" : comm::address_towards(monitor.supervisors.front().host);
  }
  if (monitor.supervisors.empty() || !monitor.credentials.empty()) return;
  user_error(
      "--supervisors {} is TCP, where monitors must show a certificate, on this machine too: make them with `megalith "
      "supervise --make-credentials FOLDER` and give --credentials FOLDER/monitor, or that of this node",
      options.supervisors.front());
}

void complete(resilience::MonitorOptions& monitor) {
  if (!config::is_node_name(monitor.node)) {
    user_error("--node '{}' is no name of a node: at most 64 letters, digits, '-', '_' and '.', no '.' in front",
               monitor.node);
  }
  for (std::filesystem::path* path : {&monitor.run_directory, &monitor.socket, &monitor.credentials,
                                      &monitor.folders.disk, &monitor.folders.memory}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal();
  }
  resilience::NodeFolders& folders = monitor.folders;
  const std::filesystem::path memory = resilience::memory_of_run(monitor.run_directory);
  if (folders.disk.empty()) folders.disk = monitor.run_directory / "nodes" / monitor.node;
  if (monitor.socket.empty() && monitor.supervisors.empty()) monitor.socket = memory / "socket";
  if (folders.memory.empty()) {
    resilience::make_memory_of_node(memory, monitor.node);
    folders.memory = memory / monitor.node / "monitor";
  }
}

std::vector<std::string> worker_command(const resilience::MonitorOptions& monitor) {
  std::vector<std::string> command = {"/proc/self/exe",      "monitor", "--worker",           "--run",
                                      monitor.run_directory, "--node",  monitor.node,         "--address",
                                      monitor.address,       "--disk",  monitor.folders.disk, "--memory",
                                      monitor.folders.memory};
  if (!monitor.socket.empty()) command.insert(command.end(), {"--socket", monitor.socket});
  for (const resilience::Endpoint& supervisor : monitor.supervisors)
    command.insert(command.end(), {"--supervisors", supervisor.text()});
  if (!monitor.credentials.empty()) command.insert(command.end(), {"--credentials", monitor.credentials});
  if (!monitor.failpoints.empty()) command.insert(command.end(), {"--failpoints", monitor.failpoints});
  if (monitor.stop_grace > 0.0) command.insert(command.end(), {"--stop-grace", std::to_string(monitor.stop_grace)});
  return command;
}

int run_verb(Options options) {
  take_supervisors(options);
  complete(options.monitor);
  // A worker that is started again has ranks to look after, whatever became of the credentials.
  if (options.is_worker) return resilience::run_monitor(options.monitor);
  resilience::require_control_plane();
  if (!options.monitor.credentials.empty()) {
    resilience::load_credentials(options.monitor.credentials, wall_seconds(), resilience::Role::monitor,
                                 options.monitor.node);
  }
  return resilience::run_anchor(
      {.folders = options.monitor.folders, .node = options.monitor.node, .worker = worker_command(options.monitor)});
}
}  // namespace

void add_monitor(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "monitor",
      "Start, watch and end the ranks of one node, as a supervisor orders.\n\n"
      "  megalith monitor --run runs/mine --node node4\n"
      "  megalith monitor --run runs/mine --node node4 --disk /scratch/node4 --stop-grace 30\n"
      "  megalith monitor --run runs/mine --node node4 --supervisors 10.0.0.1:7000,10.0.0.2:7000 --credentials "
      "keys/monitor\n\n"
      "`megalith supervise --local` starts one for each of its nodes; a further one joins its fleet as a spare. The\n"
      "monitor is started again when it dies, and its ranks train on meanwhile. SIGTERM, SIGINT, SIGUSR1 and SIGHUP\n"
      "ask the run to stop. Ends as the run does: 0 complete; 75 stopped, saved; 70 the supervisor gave up.");
  const auto options = std::make_shared<Options>();
  resilience::MonitorOptions& monitor = options->monitor;
  verb->add_option("--run", monitor.run_directory, "the run's directory")->required()->type_name("DIR");
  verb->add_option("--node", monitor.node, "this node's own name, which no other has")->required();
  verb->add_option("--socket", monitor.socket, "where the supervisor listens (default: where that of this run does)")
      ->type_name("FILE");
  verb->add_option("--supervisors", options->supervisors, "where supervisors listen over TCP: all that this run has")
      ->delimiter(',')
      ->type_name("HOST:PORT,...")
      ->excludes("--socket");
  verb->add_option("--credentials", monitor.credentials, "a monitor's, as `supervise --make-credentials` makes them")
      ->type_name("DIR")
      ->needs("--supervisors");
  verb->add_option("--address", monitor.address,
                   "of this node, as other nodes reach it (default: the one that leads to the first supervisor)");
  verb->add_option("--disk", monitor.folders.disk, "for logs (default: nodes/NAME in the run's directory)")
      ->type_name("DIR");
  verb->add_option("--memory", monitor.folders.memory,
                   "in a memory file system, for what must outlive the monitor (default: in /dev/shm)")
      ->type_name("DIR");
  verb->add_option("--stop-grace", monitor.stop_grace,
                   "seconds from a stop signal until this machine kills (default: not known)")
      ->check(above(0));
  verb->add_option("--failpoints", monitor.failpoints, "faults to inject into ranks, for drills: name=action;...");
  verb->add_flag("--worker", options->is_worker)->group("");
  verb->callback([options, &run] { run = [options] { return run_verb(*options); }; });
}

}  // namespace megalith::cli
