#include "cli/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

namespace megalith::cli {

namespace {

constexpr size_t kColumn = 30;
constexpr size_t kWidth = 80;

// The library's word for the type, and what cli/accepts.h says of the values.
std::pair<std::string, std::string> type_and_range(const CLI::Option& option) {
  const std::string all = option.get_type_name();
  const size_t colon = all.find(':');
  if (colon == std::string::npos) return {all, ""};
  return {all.substr(0, colon), all.substr(colon + 1)};
}

// What stands for a text: the last word of an option's name says what kind it is.
const char* kind_of_text(std::string_view name) {
  struct Kind {
    const char* shown;
    std::vector<std::string_view> last_words;
  };
  static const std::vector<Kind> kKinds{
      {"PATH",
       {"checkpoint", "dir", "directory", "file", "list", "config", "input", "output", "csv", "draw", "png", "results",
        "logits", "export", "lengths", "model", "text", "compare"}},
      {"NAME", {"name", "type", "label", "stem", "token", "keys", "key"}},
      {"PREFIX", {"prefix"}},
      {"N", {"interval"}},
      {"I/N", {"worker"}},
  };
  const std::string_view last = name.substr(name.find_last_of("-_") + 1);
  for (const Kind& kind : kKinds) {
    if (std::find(kind.last_words.begin(), kind.last_words.end(), last) != kind.last_words.end()) return kind.shown;
  }
  return "TEXT";
}

std::string value_of(const CLI::Option& option) {
  const auto [type, range] = type_and_range(option);
  if (range.find('|') != std::string::npos) return range;
  if (type == "INT" || type == "UINT") return "N";
  if (type == "FLOAT") return "NUMBER";
  return type == "TEXT" ? kind_of_text(option.get_name()) : type;
}

std::string what_to_write(const CLI::Option& option, bool is_positional) {
  std::string text = is_positional ? option.get_name(true, false) : option.get_name(false, true);
  if (option.get_type_size() == 0) return text;
  if (!is_positional) text += " " + value_of(option);
  if (option.get_expected_max() == CLI::detail::expected_max_vector_size && option.get_allow_extra_args()) {
    text += " ...";
  }
  return text;
}

std::string what_it_means(const CLI::Option& option) {
  std::vector<std::string> notes;
  const std::string range = type_and_range(option).second;
  std::string standard = option.get_default_str();
  if (standard.starts_with('[') && standard.ends_with(']')) standard = standard.substr(1, standard.size() - 2);
  if (option.get_required()) notes.emplace_back("required");
  if (!range.empty() && range.find('|') == std::string::npos) notes.push_back(range);
  if (!standard.empty()) notes.push_back("default: " + standard);
  for (const CLI::Option* other : option.get_excludes()) notes.push_back("not with " + other->get_name());
  if (notes.empty()) return option.get_description();
  return fmt::format("{} ({})", option.get_description(), fmt::join(notes, "; "));
}

// Two columns; what does not fit on the left has a line of its own.
std::string two_columns(const std::string& left, std::string_view right) {
  std::string text = "  " + left;
  if (text.size() + 2 > kColumn) text += "\n";
  size_t column = text.ends_with('\n') ? 0 : text.size();
  while (!right.empty()) {
    const std::string_view word = right.substr(0, right.find(' '));
    right.remove_prefix(std::min(right.size(), word.size() + 1));
    if (column > kColumn && column + 1 + word.size() > kWidth) {
      text += "\n";
      column = 0;
    }
    const size_t spaces = column > kColumn ? 1 : kColumn - column;
    text.append(spaces, ' ').append(word);
    column += spaces + word.size();
  }
  return text + "\n";
}

// The first sentence of a description; the rest is for the verb's own help.
std::string_view summary(std::string_view description) {
  description = description.substr(0, description.find("\n\n"));
  return description.substr(0, description.find(". "));
}

}  // namespace

HelpFormatter::HelpFormatter() {
  label("Positionals", "Arguments");
  label("SUBCOMMAND", "VERB");
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  return "\n" + Formatter::make_usage(app, std::move(name));
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  return two_columns(what_to_write(*option, is_positional), what_it_means(*option));
}

std::string HelpFormatter::make_subcommands(const CLI::App* app, CLI::AppFormatMode) const {
  std::string text;
  for (const CLI::App* verb : app->get_subcommands({})) {
    if (verb->get_group().empty()) continue;  // for programs
    std::string line(summary(verb->get_description()));
    if (line.ends_with('.')) line.pop_back();
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += two_columns(verb->get_name(), line);
  }
  return text.empty() ? text : "\nVerbs:\n" + text;
}

}  // namespace megalith::cli
