#include "launch/ranks/self.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/device.h"
#include "core/error.h"
#include "core/process/exit_codes.h"
#include "launch/ranks/boot.h"
#include "launch/ranks/local.h"
#include "launch/ranks/secret.h"

namespace megalith::launch {

namespace {
// As the kernel keeps them, each ended by a zero.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> arguments;
  for (size_t begin = 0; begin < text.size();) {
    arguments.emplace_back(text.c_str() + begin);
    begin += arguments.back().size() + 1;
  }
  return arguments;
}

bool ranks_share_gpus(const SelfLaunch& launch) {
  if (launch.device == Device::cpu) return false;
  const auto gpus = static_cast<int>(find_accelerators().size());
  if (launch.ranks <= gpus) return false;
  fmt::print(stderr, "{} ranks share {} GPU{}: good for tests of correctness, not for speed\n", launch.ranks, gpus,
             gpus == 1 ? "" : "s");
  return true;
}
}  // namespace

LaunchPlace launch_place(const config::Lookup& environment) {
  const auto found = config::rank_environment(environment);
  if (!found || found->size == 1) return {};
  if (found->local_rank != 0) {
    user_error(
        "--nproc starts all ranks of a machine, but {} has started several processes on this one: leave --nproc out, "
        "or let it start one per machine",
        found->launcher);
  }
  return {.machine = found->rank,
          .machines = found->size,
          .master_address = found->master_address,
          .master_port = found->master_port};
}

std::vector<std::string> without_nproc(const std::vector<std::string>& arguments) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--nproc") {
      ++i;
    } else if (!arguments[i].starts_with("--nproc=")) {
      rest.push_back(arguments[i]);
    }
  }
  return rest;
}

int launch_self(const SelfLaunch& launch) {
  if (launch.device == Device::cuda) require_accelerator();
  std::vector<std::string> command = without_nproc(own_arguments());
  command.front() = "/proc/self/exe";
  constexpr int kProgramAndVerb = 2;
  command.insert(command.begin() + kProgramAndVerb, launch.more_arguments.begin(), launch.more_arguments.end());
  const int code = launch_local({.ranks = launch.ranks,
                                 .first_rank = launch.place.machine * launch.ranks,
                                 .world = launch.place.machines * launch.ranks,
                                 .command = std::move(command),
                                 .master_address = launch.place.master_address,
                                 .master_port = launch.place.master_port,
                                 .ranks_share_gpus = ranks_share_gpus(launch),
                                 .ranks_save = launch.ranks_save,
                                 .secret = launch.place.machines > 1 ? secret_of_run() : ""});
  const bool is_answer = std::find(kExitCodes.begin(), kExitCodes.end(), code) != kExitCodes.end() &&
                         (launch.ranks_save || code != kExitInterrupted);
  return is_answer ? code : kExitInternal;
}

}  // namespace megalith::launch
