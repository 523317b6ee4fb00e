#include "train/run/named_step.h"

#include <fmt/format.h>

#include "checkpoint/file_names.h"

namespace megalith::train {

namespace {
constexpr std::string_view kGeneration = "generation ";
constexpr std::string_view kFromStep = " cannot go on from step ";
constexpr std::string_view kAnew = " cannot begin anew: ";
}  // namespace

std::string why_not_from(const checkpoint::Lineage& lineage, const std::string& reason) {
  if (lineage.begins_anew()) return fmt::format("{}{}{}{}", kGeneration, lineage.generation(), kAnew, reason);
  return fmt::format("{}{}{}{}: {}", kGeneration, lineage.generation(), kFromStep, lineage.from_step(), reason);
}

std::optional<int64_t> step_not_loaded(std::string_view message) {
  if (!message.starts_with(kGeneration)) return std::nullopt;
  message.remove_prefix(kGeneration.size());
  const size_t digits = message.find(' ');
  if (digits == std::string_view::npos || !checkpoint::parse_number(message.substr(0, digits))) return std::nullopt;
  message.remove_prefix(digits);
  if (message.starts_with(kAnew)) return config::GenerationStart::kAnew;
  if (!message.starts_with(kFromStep)) return std::nullopt;
  message.remove_prefix(kFromStep.size());
  return checkpoint::parse_number(message.substr(0, message.find(':')));
}

}  // namespace megalith::train
