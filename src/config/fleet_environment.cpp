#include "config/fleet_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "config/environment/variables.h"
#include "core/error.h"

namespace megalith::config {

namespace {

constexpr const char* kRun = "MEGALITH_RUN";
constexpr const char* kNode = "MEGALITH_NODE";
constexpr const char* kGeneration = "MEGALITH_GENERATION";
constexpr const char* kLineage = "MEGALITH_LINEAGE";
constexpr const char* kHoldersFile = "MEGALITH_HOLDERS_FILE";
constexpr std::string_view kNone = "none";

std::string to_text(const GenerationStart& start) {
  return start.from_step == GenerationStart::kAnew ? fmt::format("{}:{}", start.generation, kNone)
                                                   : fmt::format("{}:{}", start.generation, start.from_step);
}

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (status != std::errc{} || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<GenerationStart> start_in(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view step = text.substr(colon + 1);
  const std::optional<int64_t> generation = number_in(text.substr(0, colon));
  const std::optional<int64_t> from_step = step == kNone ? GenerationStart::kAnew : number_in(step);
  if (!generation || *generation < 1 || !from_step) return std::nullopt;
  return GenerationStart{*generation, *from_step};
}

std::vector<GenerationStart> generations_in(const std::string& text) {
  std::vector<GenerationStart> generations;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::optional<GenerationStart> start = start_in(std::string_view(text).substr(begin, end - begin));
    if (!start || (!generations.empty() && start->generation <= generations.back().generation))
      user_error("{} is '{}': expected generation:step of each roster, generations rising, such as 1:none,2:20",
                 kLineage, text);
    generations.push_back(*start);
    begin = end + 1;
  }
  return generations;
}

std::string required(const Variables& variables, const char* name) {
  const std::optional<std::string> value = variables.text(name);
  if (!value) user_error("{} is set and {} is not: a monitor sets both", kNode, name);
  return *value;
}

}  // namespace

bool is_node_name(std::string_view name) {
  constexpr size_t kMost = 64;
  const auto is_safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name.size() <= kMost && name.front() != '.' && std::all_of(name.begin(), name.end(), is_safe);
}

std::optional<FleetEnvironment> fleet_environment(const Lookup& lookup) {
  const Variables variables(lookup);
  const std::optional<std::string> node = variables.text(kNode);
  if (!node) return std::nullopt;
  FleetEnvironment fleet{.run_id = required(variables, kRun),
                         .node = *node,
                         .generations = generations_in(required(variables, kLineage)),
                         .holders_file = variables.text(kHoldersFile).value_or("")};
  for (const auto& [name, value] : {std::pair(kNode, fleet.node), {kRun, fleet.run_id}}) {
    if (!is_node_name(value))
      user_error("{} is '{}': expected at most 64 letters, digits, '-', '_' and '.', and no '.' in front", name, value);
  }
  required(variables, kGeneration);
  if (const auto generation = variables.count(kGeneration); *generation != fleet.generation())
    user_error("{} is {}, and the last generation of {} is {}: they must be one", kGeneration, *generation, kLineage,
               fleet.generation());
  return fleet;
}

std::vector<std::string> variables_of(const FleetEnvironment& fleet) {
  std::vector<std::string> starts;
  for (const GenerationStart& start : fleet.generations) starts.push_back(to_text(start));
  return {fmt::format("{}={}", kRun, fleet.run_id), fmt::format("{}={}", kNode, fleet.node),
          fmt::format("{}={}", kGeneration, fleet.generation()), fmt::format("{}={}", kLineage, fmt::join(starts, ",")),
          fmt::format("{}={}", kHoldersFile, fleet.holders_file.string())};
}

}  // namespace megalith::config
