#include "resilience/monitor/monitor.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/accepts.h"
#include "cli/verbs.h"
#include "config/fleet_environment.h"
#include "core/error.h"
#include "resilience/monitor/anchor.h"
#include "resilience/unix_transport.h"

namespace megalith::cli {

namespace {
struct Options {
  resilience::MonitorOptions monitor;
  bool is_worker = false;
};

void complete(resilience::MonitorOptions& monitor) {
  if (!config::is_node_name(monitor.node)) {
    user_error("--node '{}' is no name of a node: at most 64 letters, digits, '-', '_' and '.', no '.' in front",
               monitor.node);
  }
  for (std::filesystem::path* path :
       {&monitor.run_directory, &monitor.socket, &monitor.folders.disk, &monitor.folders.memory}) {
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal();
  }
  resilience::NodeFolders& folders = monitor.folders;
  const std::filesystem::path memory = resilience::memory_of_run(monitor.run_directory);
  if (folders.disk.empty()) folders.disk = monitor.run_directory / "nodes" / monitor.node;
  if (monitor.socket.empty()) monitor.socket = memory / "socket";
  if (folders.memory.empty()) {
    resilience::make_memory_of_node(memory, monitor.node);
    folders.memory = memory / monitor.node / "monitor";
  }
}

std::vector<std::string> worker_command(const resilience::MonitorOptions& monitor) {
  std::vector<std::string> command = {
      "/proc/self/exe", "monitor",    "--worker",           "--run",        monitor.run_directory,
      "--node",         monitor.node, "--socket",           monitor.socket, "--address",
      monitor.address,  "--disk",     monitor.folders.disk, "--memory",     monitor.folders.memory};
  if (!monitor.failpoints.empty()) command.insert(command.end(), {"--failpoints", monitor.failpoints});
  if (monitor.stop_grace > 0.0) command.insert(command.end(), {"--stop-grace", std::to_string(monitor.stop_grace)});
  return command;
}

int run_verb(Options options) {
  complete(options.monitor);
  if (options.is_worker) return resilience::run_monitor(options.monitor);
  resilience::require_control_plane();
  return resilience::run_anchor(
      {.folders = options.monitor.folders, .node = options.monitor.node, .worker = worker_command(options.monitor)});
}
}  // namespace

void add_monitor(CLI::App& program, Action& run) {
  CLI::App* verb = program.add_subcommand(
      "monitor",
      "Start, watch and end the ranks of one node, as a supervisor of the same machine orders.\n\n"
      "  megalith monitor --run runs/mine --node node4\n"
      "  megalith monitor --run runs/mine --node node4 --disk /scratch/node4 --stop-grace 30\n\n"
      "`megalith supervise --local` starts one for each of its nodes; a further one joins its fleet as a spare. The\n"
      "monitor is started again when it dies, and its ranks train on meanwhile. SIGTERM, SIGINT, SIGUSR1 and SIGHUP\n"
      "ask the run to stop. Ends as the run does: 0 complete; 75 stopped, saved; 70 the supervisor gave up.");
  const auto options = std::make_shared<Options>();
  resilience::MonitorOptions& monitor = options->monitor;
  verb->add_option("--run", monitor.run_directory, "the run's directory")->required()->type_name("DIR");
  verb->add_option("--node", monitor.node, "this node's own name, which no other has")->required();
  verb->add_option("--socket", monitor.socket, "where the supervisor listens (default: where that of this run does)")
      ->type_name("FILE");
  verb->add_option("--address", monitor.address, "of this node, as other nodes reach it")->capture_default_str();
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
