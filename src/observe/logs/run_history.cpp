#include "observe/logs/run_history.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "core/error.h"
#include "core/metric_names.h"
#include "observe/logs/run_reader.h"

namespace megalith::observe {

namespace fs = std::filesystem;

namespace {

// What a directory holds, for somebody who expected something else there.
std::string describe_contents(const fs::path& directory) {
  constexpr size_t kShown = 6;
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored))
    names.push_back(entry.path().filename().string());
  if (names.empty()) return "it is empty";
  std::sort(names.begin(), names.end());
  const size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return fmt::format("it holds {}{}", fmt::join(names, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

bool holds_logs(const fs::path& directory) {
  constexpr const char* kLogs[] = {"events.jsonl", "dllogger.json", "dllogger/rank-0/dllogger.json", "hparams.yaml"};
  return std::any_of(std::begin(kLogs), std::end(kLogs), [&](const char* log) { return is_there(directory / log); });
}

}  // namespace

const Curve& RunHistory::curve(std::string_view name) const {
  static const Curve none;
  const auto found = curves.find(name);
  return found == curves.end() ? none : found->second;
}

std::optional<double> RunHistory::setting(const std::string& key) const {
  const auto found = settings.find(key);
  if (found == settings.end()) return std::nullopt;
  const std::string& text = found->second;
  double number = 0.0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<int64_t> RunHistory::max_steps() const {
  constexpr double kMost = 1e15;
  const auto steps = setting("trainer.max_steps");
  if (!steps || !(*steps > 0.0 && *steps < kMost)) return std::nullopt;
  return static_cast<int64_t>(*steps);
}

std::optional<double> RunHistory::tokens_per_step() const {
  const auto ramp = settings.find("model.rampup_batch_size");
  if (ramp != settings.end() && ramp->second != "[]" && ramp->second != "null") return std::nullopt;  // it grows
  const auto samples = setting("model.global_batch_size");
  const auto length = setting("model.encoder_seq_length");
  if (!samples || !length) return std::nullopt;
  return *samples * *length;
}

std::optional<double> RunHistory::loss() const {
  if (!last_step) return std::nullopt;
  return curve(metric::kTrainLoss).at(*last_step);
}

bool RunHistory::complete() const {
  const auto wanted = max_steps();
  return wanted && last_step && *last_step + 1 >= *wanted;
}

bool RunHistory::made_up_tokens() const {
  const auto impl = settings.find("model.data.data_impl");
  if (impl == settings.end()) return false;
  const auto prefix = settings.find("model.data.data_prefix");
  const bool no_data = prefix == settings.end() || prefix->second == "[]" || prefix->second == "null";
  return impl->second == "mock" || (impl->second == "auto" && no_data);
}

RunHistory read_run_history(const fs::path& run_directory, UseEvent use_event) {
  RunReader reader(run_directory, std::move(use_event));
  reader.poll();
  reader.finish();
  return reader.history();
}

bool is_there(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status)) user_error("{} cannot be read: {}", path.string(), error.message());
  if (fs::is_regular_file(status) && ::access(path.c_str(), R_OK) != 0)
    user_error("{} cannot be read: {}", path.string(), std::strerror(errno));
  return fs::exists(status);
}

void check_holds_run(const fs::path& run_directory) {
  if (!is_there(run_directory)) user_error("{} does not exist; name the directory of a run", run_directory.string());
  if (!fs::is_directory(run_directory)) user_error("{} is a file; name the directory of a run", run_directory.string());
  if (holds_logs(run_directory)) return;
  user_error("{} holds no run: it has neither events.jsonl nor dllogger.json; {}", run_directory.string(),
             describe_contents(run_directory));
}

bool awaits_run(const fs::path& run_directory) {
  if (!is_there(run_directory)) return true;
  if (!fs::is_directory(run_directory) || holds_logs(run_directory)) return false;
  std::error_code error;
  const bool empty = fs::is_empty(run_directory, error);
  return (empty && !error) || is_there(run_directory / ".megalith.lock");
}

}  // namespace megalith::observe
