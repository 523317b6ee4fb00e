#include "resilience/monitor/node_folders.h"

#include <unistd.h>

#include <charconv>
#include <sstream>

#include "core/error.h"
#include "core/file.h"
#include "core/hash/digest.h"
#include "resilience/control_socket.h"

namespace megalith::resilience {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view kStore = "store";

std::optional<int64_t> number_in(std::string_view digits) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc{} || end != digits.data() + digits.size() || number < 0) return std::nullopt;
  return number;
}
}  // namespace

std::string ProcessKey::name() const {
  return is_store() ? fmt::format("g{:06}-{}", generation, kStore) : fmt::format("g{:06}-r{:05}", generation, rank);
}

std::optional<ProcessKey> process_key(const std::string& name) {
  const size_t dash = name.find('-');
  if (!name.starts_with('g') || dash == std::string::npos) return std::nullopt;
  const std::optional<int64_t> generation = number_in(std::string_view(name).substr(1, dash - 1));
  const std::string_view rest = std::string_view(name).substr(dash + 1);
  std::optional<int64_t> rank;
  if (rest == kStore) rank = RankReport::kStore;
  if (rest.starts_with('r')) rank = number_in(rest.substr(1));
  if (!generation || !rank) return std::nullopt;
  return ProcessKey{*generation, *rank};
}

void NodeFolders::make() const {
  make_directory(disk);
  make_private_directory(disk / "logs");
  require_private_directory(memory);
  make_private_directory(records());
  make_private_directory(memory / "pages");
}

fs::path NodeFolders::store_place(int64_t generation) const {
  return memory / fmt::format("store-{:06}", generation);
}

fs::path NodeFolders::config(int64_t generation) const {
  return memory / fmt::format("config-{:06}.yaml", generation);
}

fs::path NodeFolders::holders(int64_t generation) const {
  return memory / fmt::format("holders-{:06}", generation);
}

fs::path memory_of_run(const fs::path& run_directory) {
  std::error_code status;
  const fs::path shared = "/dev/shm";
  const fs::path base = fs::is_directory(shared, status) ? shared : fs::temp_directory_path();
  const std::string directory = fs::absolute(run_directory).lexically_normal().string();
  return base / fmt::format("megalith-fleet-{}-{}", ::geteuid(), digest_of(directory));
}

void make_memory_of_node(const fs::path& memory_of_run, const std::string& node) {
  require_private_directory(memory_of_run);
  require_private_directory(memory_of_run / node);
}

void write_record(const fs::path& path, const std::string& run, const ProcessIdentity& process) {
  replace_file(path, fmt::format("{} {} {}\n", run, process.pid, process.start_ticks));
}

std::optional<ProcessIdentity> read_record(const fs::path& path, const std::string& run) {
  if (size_if_there(path) < 0) return std::nullopt;
  std::istringstream text(read_text(path));
  std::string of_run;
  ProcessIdentity process;
  if (!(text >> of_run >> process.pid >> process.start_ticks) || of_run != run) return std::nullopt;
  return process;
}

}  // namespace megalith::resilience
