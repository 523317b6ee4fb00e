#include "core/process/process_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace megalith {

namespace {

namespace fs = std::filesystem;

// Empty where it cannot be read; what is in /proc may go at any moment.
std::string text_of(const fs::path& path) {
  constexpr size_t kMost = 1 << 16;
  std::ifstream file(path, std::ios::binary);
  std::string text(kMost, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// The line of proc(5)'s stat, of a process or a thread.
struct Stat {
  std::string name;
  char state = '?';
  uint64_t user_ticks = 0;
  uint64_t system_ticks = 0;
  uint64_t start_ticks = 0;
};

// A name may contain blanks and parentheses: it ends at the last one.
std::optional<Stat> parse_stat(const std::string& line) {
  const size_t open = line.find('(');
  const size_t close = line.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  Stat stat{.name = line.substr(open + 1, close - open - 1)};
  std::istringstream rest(line.substr(close + 1));
  std::string skipped;
  rest >> stat.state;
  constexpr int kUser = 14;
  constexpr int kStart = 22;
  for (int field = 4; field < kUser; ++field) rest >> skipped;
  rest >> stat.user_ticks >> stat.system_ticks;
  for (int field = kUser + 2; field < kStart; ++field) rest >> skipped;
  rest >> stat.start_ticks;
  if (!rest) return std::nullopt;
  return stat;
}

fs::path folder_of(pid_t pid) {
  return fs::path("/proc") / std::to_string(pid);
}

bool has_ended(const Stat& stat) {
  return stat.state == 'Z' || stat.state == 'X';
}

ThreadFacts facts_of_thread(pid_t id, const fs::path& folder) {
  const auto stat = parse_stat(text_of(folder / "stat")).value_or(Stat{});
  std::string channel = text_of(folder / "wchan");
  if (channel == "0") channel.clear();
  return {.id = id,
          .name = stat.name,
          .state = stat.state,
          .wait_channel = std::move(channel),
          .kernel_stack = text_of(folder / "stack")};
}

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> ids;
  std::error_code ignored;
  for (fs::directory_iterator each(folder_of(pid) / "task", ignored), end; each != end; each.increment(ignored)) {
    const std::string name = each->path().filename().string();
    pid_t id = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), id).ec == std::errc{}) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end(),
            [pid](pid_t a, pid_t b) { return (a != pid) < (b != pid) || ((a != pid) == (b != pid) && a < b); });
  ids.resize(std::min(ids.size(), ProcessFacts::kMostThreads));
  return ids;
}

}  // namespace

ProcessIdentity own_process() {
  return identify_process(::getpid()).value_or(ProcessIdentity{.pid = ::getpid()});
}

std::optional<ProcessIdentity> identify_process(pid_t pid) {
  const auto stat = parse_stat(text_of(folder_of(pid) / "stat"));
  if (!stat) return std::nullopt;
  return ProcessIdentity{.pid = pid, .start_ticks = stat->start_ticks};
}

bool is_alive(const ProcessIdentity& process) {
  const auto stat = parse_stat(text_of(folder_of(process.pid) / "stat"));
  return stat && stat->start_ticks == process.start_ticks && !has_ended(*stat);
}

std::optional<ProcessFacts> facts_of(const ProcessIdentity& process) {
  const auto stat = parse_stat(text_of(folder_of(process.pid) / "stat"));
  if (!stat || stat->start_ticks != process.start_ticks || has_ended(*stat)) return std::nullopt;
  const auto ticks = static_cast<double>(stat->user_ticks + stat->system_ticks);
  ProcessFacts facts{.state = stat->state, .cpu_seconds = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK))};
  for (const pid_t id : threads_of(process.pid))
    facts.threads.push_back(facts_of_thread(id, folder_of(process.pid) / "task" / std::to_string(id)));
  return facts;
}

std::string describe(const ProcessFacts& facts) {
  std::string text = fmt::format("state {}, {:.2f} s of CPU", facts.state, facts.cpu_seconds);
  for (const ThreadFacts& thread : facts.threads) {
    text += fmt::format("\n  thread {} '{}': {}{}{}", thread.id, thread.name, thread.state,
                        thread.wait_channel.empty() ? "" : " in ", thread.wait_channel);
    std::istringstream stack(thread.kernel_stack);
    for (std::string frame; std::getline(stack, frame);) text += "\n    " + frame;
  }
  return text;
}

}  // namespace megalith
