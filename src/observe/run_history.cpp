#include "observe/run_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/error.h"
#include "observe/run_reader.h"

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
  const auto samples = setting("model.global_batch_size");
  const auto length = setting("model.encoder_seq_length");
  if (!samples || !length) return std::nullopt;
  return *samples * *length;
}

std::optional<double> RunHistory::loss() const {
  if (!last_step) return std::nullopt;
  return curve("reduced_train_loss").at(*last_step);
}

bool RunHistory::complete() const {
  const auto wanted = max_steps();
  return wanted && last_step && *last_step + 1 >= *wanted;
}

RunHistory read_run_history(const fs::path& run_directory) {
  RunReader reader(run_directory);
  reader.poll();
  reader.finish();
  return reader.history();
}

void check_holds_run(const fs::path& run_directory) {
  if (!fs::exists(run_directory)) user_error("{} does not exist; name the directory of a run", run_directory.string());
  if (!fs::is_directory(run_directory)) user_error("{} is a file; name the directory of a run", run_directory.string());
  for (const char* file : {"events.jsonl", "dllogger.json", "dllogger/rank-0/dllogger.json", "hparams.yaml"}) {
    if (fs::exists(run_directory / file)) return;
  }
  user_error("{} holds no run: it has neither events.jsonl nor dllogger.json; {}", run_directory.string(),
             describe_contents(run_directory));
}

}  // namespace megalith::observe
